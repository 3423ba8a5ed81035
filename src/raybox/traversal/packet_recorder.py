"""What is known of the packets of a group: sixteen rays each that stay together."""

from typing import Any, NamedTuple

from raybox.compiler.struct_ref import struct

MAX_PACKET_HITS = 64  # of a ray in a packet; rays with more are left to streams
MAX_UNDECIDED = 4  # boxes that a ray may keep undecided until its packet has been everywhere
RESULTS, UNDECIDED_BOXES = 8, 9  # columns past those of packed rays: results; how many boxes, less one
COLUMNS = 10
DEFERRED = -3  # the result of rays that are left to streams
NO_OCTANT, UNFIT = 8, 9  # in place of an octant: no ray hits anything; these rays are no packet


@struct
class PacketRecorder(NamedTuple):
    """The recorder of a query, and the rays of packets; see `raybox.traversal.packet`."""

    inner: Any  # the recorder of the query
    words: Any  # float32 (packets, COLUMNS, 16): packed rays and results, column by column
    state: Any  # the same memory as int32
    first: Any  # int32 (packets,): the first ray of each, from the base of the span
    octant: Any  # int32 (packets,)
    item: Any  # int32 (packets * 16 * MAX_PACKET_HITS + 16,): boxes of each ray: hit, or undecided
    undecided: Any  # int32 (packets,): 1 where a ray keeps an undecided box
