"""One ray from node to node, until a node has boxes that the ray may hit.

The nearest inner node among the slots is next, straight away; the others wait on the stack, nearer ones above
farther ones. What the ray is compared with stays in registers from node to node: rays take 0.6 to 0.9 of the
time that they took when each node was a call.

No box is lost. A slot is left out only where the node test proves that the ray misses it, or enters it after
its end (`raybox.traversal.ray_setup`); a node that has waited, only where it was entered after the end that
the ray has by then. An end is a time by which a hit is certain, so what comes after it is no result. The
order of nodes decides how soon that is, and nothing else: of hits that tie, the query takes the lowest index,
whichever comes first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from raybox.bvh.node import CHILD, ROW, WIDTH
from raybox.compiler.decorators import inlined
from raybox.compiler.intrinsics import Fields, int64, vector_code
from raybox.compiler.simd import F32, I1, I64, Builder, Lanes, Scalar, splat
from raybox.compiler.simd_arrays import Register, while_any, while_true
from raybox.primitives.table import has_volumes
from raybox.traversal.node_test import clip, is_certain, sides_of, slab_times
from raybox.traversal.ray_setup import PACKED_WORDS, STOP
from raybox.traversal.slab_coefficients import single_ray
from raybox.traversal.slot_triangles import prefetch_node
from raybox.traversal.workspace import SINGLE_TESTS

_LINE = 16  # words of a cache line
# The bits at which these begin in the result of a walk; the size of the stack is first
_POSSIBLE, _CERTAIN, _NODE = 16, 24, 32
_ALL = 0xFF


class NextNode(NamedTuple):
    """A node with boxes that the ray may hit, and how many nodes are left on the stack."""

    node: int  # -1: the ray has passed all nodes
    possible: int  # a bit for each slot with such a box
    certain: int  # and for each whose box it hits for certain
    top: int


@inlined
def unpack(walked: int) -> NextNode:
    """Return what `walk_nearest` and `walk_longest` found."""
    return NextNode(walked >> _NODE, walked >> _POSSIBLE & _ALL, walked >> _CERTAIN & _ALL, walked & 0xFFFF)


@vector_code(int64)
def walk_nearest(b: Builder, job: Fields, workspace: Fields, at: list[Scalar]) -> Scalar:
    """Walk on from the nodes of the stack with the single ray, less those that it enters after its end.

    at: how many nodes are on the stack, the octant into which the ray runs, and the ray. `load_single_ray`
    has loaded it. Entry times of the slots of the node that is found are stored.
    """
    return _WalkCode(b, job, workspace, at, lambda near, _: near).run()


@vector_code(int64)
def walk_longest(b: Builder, job: Fields, workspace: Fields, at: list[Scalar]) -> Scalar:
    """Do as `walk_nearest`, but visit and store slots by how long the ray is in each, the longest first."""
    return _WalkCode(b, job, workspace, at, lambda near, far: near - far).run()


class _WalkCode:
    """The code of a walk. order: what is least of the slot that comes first, of its entry and exit times."""

    def __init__(
        self,
        b: Builder,
        job: Fields,
        workspace: Fields,
        at: list[Scalar],
        order: Callable[[Lanes, Lanes], Lanes],
    ) -> None:
        top, octant, ray = at
        self.b, self.nodes, self.workspace, self.order = b, job.tree.nodes, workspace, order
        self.planes = self.nodes.as_items(F32)
        self.triangles = job.triangles if has_volumes(job.rows) else None
        self.slabs, margin = single_ray(workspace, WIDTH)
        self.room = margin + margin
        self.stop = workspace.packed_rays.get(b.add(b.mul(ray, I64(PACKED_WORDS)), I64(STOP)))
        self.sides = [sides_of(b, I64(0), octant, axis) for axis in range(3)]
        self.top, self.node = Register(b, top), Register(b, I64(0))
        self.result, self.visits = Register(b, I64(-1)), Register(b, I64(0))
        names = "pop", "take", "visit", "descend", "keep", "go on", "leave", "found", "done"
        self.blocks = {name: b.append_basic_block(name) for name in names}

    def run(self) -> Scalar:
        """Emit the code; return the number that `unpack` reads."""
        b, to = self.b, self.blocks
        b.branch(to["pop"])
        self._pop()
        inner, boxes, packed = self._visit()
        self._descend(inner, boxes)
        b.position_at_end(to["leave"])
        b.cbranch(self._any(boxes), to["found"], to["pop"])
        b.position_at_end(to["found"])
        place = b.or_(b.shl(self.node.value, I64(_NODE)), self.top.value)
        self.result.value = b.or_(place, packed)
        b.branch(to["done"])
        b.position_at_end(to["done"])
        tests = self.workspace.work
        tests.put(b.add(tests.get(I64(SINGLE_TESTS)), self.visits.value), I64(SINGLE_TESTS))
        return self.result.value

    def _any(self, bits: Scalar) -> Scalar:
        return self.b.icmp_signed("!=", bits, I64(0))

    def _pop(self) -> None:
        """Take the node on top of the stack, unless the ray ends before it."""
        b, to = self.b, self.blocks
        b.position_at_end(to["pop"])
        top = b.sub(self.top.value, I64(1))
        b.cbranch(b.icmp_signed(">=", top, I64(0)), to["take"], to["done"])
        b.position_at_end(to["take"])
        self.top.value, self.node.value = top, b.sext(self.workspace.node.get(top), I64)
        late = b.fcmp_ordered(">", self.workspace.time.get(top), self.stop)
        b.cbranch(late, to["pop"], to["visit"])

    def _visit(self) -> tuple[Scalar, Scalar, Scalar]:
        """Test the ray against the slots of a node; return inner nodes and boxes that it may hit, as bits."""
        b, to = self.b, self.blocks
        b.position_at_end(to["visit"])
        self.row = b.mul(self.node.value, I64(ROW))

        def planes_of(axis: int) -> list[Lanes]:
            return [self.planes.load(b.add(self.row, side), WIDTH) for side in self.sides[axis]]

        near, far = clip(slab_times(planes_of, self.slabs), splat(b, self.stop, WIDTH))
        self.workspace.slots.store(self.order(near, far), I64(0))
        children, possible = self.nodes.load(b.add(self.row, I64(CHILD)), WIDTH), near <= far
        boxes = (possible & (children < 0)).mask()
        inner = b.xor(possible.mask(), boxes)
        certain = b.and_(is_certain(near, far, self.room).mask(), boxes)
        self.visits.value = b.add(self.visits.value, I64(1))
        packed = b.or_(b.shl(boxes, I64(_POSSIBLE)), b.shl(certain, I64(_CERTAIN)))
        b.cbranch(self._any(inner), to["descend"], to["leave"])
        return inner, boxes, packed

    def _slot(self, mask: Scalar) -> tuple[Scalar, Scalar]:
        """Return the node in the lowest slot of a mask, which is prefetched, and when it comes."""
        b = self.b
        slot = b.cttz(mask, I1(1))
        node = self.nodes.get(b.add(b.add(self.row, I64(CHILD)), slot))
        begin = b.mul(b.sext(node, I64), I64(ROW))
        for word in range(0, ROW, _LINE):
            self.nodes.prefetch(b.add(begin, I64(word)))
        if self.triangles:
            prefetch_node(b, self.triangles, b.sext(node, I64))
        return node, self.workspace.slots.get(slot)

    def _descend(self, inner: Scalar, boxes: Scalar) -> None:
        """Go on with the first of the inner nodes; push the others, and if there are boxes the first, too."""
        b, to = self.b, self.blocks
        b.position_at_end(to["descend"])
        base, (node, time) = self.top.value, self._slot(inner)
        first, when = Register(b, node), Register(b, time)
        left = Register(b, b.and_(inner, b.sub(inner, I64(1))))
        with while_any(b, left):
            node, time = self._slot(left.value)
            left.value = b.and_(left.value, b.sub(left.value, I64(1)))
            sooner = b.fcmp_ordered("<", time, when.value)
            self._insert(base, b.select(sooner, first.value, node), b.select(sooner, when.value, time))
            first.value = b.select(sooner, node, first.value)
            when.value = b.select(sooner, time, when.value)
        b.cbranch(self._any(boxes), to["keep"], to["go on"])
        b.position_at_end(to["keep"])
        self._put(first.value, when.value, self.top.value)
        self.top.value = b.add(self.top.value, I64(1))
        b.branch(to["found"])
        b.position_at_end(to["go on"])
        self.node.value = b.sext(first.value, I64)
        b.branch(to["visit"])

    def _insert(self, base: Scalar, node: Scalar, time: Scalar) -> None:
        """Insert a node among those from `base` on, of which the first to come is on top."""
        b, workspace = self.b, self.workspace
        place = Register(b, self.top.value)
        self.top.value = b.add(self.top.value, I64(1))

        def moves() -> Scalar:
            below = b.sub(place.value, I64(1))
            above = b.icmp_signed(">=", below, base)
            return b.and_(above, b.fcmp_ordered("<", workspace.time.get(b.select(above, below, base)), time))

        with while_true(b, moves):
            below = b.sub(place.value, I64(1))
            self._put(workspace.node.get(below), workspace.time.get(below), place.value)
            place.value = below
        self._put(node, time, place.value)

    def _put(self, node: Scalar, time: Scalar, place: Scalar) -> None:
        self.workspace.node.put(node, place)
        self.workspace.time.put(time, place)
