"""Path sums in grids: a ray's stretches, each in one cell, are added while the ray is cut."""

from typing import Any, NamedTuple

import numpy as np

from raybox.compiler.decorators import device, inlined, whole, yes
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import float64, prefetch, prefetch_to_write, vector_code, void
from raybox.compiler.simd import F64, I64, Lanes, constant, splat
from raybox.compiler.simd_arrays import Register, loop
from raybox.geometry import GridRows, RayRows
from raybox.hits.path_lengths import write_exactly
from raybox.primitives.ray import Ray, origin_row
from raybox.queries.path_sums.listed import ScaledRays, near_one
from raybox.queries.path_sums.stream import add_listed
from raybox.queries.path_sums.sums import (
    ItemSums,
    RaySums,
    add_length,
    finish_ray,
    prefetch_item,
    start_ray,
)
from raybox.queries.per_ray import select_rays
from raybox.queries.segments import cut
from raybox.traversal.job import Job, RaySpan
from raybox.traversal.plane_slabs import Passages, Way, pass_cells, passages_of
from raybox.traversal.protocol import SegmentHooks
from raybox.traversal.segments import cut_rays
from raybox.traversal.time_keys import PADDING, Stretches, get, time_of, times_of
from raybox.validation import Floats, Ints, freeze

_LARGEST = 2.0**500  # of coordinates, for rays that stay as they are
_LOWEST, _HIGHEST = 2.0**-20, 2.0**20  # of the largest component of their directions


class CellRecorder(NamedTuple):
    """What the lengths of a ray's stretches are added to."""

    sums: Any
    speeds: Floats
    """of each ray: the length of its direction"""


class RaySumRecorder(NamedTuple):
    """Sums of rays, of one channel: each stays in a register while its ray is cut."""

    values: Any  # float64 (M, 1), or (0, 1): all are 1
    results: Any  # float64 (rays, 1)
    speeds: Floats


class RaySum(NamedTuple):
    """The sum of a ray so far, and the length of its direction."""

    total: float
    speed: float


@device
def _begin(recorder: CellRecorder, k: int) -> int:
    """Begin the sums of a ray; return its number."""
    start_ray(recorder.sums, whole(k), whole(k), True)
    return whole(k)


@inlined
def _record(recorder: CellRecorder, k: int, _ray: Ray, cell: int, t_enter: float, t_exit: float) -> int:
    add_length(recorder.sums, k, cell, (t_exit - t_enter) * recorder.speeds[k])
    return k


@device
def _end(recorder: CellRecorder, _state: int, k: int) -> bool:
    finish_ray(recorder.sums, whole(k), whole(k))
    return True


@inlined
def _prefetch(recorder: CellRecorder, cell: int) -> None:
    prefetch_item(recorder.sums, cell)


HOOKS: SegmentHooks[CellRecorder, int, Way] = SegmentHooks(
    CellRecorder, _begin, _record, _end, prefetch_cell=_prefetch
)


@inlined
def _begin_sum(recorder: RaySumRecorder, k: int) -> RaySum:
    return RaySum(0.0, recorder.speeds[k])


@inlined
def _add_cell(
    recorder: RaySumRecorder, state: RaySum, _ray: Ray, cell: int, t_enter: float, t_exit: float
) -> RaySum:
    value = recorder.values[cell, 0] if recorder.values.shape[0] > 0 else 1.0
    more = (t_exit - t_enter) * state.speed * value if value != 0.0 else 0.0  # 0 times inf counts 0
    return RaySum(state.total + more, state.speed)


@vector_code(float64)
def _sum_of(b: Any, values: Any, speed: Any, stretches: Any) -> Any:
    """Return the sum of value times length over stretches, whose times are finite."""
    lanes = PADDING + 1
    total = Register(b, constant(b, F64, lanes, 0.0).value)
    factor = splat(b, speed, lanes)
    with loop(b, stretches.cell_count, lanes) as s:
        begin, end = (times_of(stretches.keys.load(b.add(s, I64(k)), lanes)) for k in (0, 1))
        cells = [stretches.cells.get(b.add(s, I64(k))) for k in range(lanes)]
        total.value = (total.lanes + (end - begin) * factor * values.gather(cells)).value
    low, high = total.lanes.halves()
    both = low + high
    return b.fadd(both.lane(0), both.lane(1))


@inlined
def _add_cells(recorder: RaySumRecorder, state: RaySum, _ray: Ray, stretches: Stretches) -> RaySum:
    if recorder.values.shape[0] > 0:
        return RaySum(_sum_of(recorder.values, state.speed, stretches), state.speed)
    begin, end = get(stretches.keys, 0), get(stretches.keys, stretches.cell_count)
    return RaySum((time_of(end) - time_of(begin)) * state.speed, state.speed)


@inlined
def _write_sum(recorder: RaySumRecorder, state: RaySum, k: int) -> bool:
    recorder.results[k, 0] = state.total
    return True


@inlined
def _prefetch_value(recorder: RaySumRecorder, cell: int) -> None:
    if recorder.values.shape[0] > 0:
        prefetch(recorder.values, cell)


RAY_SUM_HOOKS: SegmentHooks[RaySumRecorder, RaySum, Way] = SegmentHooks(
    RaySumRecorder, _begin_sum, _add_cell, _write_sum, _add_cells, prefetch_cell=_prefetch_value
)


class CellSumRecorder(NamedTuple):
    """Sums of cells, of one channel, that one thread adds to."""

    given: Any  # float64 (rays, 1), or (0, 1): all are 1
    sums: Any  # float64 (M, 1)
    speeds: Floats
    per_hit: bool


class Deposited(NamedTuple):
    """The weight of a ray, and the length of its direction."""

    weight: float
    speed: float


@inlined
def _begin_deposit(recorder: CellSumRecorder, k: int) -> Deposited:
    return Deposited(recorder.given[k, 0] if recorder.given.shape[0] > 0 else 1.0, recorder.speeds[k])


@inlined
def _add_to_cell(
    recorder: CellSumRecorder, state: Deposited, _ray: Ray, cell: int, t_enter: float, t_exit: float
) -> Deposited:
    if state.weight != 0.0:  # 0 times inf counts 0
        more = 1.0 if recorder.per_hit else (t_exit - t_enter) * state.speed
        recorder.sums[cell, 0] += state.weight * more
    return state


@vector_code(void)
def _add_lengths(b: Any, sums: Any, ray: Any, per_hit: Any, passages: Any) -> None:
    """Add weight times length to the cells of a ray, four at a time, whose times are finite.

    A ray is in a cell once, so no cell is among four twice but the last one, which the padding repeats. It is
    stored last: the padding's sums are overwritten.
    """
    lanes = PADDING + 1
    weight, speed = splat(b, ray.weight, lanes), splat(b, ray.speed, lanes)
    with loop(b, passages.cell_count, lanes) as s:
        durations = passages.durations.load(s, lanes).bits(F64)
        cells = [passages.cells.get(b.add(s, I64(k))) for k in range(lanes)]
        lengths = weight * (durations * speed)
        more = Lanes(b, b.select(per_hit, weight.value, lengths.value))
        total = sums.gather(cells) + more
        for k in reversed(range(lanes)):
            sums.put(total.lane(k), cells[k])


@inlined
def _add_passages(recorder: CellSumRecorder, state: Deposited, passages: Passages) -> Deposited:
    if state.weight != 0.0:
        _add_lengths(recorder.sums, state, recorder.per_hit, passages)
    return state


@inlined
def _add_to_cells(recorder: CellSumRecorder, state: Deposited, _ray: Ray, stretches: Stretches) -> Deposited:
    return _add_passages(recorder, state, passages_of(stretches))


@inlined
def _add_way(recorder: CellSumRecorder, state: Deposited, way: Way) -> tuple[bool, Deposited]:
    passages = pass_cells(way, recorder.sums)
    return passages.cell_count > 0, _add_passages(recorder, state, passages)


@inlined
def _prefetch_sum(recorder: CellSumRecorder, cell: int) -> None:
    prefetch_to_write(recorder.sums, cell)


CELL_SUM_HOOKS = SegmentHooks(
    CellSumRecorder,
    _begin_deposit,
    _add_to_cell,
    yes,
    record_ray=_add_to_cells,
    record_way=_add_way,
    prefetch_cell=_prefetch_sum,
)


def add_cells(job: Job, sums: Any) -> None:
    """Add the stretches of all rays of a job to sums that have an entry for each ray."""
    rows: Any = job.rows
    rays, speeds, lost = _with_speeds(job.rays, rows)
    recorder: Any = CellRecorder(sums, speeds)
    if isinstance(sums, RaySums) and sums.results.shape[1] == 1:
        recorder = RaySumRecorder(sums.values, sums.results, speeds)
    if isinstance(sums, ItemSums) and sums.sums.shape[1] == 1 and not sums.shared:
        recorder = CellSumRecorder(sums.given, sums.sums, speeds, sums.per_hit)
    cut_rays(job._replace(rays=rays), RaySpan(0, len(speeds)), recorder)
    if lost.size:
        _add_exactly(job, lost, sums)


def _add_exactly(job: Job, rays: Ints, sums: Any) -> None:
    """Add the stretches of some rays by exact times."""
    part = select_rays(job, rays)
    found = cut(part)
    counts, lengths = np.diff(found.offsets), np.empty(len(found.index))
    ray_of = np.repeat(np.arange(len(rays)), counts)
    write_exactly(part.rays, part.rows, (ray_of, found.index), lengths)
    add_listed(sums, rays, counts, found.index, lengths)


@entry
def _write_speeds(rays: Any, speeds: Any) -> int:
    """Write the lengths of directions, NaN for rays that must be scaled; return how many these are."""
    others = 0
    o, d = rays.origins, rays.directions
    for k in range(speeds.size):
        x, y, z = d[k, 0], d[k, 1], d[k, 2]
        i = origin_row(rays, k)
        way, place = max(abs(x), abs(y), abs(z)), max(abs(o[i, 0]), abs(o[i, 1]), abs(o[i, 2]))
        speeds[k] = np.sqrt(x * x + y * y + z * z)
        if not (_LOWEST < way < _HIGHEST and place < _LARGEST):
            speeds[k] = np.nan
            others += 1
    return others


class _TimedRays(NamedTuple):
    """Rays whose times are accurate, the lengths of their directions, and the other rays."""

    rays: RayRows
    speeds: Floats
    lost: Ints
    """rays that scaling would change; their ranges in `rays` are empty"""


def _with_speeds(rays: RayRows, grid: GridRows) -> _TimedRays:
    """Return rays, some of their directions scaled by powers of two, and the lengths of these directions.

    A ray is scaled or not whatever the others are: so are the bits of its times.
    """
    lost = np.empty(0, np.int64)
    speeds = np.empty(len(rays.directions))
    edges = grid.x_edges, grid.y_edges, grid.z_edges
    if max(abs(one[k]) for one in edges for k in (0, -1)) < _LARGEST:
        count = _write_speeds(rays, speeds)
    else:
        speeds[:], count = np.nan, len(speeds)
    if count:
        others = np.flatnonzero(np.isnan(speeds))
        rays, unscaled = _scaled(rays, others)
        lost = others[unscaled]
        with np.errstate(over="ignore"):
            speeds[others] = np.sqrt(np.square(rays.directions[others]).sum(axis=1))
    freeze(speeds)
    return _TimedRays(rays, speeds, lost)


def _scaled(rays: RayRows, numbers: Ints) -> ScaledRays:
    """Return rays of which some are scaled; the range of one that stays as it was is empty."""
    count = len(rays.directions)
    if len(numbers) == count:
        scaled, unscaled = near_one(rays)
        directions, t_min, t_max = scaled.directions, scaled.t_min, scaled.t_max.copy()
    else:
        bounds = [np.broadcast_to(t, count) for t in (rays.t_min, rays.t_max)]
        of_some = rays.directions[numbers], bounds[0][numbers], bounds[1][numbers]
        scaled, unscaled = near_one(RayRows(rays.origins[:0], *of_some))
        directions, t_min, t_max = rays.directions.copy(), bounds[0].copy(), bounds[1].copy()
        directions[numbers], t_min[numbers], t_max[numbers] = scaled.directions, scaled.t_min, scaled.t_max
    t_max[numbers[unscaled]] = -np.inf
    made = rays._replace(directions=directions, t_min=t_min, t_max=t_max)
    freeze(*made)
    return ScaledRays(made, unscaled)
