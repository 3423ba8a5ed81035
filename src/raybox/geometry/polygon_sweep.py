"""Triangles of a polygon in the plane, by a sweep in exact integers: n log n, also where rings touch.

Source: Hertel and Mehlhorn, Fast Triangulation of Simple Polygons (1983), here with corners at one point and
edges on one line. What those leave open between themselves and the triangles has no area, and is cut last.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cmp_to_key
from heapq import heappop, heappush
from itertools import accumulate, groupby, pairwise
from typing import TypeAlias

Point: TypeAlias = tuple[int, int]
Triangle: TypeAlias = tuple[int, int, int]


def triangulate_exactly(points: Sequence[Point], rings: Sequence[Sequence[int]]) -> list[Triangle] | None:
    """Return the triangles of a polygon, or None if its rings cross or overlap.

    Rings are an outline, counter-clockwise, and holes, clockwise, of positions among `points`. They may
    touch, also along edges. Triangles are counter-clockwise or without area: two less than corners, and two
    more for each hole. Each edge of a ring belongs to one, any other edge to two of opposite direction. Holes
    without area have triangles of their own where they cannot be joined to the rest.
    """
    found = _swept(points, rings)
    if found is None and len(rings) > 1:
        fills = [list(_without_area(points, deque(ring))) for ring in rings]
        lines = [k for k in range(1, len(rings)) if len(fills[k]) == len(rings[k]) - 2]
        rest = lines and _swept(points, [ring for k, ring in enumerate(rings) if k not in lines])
        found = [*rest, *(triangle for k in lines for triangle in fills[k])] if rest else None
    return found


def _swept(points: Sequence[Point], rings: Sequence[Sequence[int]]) -> list[Triangle] | None:
    """Return the triangles of a polygon; None if its rings cross, or its holes have no area."""
    after = {corner: ring[k - len(ring) + 1] for ring in rings for k, corner in enumerate(ring)}
    sweep = _PlaneSweep(points, after)
    for point, corners in groupby(sorted(after, key=points.__getitem__), points.__getitem__):
        if not sweep.advance(point, list(corners)):
            return None
    triangles = sweep.triangles
    for cycle in _gaps(points, after, _edges(triangles)):
        triangles += _without_area(points, deque(cycle))
    edges, around = _edges(triangles), {(v, u) for u, v in after.items()}
    is_closed = edges.isdisjoint(around) and all((v, u) in edges or (v, u) in around for u, v in edges)
    count = len(after) + 2 * len(rings) - 4
    return triangles if is_closed and len(triangles) == count and len(edges) == 3 * count else None


def _edges(triangles: Iterable[Triangle]) -> set[tuple[int, int]]:
    """Return the edges of triangles, each from corner to corner."""
    return {edge for a, b, c in triangles for edge in ((a, b), (b, c), (c, a))}


def turn(a: Point, b: Point, c: Point) -> int:
    """Return a number that is positive if a, b, c turn to the left, 0 on a line."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


@dataclass(slots=True, eq=False)
class _BorderNode:
    """A corner of the border of a region, and the nodes below and above it."""

    corner: int
    point: Point
    below: "_BorderNode | None" = None
    above: "_BorderNode | None" = None


@dataclass(slots=True, eq=False)
class _Region:
    """A part of the inside without triangles yet: from a border of nodes to the sweep line.

    The border turns to the left at each point between `bottom` and `top`.
    """

    bottom: _BorderNode
    rightmost: _BorderNode
    top: _BorderNode

    def add_below(self, nodes: list[_BorderNode], always: bool = False) -> Iterator[Triangle]:
        """Add nodes at one point to the bottom; yield the triangles of the upper one and what it sees.

        always: it sees all nodes, since the region ends there.
        """
        node, low = nodes[-1], self.bottom
        while (high := low.above) and (always or _sees(node, low, high)):
            yield low.corner, node.corner, high.corner
            low = high
        self.bottom = self.rightmost = nodes[0]
        _join(*nodes, low)

    def add_above(self, nodes: list[_BorderNode]) -> Iterator[Triangle]:
        """Add nodes at one point to the top; yield the triangles of the lower one and what it sees."""
        node, high = nodes[0], self.top
        while (low := high.below) and _sees(node, low, high):
            yield low.corner, node.corner, high.corner
            high = low
        self.top = self.rightmost = nodes[-1]
        _join(high, *nodes)

    def split(self) -> "_Region":
        """Cut off and return what is above the rightmost node, which both parts keep."""
        middle, top = self.rightmost, self.top
        node = _BorderNode(middle.corner, middle.point)
        if middle.above:
            _join(node, middle.above)
        self.top, middle.above = middle, None
        return _Region(node, node, node if top is middle else top)


def _join(*nodes: _BorderNode) -> None:
    """Make nodes neighbours, from the lowest on."""
    for low, high in pairwise(nodes):
        low.above, high.below = high, low


def _sees(node: _BorderNode, low: _BorderNode, high: _BorderNode) -> bool:
    """Return whether an edge of a border is open to a node on the right."""
    return low.point == high.point or turn(low.point, node.point, high.point) > 0


@dataclass(slots=True, eq=False)
class _Line:
    """Edges on one line that go right from `start`; `end` is the nearest end.

    `edges` is a heap of ends and edges; an edge has the number of its first corner. `near` are those that
    start or end at the sweep's point. The region is the one above the line; None if that is outside.
    """

    start: Point
    edges: list[tuple[Point, int]]
    winding: int
    near: list[int] = field(default_factory=list)
    region: _Region | None = None
    end: Point = (0, 0)

    def __post_init__(self) -> None:
        self.end = self.edges[0][0]

    def add(self, other: "_Line") -> None:
        """Add the edges of another line of the same direction."""
        fewer, self.edges = sorted((self.edges, other.edges), key=len)
        for item in fewer:
            heappush(self.edges, item)
        self.end = self.edges[0][0]
        self.near += other.near
        self.winding += other.winding

    def crosses(self, high: "_Line") -> bool:
        """Return whether the line above crosses this one before one of them ends."""
        if self.end <= high.end:
            return turn(high.start, high.end, self.end) > 0
        return turn(self.start, self.end, high.end) < 0


@dataclass(slots=True)
class _PlaneSweep:
    """A line that moves to the right, and at one x upward: the lines that meet it, from the lowest on."""

    points: Sequence[Point]
    after: dict[int, int]
    before: dict[int, int] = field(init=False)
    lines: list[_Line] = field(default_factory=list)
    triangles: list[Triangle] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.before = {then: corner for corner, then in self.after.items()}

    def advance(self, point: Point, corners: list[int]) -> bool:
        """Move to the next point, where these corners are; return False if edges cross or overlap."""
        first, last = self._lines_at(point)
        left = self.lines[first:last]
        below = self.lines[first - 1] if first else None
        if not self._bend(point, corners, below, left):
            passing = [rest for line in left if (rest := self._passing(line, point))]
            right = self._right_lines(point, corners, passing)
            windings = [line.winding for line in right]
            windings = list(accumulate(windings, initial=1 if below and below.region else 0))
            if len(passing) > 1 or min(windings) < 0 or max(windings) > 1:
                return False
            self._fill(point, below, left, right, windings[1:])
            self.lines[first:last] = left = right
        near = self.lines[max(first - 1, 0) : first + len(left) + 1]
        return not any(low.crosses(high) for low, high in pairwise(near))

    def _lines_at(self, point: Point) -> tuple[int, int]:
        """Return the range of lines that the point is on."""
        lines, first, last, (x, y) = self.lines, 0, len(self.lines), point
        while first < last:
            middle = (first + last) // 2
            (x0, y0), (x1, y1) = lines[middle].start, lines[middle].end
            if (x1 - x0) * (y - y0) > (y1 - y0) * (x - x0):
                first = middle + 1
            else:
                last = middle
        while last < len(lines) and not turn(lines[last].start, lines[last].end, point):
            last += 1
        return first, last

    def _bend(self, point: Point, corners: list[int], below: _Line | None, left: list[_Line]) -> bool:
        """Continue one edge by the next, which is most of what happens; return False for all other points."""
        if len(corners) > 1 or len(left) != 1 or len(left[0].edges) != 1 or left[0].end != point:
            return False
        (corner,), (line,) = corners, left
        after, before = self.after[corner], self.before[corner]
        edge, other = (corner, after) if line.edges[0][1] == before else (before, before)
        end = self.points[other]
        if end < point:
            return False
        line.start, line.end, line.edges = point, end, [(end, edge)]
        if line.region:
            self.triangles += line.region.add_below([_BorderNode(corner, point)])
        if below and below.region:
            self.triangles += below.region.add_above([_BorderNode(corner, point)])
        return True

    def _passing(self, line: _Line, point: Point) -> _Line | None:
        """Leave the edges that end at a point near it; return a line of the others, if there are any."""
        line.near = []
        while line.edges and line.edges[0][0] == point:
            line.near.append(heappop(line.edges)[1])
        winding = line.winding - sum(map(self._winding, line.near))
        return _Line(point, line.edges, winding) if line.edges else None

    def _right_lines(self, point: Point, corners: list[int], passing: list[_Line]) -> list[_Line]:
        """Return the lines that go right from a point, from the lowest on."""
        points, lines = self.points, passing.copy()
        for corner in corners:
            for edge, end in ((corner, self.after[corner]), (self.before[corner], self.before[corner])):
                if points[end] > point:
                    lines.append(_Line(point, [(points[end], edge)], self._winding(edge), [edge]))
        if len(lines) < 2:
            return lines

        def order(one: _Line, other: _Line) -> int:
            return turn(point, other.end, one.end)

        lines.sort(key=cmp_to_key(order))
        found = lines[:1]
        for line in lines[1:]:
            if turn(point, found[-1].end, line.end):
                found.append(line)
            else:
                found[-1].add(line)
        return found

    def _winding(self, edge: int) -> int:
        """Return how much more often the rings go round what is above an edge than what is below it."""
        return 1 if self.points[edge] < self.points[self.after[edge]] else -1

    def _nodes(self, point: Point, first: _Line, then: _Line) -> list[_BorderNode]:
        """Return nodes of corners at a point: where one line leaves it, and where another comes to it.

        The inside is between the lines, counter-clockwise. There is one node, unless edges without an area
        are in between; none if an edge passes the point, and no corner is on that side.
        """
        out = [edge for edge in first.near if self.points[edge] == point]
        into = dict.fromkeys(self.after[edge] for edge in then.near if self.points[edge] != point)
        both = [corner for corner in out if corner in into][:1]
        return [_BorderNode(corner, point) for corner in both or (*out[:1], *list(into)[:1])]

    def _fill(
        self, point: Point, below: _Line | None, left: list[_Line], right: list[_Line], windings: list[int]
    ) -> None:
        """Extend, end, join, split and start the regions at a point; `windings` are those above `right`."""
        triangles = self.triangles
        for low, high in pairwise(left):
            if low.region:
                out, *into = self._nodes(point, high, low)
                triangles += low.region.add_below(into or [out], always=True)
                if into:
                    triangles.append((into[0].corner, out.corner, low.region.top.corner))
        under = below.region if below else None
        over = left[-1].region if left else under
        if left and right:
            if under and (nodes := self._nodes(point, left[0], right[0])):
                triangles += under.add_above(nodes)
            if over and (nodes := self._nodes(point, right[-1], left[-1])):
                triangles += over.add_below(nodes)
        elif under and over and left:
            nodes = self._nodes(point, left[0], left[-1])
            triangles += over.add_below(nodes)
            triangles += under.add_above(nodes[:1])
            under.top = over.top
        elif under and right:
            over = under.split()
            triangles += under.add_above(self._nodes(point, right[-1], right[0]))
            triangles += over.add_below(self._nodes(point, right[-1], right[0])[:1])
        for (low, high), winding in zip(pairwise(right), windings, strict=False):
            if winding:
                nodes = self._nodes(point, low, high)
                _join(*nodes)
                low.region = _Region(nodes[0], nodes[-1], nodes[-1])
        if right:
            right[-1].region = over


def _gaps(
    points: Sequence[Point], after: dict[int, int], directed: set[tuple[int, int]]
) -> Iterator[list[int]]:
    """Yield the cycles of edges that triangles lack, given those that they have.

    They turn back where they can: then none goes round a part with an area.
    """
    missing: dict[int, list[int]] = {}
    for u, v in [*after.items(), *((v, u) for u, v in directed if after.get(u) != v)]:
        if (u, v) not in directed:
            missing.setdefault(u, []).append(v)
    for start in sorted(missing):
        path = {start: None}
        before = corner = start
        while choices := missing.get(corner):
            following = min(choices, key=lambda then: _kind(points[before], points[corner], points[then]))
            choices.remove(following)
            before, corner = corner, following
            if corner in path:
                cycle = [corner]
                while (last := path.popitem()[0]) != corner:
                    cycle.append(last)
                yield cycle[::-1]
            path[corner] = None


def _kind(a: Point, b: Point, c: Point) -> int:
    """Return 0 where the way from a over b to c turns back or rests, 1 where it is straight, else 2."""
    if turn(a, b, c):
        return 2
    return (b[0] - a[0]) * (c[0] - b[0]) + (b[1] - a[1]) * (c[1] - b[1]) > 0


def _without_area(points: Sequence[Point], ring: deque[int]) -> Iterator[Triangle]:
    """Yield triangles without an area, as far as a ring consists of them."""
    found = 0  # corners in a row that have an area
    while 2 < len(ring) > found:
        a, b, c = ring[-1], ring[0], ring[1]
        if turn(points[a], points[b], points[c]):
            ring.rotate(-1)
            found += 1
        else:
            yield a, b, c
            ring.popleft()
            ring.rotate(1)
            found = max(found - 1, 0)
