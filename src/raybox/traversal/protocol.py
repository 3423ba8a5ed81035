"""What a query supplies to the traversals: hooks, chosen at compile time by the class of its recorder.

A *recorder* is the state of a query in compiled code: a NamedTuple of arrays. The traversals call the stubs
below with a recorder first; compiled code calls the hooks that were registered for its class. Numba picks
them by type, so a hook costs nothing, and a query that does not need one leaves it at its default.

The state of one ray in a group is a row of `Workspace.state`: its `RESULT` begins as `MISS_INDEX` and means
what the query makes of it; `UNDECIDED_INDEX` leaves the ray to the exact fallback.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from raybox.compiler.decorators import device, dispatch, inlined, no, yes
from raybox.geometry import Rows
from raybox.primitives.instance_ray import AnyRay
from raybox.traversal.job import Job, Recorder
from raybox.traversal.time_keys import Stretches, get, time_of
from raybox.traversal.workspace import Order, PacketGroup, PacketRecorder, Span, Workspace


@device
def add_pair(_recorder: Recorder, workspace: Workspace, count: int, ray: int, primitive: int) -> int:
    """Add a ray and a primitive to the candidates; return how many there are now."""
    workspace.pairs.ray[count], workspace.pairs.item[count] = ray, primitive
    return count + 1


@device
def record_none(
    _recorder: Recorder, _job: Job, _workspace: Workspace, _spot: tuple[int, int, int], _ray: int
) -> bool:
    """Record no certain hit: every box is a candidate."""
    return False


@device
def always_room(_recorder: Recorder, _rays: int) -> bool:
    """Return that there is room for the results of any number of rays."""
    return True


@device
def always_finished(_recorder: Recorder, _state: Recorder, _job: Job, _k: int) -> bool:
    """Return that there was room for a ray's result, which is written already."""
    return True


@device
def prefetch_none(_recorder: Recorder, _item: int) -> None:
    """Prefetch nothing."""


@inlined
def record_each(recorder: Any, state: Any, ray: Any, stretches: Stretches) -> Any:
    """Record stretches one by one."""
    for s in range(stretches.cell_count):
        begin, end = time_of(get(stretches.keys, s)), time_of(get(stretches.keys, s + 1))
        state = record_segment(recorder, state, ray, get(stretches.cells, s), begin, end)
    return state


class StreamHooks(NamedTuple):
    """A query in the stream traversal, which tests a list of rays against each node."""

    record: Any
    """(recorder, job, workspace, count): record candidates that were resolved in float64"""
    write_results: Any
    """(recorder, job, order, workspace, group) -> bool: write a group's results; False: there is no room"""
    add_candidate: Any = add_pair
    """(recorder, workspace, count, ray, primitive) -> int: add a candidate; return how many there are"""
    certain_hits: Any = None
    """a `CertainHits`: records boxes that sixteen rays hit for certain; None: every box is a candidate"""
    record_certain: Any = record_none
    """(recorder, job, workspace, spot, ray) -> bool: the same for one ray; False: the box is a candidate"""
    ends_rays: Any = True
    """whether rays may end before they have hit everything: then the order of nodes matters"""
    longest_first: bool = False
    """whether nodes in which rays stay longest come first, not the nearest"""
    defers_float64: bool = False
    """whether so few boxes are candidates that float64 copies of their rays are made on demand"""
    has_unwritten: Any = no
    """(recorder) -> bool: whether a group was traversed whose results had no room"""


class PacketHooks(NamedTuple):
    """A query in the packet traversal: sixteen neighbouring rays tested as one."""

    intersect_box: Any
    """vector code (builder, `PacketAtBox`) -> new stops and results of the sixteen rays"""
    write_packets: Any
    """(recorder, packets, job, order, workspace, place): write the results of so many packets"""
    write_misses: Any
    """(recorder, begin, end): write the results of rays that hit nothing"""
    has_room: Any = always_room
    """(recorder, rays) -> bool: whether there is room for the results of so many rays"""
    prefetches_boxes: bool = False
    """whether boxes that packets are tested against are read soon after"""
    store_rays: Any = None
    """vector code (builder, recorder, workspace, `Float64Rays`, packet): store rays in float64 for hits"""


class ExactHooks(NamedTuple):
    """A query in the single-ray traversal, which decides each primitive exactly as it comes."""

    resolve: Any
    """(recorder, rows, ray, i) -> float: decide primitive i; return the time after which none matters"""
    start: Any
    """(recorder, k) -> recorder: the state of ray k"""
    finish: Any = always_finished
    """(recorder, state, job, k) -> bool: write the result of ray k; False: there is no room"""
    takes_turns: bool = False
    """whether rays may take turns: results are written by `resolve`, and `start` may be called again"""
    first_only: bool = False
    """whether no hit after the first contact matters; such rays may take turns, too"""


class SegmentHooks(NamedTuple):
    """A query in the partition of rays by a grid: the state of a ray is returned, and stays in registers."""

    begin_segments: Any
    """(recorder, k) -> state: the state of ray k, which is in no cell yet"""
    record_segment: Any
    """(recorder, state, ray, cell, t_enter, t_exit) -> state: record a stretch; t_enter <= t_exit"""
    end_segments: Any
    """(recorder, state, k) -> bool: write the result of ray k; False: there is no room"""
    record_ray: Any = record_each
    """(recorder, state, ray, stretches) -> state: record all stretches of a ray, in order"""
    prefetch_cell: Any = prefetch_none
    """(recorder, cell): prefetch what `record_segment` reads and writes of a cell"""
    has_exact_times: bool = False
    """whether times are rounded once; otherwise each is off by less than 2^-50 of itself"""


class Hooks(NamedTuple):
    """The hooks of one query, by the class of the recorder."""

    stream: dict[type, StreamHooks]
    packet: dict[type, PacketHooks]
    exact: dict[type, ExactHooks]
    segments: dict[type, SegmentHooks] = {}  # noqa: RUF012  # not written to


REGISTERED = Hooks({}, {}, {}, {})
"""Every recorder class and its hooks."""


def register(hooks: Hooks) -> None:
    """Let the traversals call the hooks of a query."""
    REGISTERED.stream.update(hooks.stream)
    REGISTERED.packet.update(hooks.packet)
    REGISTERED.exact.update(hooks.exact)
    REGISTERED.segments.update(hooks.segments)


def record(recorder: Recorder, job: Job, workspace: Workspace, count: int) -> None:
    """Record the candidates of a workspace, which were resolved; never guess: see `mark_undecided`."""
    raise NotImplementedError("compiled code only")


def write_results(recorder: Recorder, job: Job, order: Order, workspace: Workspace, group: Span) -> bool:
    """Write the results of a group, a span of the order; list its undecided rays; return whether all fit."""
    raise NotImplementedError("compiled code only")


def add_candidate(recorder: Recorder, workspace: Workspace, count: int, ray: int, primitive: int) -> int:
    """Add a ray and a primitive to the candidates; return how many there are now."""
    raise NotImplementedError("compiled code only")


def record_certain(
    recorder: Recorder, job: Job, workspace: Workspace, spot: tuple[int, int, int], ray: int
) -> bool:
    """Record that a ray hits the box at a node, octant and slot for certain; return whether that is all."""
    raise NotImplementedError("compiled code only")


def ends_rays(recorder: Recorder) -> bool:
    """Return whether rays may end before they have hit everything."""
    raise NotImplementedError("compiled code only")


def defers_float64(recorder: Recorder) -> bool:
    """Return whether float64 copies of rays are made on demand."""
    raise NotImplementedError("compiled code only")


def has_unwritten(recorder: Recorder) -> bool:
    """Return whether a group was traversed whose results had no room."""
    raise NotImplementedError("compiled code only")


def write_packets(
    recorder: Recorder,
    packets: PacketRecorder,
    job: Job,
    order: Order,
    workspace: Workspace,
    place: PacketGroup,
) -> None:
    """Write the results of so many packets. place: the first ray of the batch, and how many packets."""
    raise NotImplementedError("compiled code only")


def write_misses(recorder: Recorder, begin: int, end: int) -> None:
    """Write the results of rays that hit nothing: group by group, while they are in a core's cache."""
    raise NotImplementedError("compiled code only")


def has_room(recorder: Recorder, rays: int) -> bool:
    """Return whether there is room for the results of so many rays in packets."""
    raise NotImplementedError("compiled code only")


def prefetches_boxes(recorder: Recorder) -> bool:
    """Return whether boxes that packets are tested against are read soon after."""
    raise NotImplementedError("compiled code only")


def resolve(recorder: Recorder, rows: Rows, ray: AnyRay, i: int) -> float:
    """Decide primitive i exactly and record it; return the time after which no hit matters, NaN: none."""
    raise NotImplementedError("compiled code only")


def start(recorder: Recorder, k: int) -> Recorder:
    """Return the state of ray k, which has hit nothing yet."""
    raise NotImplementedError("compiled code only")


def finish(recorder: Recorder, state: Recorder, job: Job, k: int) -> bool:
    """Write the result of ray k; return False if there was no room."""
    raise NotImplementedError("compiled code only")


def takes_turns(recorder: Recorder) -> bool:
    """Return whether rays may take turns."""
    raise NotImplementedError("compiled code only")


def first_only(recorder: Recorder) -> bool:
    """Return whether no hit after the first contact matters."""
    raise NotImplementedError("compiled code only")


def begin_segments(recorder: Any, k: int) -> Any:
    """Return the state of ray k, which is in no cell yet."""
    raise NotImplementedError("compiled code only")


def record_segment(recorder: Any, state: Any, ray: Any, cell: int, t_enter: float, t_exit: float) -> Any:
    """Record the stretch of a ray in a cell; return the new state."""
    raise NotImplementedError("compiled code only")


def end_segments(recorder: Any, state: Any, k: int) -> bool:
    """Write the result of ray k; return False if there was no room."""
    raise NotImplementedError("compiled code only")


def record_ray(recorder: Any, state: Any, ray: Any, stretches: Stretches) -> Any:
    """Record all stretches of a ray; return the new state."""
    raise NotImplementedError("compiled code only")


def prefetch_cell(recorder: Any, cell: int) -> None:
    """Prefetch what is read and written of a cell."""
    raise NotImplementedError("compiled code only")


def has_exact_times(recorder: Any) -> bool:
    """Return whether the times of stretches are rounded once."""
    raise NotImplementedError("compiled code only")


def hook_of(table: dict[type, Any], name: str) -> Callable[[type], Any]:
    """Return what picks the hook of this name for a recorder class; flags become constant functions."""

    def pick(kind: type) -> Any:
        hook = getattr(table.get(kind), name, None)
        return (yes if hook else no) if isinstance(hook, bool) else hook

    return pick


_STREAM = record, write_results, add_candidate, record_certain, ends_rays, defers_float64, has_unwritten
_STUBS: dict[str, tuple[Any, ...]] = {
    "stream": _STREAM,
    "packet": (write_packets, write_misses, has_room, prefetches_boxes),
    "exact": (resolve, start, finish, takes_turns, first_only),
    "segments": (begin_segments, record_segment, record_ray, end_segments, prefetch_cell, has_exact_times),
}

for _name, _stubs in _STUBS.items():
    for _stub in _stubs:
        dispatch(_stub, hook_of(getattr(REGISTERED, _name), _stub.__name__))
