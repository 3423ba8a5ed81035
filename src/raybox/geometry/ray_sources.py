"""Rays that kernels read block by block: `RaySource`, and those of cameras and lidars.

Rays of arrays that are not copied are in `raybox.geometry.uncopied_rays`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple, Self, TypeVar, cast

import numpy as np

from raybox.compiler import huge_pages
from raybox.compiler.buffer_pool import BufferPool
from raybox.geometry.camera import Calibration
from raybox.geometry.lidar import LidarSweep, directions_of, origins_of, poses_of
from raybox.geometry.ray_blocks import write_lidar, write_pinhole
from raybox.geometry.rows import RayRows
from raybox.validation import Floats, Ints, freeze

_BLOCK = 1 << 14  # rays of a block, which a core's second cache holds; packets form groups of as many
_LEAST = 16  # rays of a block, where there are so many: vector code reads sixteen at once


FROM_START, TO_INFINITY = np.zeros(1), np.full(1, np.inf)
freeze(FROM_START, TO_INFINITY)


class Window(NamedTuple):
    """The rays begin <= k < end: ray k is in row k - first."""

    rays: RayRows
    first: int
    begin: int
    end: int


class RayBlock(NamedTuple):
    """Memory for the rays of a block."""

    origins: Floats
    directions: Floats


class RaySource(ABC):
    """Flat rays that are not in memory as kernels read them.

    shape: that of the rays of a user, which number through it in C order.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        ndim_space: int,
        t_min: Floats = FROM_START,
        t_max: Floats = TO_INFINITY,
    ) -> None:
        self.shape, self.size, self.ndim_space = shape, prod(shape), ndim_space
        self.t_min, self.t_max = t_min, t_max
        self._start = 0

    @abstractmethod
    def arrays(self) -> tuple[Floats, Floats]:
        """Return origins and directions (size, D), read-only."""

    @abstractmethod
    def select(self, numbers: Ints | slice) -> RayRows:
        """Return some rays."""

    @abstractmethod
    def _rows(self, begin: int, end: int, memory: RayBlock) -> RayRows:
        """Return the rays begin <= k < end, in this memory or elsewhere."""

    def _like(self) -> Self:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def _unchecked(self, begin: int, end: int, memory: RayBlock) -> RayRows:
        """Return rays as `_rows` does, of which some may be invalid."""
        return self._rows(begin, end, memory)

    def _check(self, rows: RayRows) -> None:  # noqa: B027  # most rays are checked before
        """Raise `InvalidInput` for what `_unchecked` has not checked."""

    def reshaped(self, shape: tuple[int, ...]) -> Self:
        """Return the same rays as those of another shape."""
        made = self._like()
        made.shape = shape
        return made

    def with_ends(self, t_max: Floats) -> Self:
        """Return the same rays with another t_max, one for each."""
        made = self._like()
        made.t_max = t_max
        return made

    def part(self, begin: int, end: int) -> Self:
        """Return the rays begin <= k < end."""
        made = self._like()
        made.t_min, made.t_max = ranges_at(self, slice(begin, end))
        made.size, made._start = end - begin, self._start + begin
        return made

    def windows(self, begin: int, end: int, band: int) -> Iterator[Window]:
        """Yield the rays begin <= k < end in blocks, each in the memory of the one before.

        Blocks are of whole bands, if one fits.
        """
        memory = _BLOCKS.take()
        size = _BLOCK // band * band or _BLOCK
        for start in range(begin, end, size):
            stop = min(start + size, end)
            first = max(0, min(start, stop - _LEAST))
            rows = self._unchecked(first, stop, memory)
            freeze(*rows)
            yield Window(rows, first, start, stop)
            self._check(rows)  # after its first use, when it is in the caches
        _BLOCKS.put_back(memory)


def _make_block() -> RayBlock:
    return RayBlock(*(huge_pages.empty((_BLOCK + _LEAST, 3), np.float64) for _ in range(2)))


_BLOCKS = BufferPool(_make_block)


class SensorRays(RaySource):
    """Rays in directions that are computed: numbers count through rows of columns."""

    def __init__(self, origin: Floats, shape: tuple[int, ...]) -> None:
        super().__init__(shape, 3)
        self._columns = shape[-1]
        self._origins: Floats = np.array(
            np.broadcast_to(origin, (min(self.size, _BLOCK + _LEAST), 3)), order="C"
        )
        self._arrays: tuple[Floats, Floats] | None = None
        freeze(self._origins)

    @abstractmethod
    def _parameters(self) -> tuple[object, ...]:
        """Return the arguments that make all of these rays."""

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return _part_of, (type(self), self._parameters(), self._start, self._start + self.size)

    def part(self, begin: int, end: int) -> Self:
        """Return the rays begin <= k < end; arrays that are stored are shared."""
        made = super().part(begin, end)
        if self._arrays is not None:
            o, d = (values[begin:end] for values in self._arrays)
            made._arrays = o, d
        return made

    def _write(self, begin: int, block: RayBlock) -> Floats:
        """Write the directions of the rays from `begin` on; return their origins."""
        numbers = np.arange(begin, begin + len(block.directions), dtype=np.int64)
        block.directions[...] = self._directions(numbers)
        return _repeated(self._origins, len(numbers))

    @abstractmethod
    def _directions(self, numbers: Ints) -> Floats:
        """Return the directions of some rays."""

    def _origins_of(self, numbers: Ints) -> Floats:
        """Return the origins of some rays."""
        return _repeated(self._origins, len(numbers))

    def _block(self, count: int) -> RayBlock:
        """Return memory for some rays, for origins only where `_write` writes any."""
        return RayBlock(np.empty((0, 3)), huge_pages.pooled_input((count, 3), np.float64))

    def arrays(self) -> tuple[Floats, Floats]:
        """Return origins and directions (size, 3), read-only; they are stored."""
        if self._arrays is None:
            block = self._block(self.size)
            self._arrays = self._write(self._start, block), block.directions
            freeze(*self._arrays)
        return self._arrays

    def select(self, numbers: Ints | slice) -> RayRows:
        """Return some rays."""
        if isinstance(numbers, slice):
            begin, end, _ = numbers.indices(self.size)
            rows = self._rows(begin, end, self._block(end - begin))
        else:
            places = self._start + numbers
            ranges = ranges_at(self, numbers)
            rows = RayRows(self._origins_of(places), self._directions(places), *ranges)
        freeze(*rows)
        return rows

    def _rows(self, begin: int, end: int, memory: RayBlock) -> RayRows:
        block = RayBlock(*(values[: end - begin] for values in memory))
        origins = self._write(self._start + begin, block)
        return RayRows(origins, block.directions, *ranges_at(self, slice(begin, end)))


def _part_of(kind: type[SensorRays], parameters: tuple[Any, ...], begin: int, end: int) -> SensorRays:
    return kind(*parameters).part(begin, end)


def _repeated(points: Floats, count: int) -> Floats:
    """Return one of some equal points (P, 3) as (count, 3)."""
    if count <= len(points):
        return points[:count]
    made: Floats = huge_pages.pooled_input((count, 3), np.float64)
    made[...] = points[0]
    return made


class CameraRays(SensorRays):
    """The rays of a camera: a direction is the sum of a vector of its row and one of its column."""

    def __init__(self, origin: Floats, rows: Floats, columns: Floats) -> None:
        super().__init__(origin, (len(rows), len(columns)))
        self._camera = origin, rows, columns
        freeze(*self._camera)

    def _parameters(self) -> tuple[object, ...]:
        return self._camera

    def _write(self, begin: int, block: RayBlock) -> Floats:
        write_pinhole(*self._camera[1:], begin, block.directions)
        return _repeated(self._origins, len(block.directions))

    def _directions(self, numbers: Ints) -> Floats:
        _, rows, columns = self._camera
        row, column = np.divmod(numbers, self._columns)
        return rows[row] + columns[column]


class SkewedCameraRays(SensorRays):
    """The rays of a camera whose rows are skewed."""

    def __init__(self, camera: Calibration) -> None:
        super().__init__(camera.centre, (len(camera.rows), len(camera.across)))
        self._camera = camera

    def _parameters(self) -> tuple[object, ...]:
        return (self._camera,)

    def _directions(self, numbers: Ints) -> Floats:
        _, rows, across, skewed, focal, right = self._camera
        row, column = np.divmod(numbers, self._columns)
        with np.errstate(over="ignore", invalid="ignore"):  # `Rays.from_camera` refuses what is not finite
            x = (across[column] - skewed[row]) / focal
            return rows[row] + x[:, None] * right


def calibrated_rays(camera: Calibration) -> SensorRays:
    """Return the rays of a calibrated camera."""
    if camera.skewed.any():
        return SkewedCameraRays(camera)
    with np.errstate(over="ignore", invalid="ignore"):  # likewise
        columns = (camera.across / camera.focal)[:, None] * camera.right
    return CameraRays(camera.centre, camera.rows, columns)


class LidarRays(SensorRays):
    """The rays of a lidar: a direction of each elevation and azimuth, at one pose or at several."""

    def __init__(self, sweep: LidarSweep, shape: tuple[int, ...]) -> None:
        self._sweep, self._whole, self._moves = sweep, shape, len(sweep.origins) != 1
        super().__init__(np.zeros(3) if self._moves else sweep.origins, shape)
        freeze(*sweep)

    def _parameters(self) -> tuple[object, ...]:
        return self._sweep, self._whole

    def part(self, begin: int, end: int) -> Self:
        """Return the rays begin <= k < end, with their poses alone."""
        made, size = super().part(begin, end), self._sweep.rays_of_pose
        if size:
            first, last = made._start // size, -(-(made._start + made.size) // size)
            made._sweep, made._whole = poses_of(self._sweep, first, last), (last - first, size)
            made._start -= first * size
        return made

    def _block(self, count: int) -> RayBlock:
        block = super()._block(count)
        return RayBlock(huge_pages.pooled_input((count, 3), np.float64), block[1]) if self._moves else block

    def _write(self, begin: int, block: RayBlock) -> Floats:
        origins = block.origins if self._moves else _repeated(self._origins, len(block.directions))
        write_lidar(self._sweep, begin, block.origins[: len(origins) * self._moves], block.directions)
        return origins

    def _directions(self, numbers: Ints) -> Floats:
        return directions_of(self._sweep, numbers)

    def _origins_of(self, numbers: Ints) -> Floats:
        return origins_of(self._sweep, numbers) if self._moves else super()._origins_of(numbers)


NO_ROWS = RayRows(np.zeros((0, 3)), np.zeros((0, 3)), FROM_START, TO_INFINITY)
freeze(*NO_ROWS)
AnyRays = RayRows | RaySource
"""Rays of a query: in memory as kernels read them, or made block by block."""
R = TypeVar("R", bound=AnyRays)


def ray_count(rays: AnyRays) -> int:
    """Return the number of rays."""
    return len(rays.origins) if isinstance(rays, RayRows) else rays.size


def ranges_at(rays: AnyRays, numbers: Ints | slice) -> tuple[Floats, Floats]:
    """Return t_min and t_max of some rays, or the one of all."""
    low, high = (t if t.size == 1 else t[numbers] for t in (rays.t_min, rays.t_max))
    return low, high


def select_rows(rays: AnyRays, numbers: Ints | slice) -> RayRows:
    """Return some rays by their numbers, in memory."""
    if not isinstance(rays, RayRows):
        return rays.select(numbers)
    rows = RayRows(rays.origins[numbers], rays.directions[numbers], *ranges_at(rays, numbers))
    freeze(*rows)
    return rows


def all_rows(rays: AnyRays) -> RayRows:
    """Return all rays, in memory."""
    return rays if isinstance(rays, RayRows) else rays.select(slice(None))


def part_of(rays: R, begin: int, end: int) -> R:
    """Return the rays begin <= k < end."""
    part = select_rows(rays, slice(begin, end)) if isinstance(rays, RayRows) else rays.part(begin, end)
    return cast(R, part)


def with_ends(rays: R, t_max: Floats) -> R:
    """Return the same rays with another t_max, one for each."""
    made = rays._replace(t_max=t_max) if isinstance(rays, RayRows) else rays.with_ends(t_max)
    return cast(R, made)


def windows(rays: AnyRays, begin: int, end: int, band: int = 1) -> Iterator[Window]:
    """Return the rays begin <= k < end in blocks; of rays in memory there is one.

    Blocks are of whole bands, if one fits.
    """
    if isinstance(rays, RayRows):
        return iter([Window(rays, 0, begin, end)])
    return rays.windows(begin, end, band)
