"""Sums over all rays, such as those of `deposit`: parts have partial sums of every primitive.

Where terms have a bound, partial sums are in fixed point (`raybox.queries.path_sums.fixed_point`): two words,
``high + low / 2^B``, scaled alike in every part. They are added as integers of three words, so the bits do
not depend on the order of the parts, nor on how many rays each has. Other sums are floats, added in the order
of the rays.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox.casting.arguments import Arguments, of_chunk
from raybox.casting.blocks import BLOCK, BlockRays
from raybox.casting.part import PartFile
from raybox.casting.result_columns import OutputSpec
from raybox.casting.scenes import AnyScene
from raybox.geometry import Rays
from raybox.queries.columns import ChunkResults, Columns
from raybox.queries.deposit import partial_sums
from raybox.queries.names import Per
from raybox.queries.path_sums.fixed_point import BITS, TermLimits
from raybox.scene.scene import Scene
from raybox.store.checksum import Data
from raybox.validation import Floats

_SUMS, _SHIFTS = "sums", "shifts"
_ROWS = 1 << 16  # primitives whose sums are added at once
_NO_SHIFT = -(1 << 15)
_Shifts = NDArray[np.int16]


class SumJob(NamedTuple):
    """How partial sums of a cast are computed, and the arrays of them."""

    per: Per
    primitives: int
    channels: int
    limits: TermLimits | None = None
    """None: sums are floats."""
    bits: int = 0
    shifts: int = 0
    """How many: one for each primitive, or for all; 0 for floats."""

    @property
    def words(self) -> int:
        """Numbers of a sum in a part."""
        return 2 if self.shifts else 1

    @property
    def total_words(self) -> int:
        """Numbers of a sum of all parts."""
        return 3 if self.shifts else 1

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Of the numbers."""
        return np.dtype("<i8" if self.shifts else "<f8")


def sum_job(scene: AnyScene, dimension: int, size: int, arguments: Arguments) -> SumJob:
    """Return how sums are computed for blocks of `size` rays; raise for wrong arguments."""
    weights, where = arguments.get("weights"), arguments.get("where")
    per: Any = arguments.get("per", "length")
    channels = weights.shape[1] if isinstance(weights, np.ndarray) and weights.ndim == 2 else 1
    job = SumJob(per, len(scene), channels)
    ray, one = Rays(*np.random.default_rng(0).random((2, 1, dimension))), np.ones((1, channels))
    scene.deposit(ray, one, per=per, where=where)  # raises for wrong arguments
    if per == "length" and not np.isfinite(scene.bounds).all():
        return job
    limits = TermLimits(max(size, BLOCK), _largest(weights), np.inf)
    fixed = partial_sums(scene, ray, one, limits=limits, per=per, workers=1, where=where).fixed
    shifts = len(fixed.shifts) if isinstance(scene, Scene) else len(scene)
    bits = fixed.bits or BITS - (limits.rays - 1).bit_length()  # 0: no part of the scene is visited
    return job._replace(limits=limits, bits=bits, shifts=shifts)


def _largest(weights: object) -> float:
    """Return the largest size of a weight; they may be mapped, and larger than memory."""
    if not isinstance(weights, np.ndarray):
        return 1.0
    blocks = (weights[begin : begin + BLOCK] for begin in range(0, len(weights), BLOCK))
    return max((float(np.abs(block).max(initial=0.0)) for block in blocks), default=0.0)


def results(
    scene: AnyScene, block: BlockRays, job: SumJob, workers: int, arguments: Arguments
) -> Iterator[ChunkResults]:
    """Yield the partial sums of a block."""
    weights = arguments.get("weights")
    how: Any = {"workers": workers, "where": arguments.get("where")}
    if isinstance(weights, np.ndarray):
        weights = of_chunk(weights, "weights", block.first, len(block.rays))
    if job.limits is None:
        columns: Columns = {_SUMS: scene.deposit(block.rays, weights, per=job.per, **how)}
    else:
        words, fixed = partial_sums(scene, block.rays, weights, limits=job.limits, per=job.per, **how)
        shifts = np.broadcast_to(np.maximum(fixed.shifts, _NO_SHIFT), job.shifts)
        columns = {_SUMS: words, _SHIFTS: shifts.astype(np.int16)}
    yield ChunkResults(0, lambda _: columns)


class SumsWriter:
    """The numbers of all sums, then their shifts."""

    def __init__(self, _spec: OutputSpec, file: PartFile) -> None:
        self._file = file

    def add(self, columns: Columns) -> None:
        """Write the partial sums of a block."""
        for column in columns.values():
            assert isinstance(column, np.ndarray)
            self._file.write(np.ascontiguousarray(column))

    def finish(self) -> tuple[int, int]:
        """Return the body: all bytes."""
        return 0, self._file.length


class SumTotal:
    """The sums of all parts so far."""

    def __init__(self, job: SumJob) -> None:
        self._job, self.primitives = job, job.primitives
        self._sums: NDArray[Any] = np.zeros((job.primitives, job.channels, job.total_words), job.dtype)
        self._shifts: _Shifts = np.full(job.shifts, _NO_SHIFT, np.int16)

    def add(self, file: BinaryIO) -> None:
        """Add the partial sums of a part, which its file holds from its position on."""
        job = self._job
        numbers = job.channels * job.words
        for begin in range(0, job.primitives, _ROWS):
            some = self._sums[begin : begin + _ROWS]
            part = _read(file, job.dtype, len(some) * numbers).reshape(len(some), job.channels, -1)
            self._add(some, part)
        np.maximum(self._shifts, _read(file, np.dtype("<i2"), job.shifts), out=self._shifts)

    def _add(self, total: NDArray[Any], part: NDArray[Any]) -> None:
        if not self._job.shifts:
            with np.errstate(invalid="ignore", over="ignore"):
                total += part
            return
        bits = self._job.bits
        below = (1 << bits) - 1
        low = total[..., 2] + part[..., 1]
        middle = total[..., 1] + part[..., 0] + (low >> bits)
        total[..., 2], total[..., 1] = low & below, middle & below
        total[..., 0] += middle >> bits

    def floats(self, begin: int, end: int) -> Floats:
        """Return the sums (n, C) of some primitives."""
        some = self._sums[begin:end]
        if not self._job.shifts:
            return some[..., 0]
        shifts = self._shifts[begin:end] if len(self._shifts) > 1 else self._shifts
        unit = 2.0**self._job.bits
        sums: Floats = (some[..., 0] * unit + some[..., 1]) + some[..., 2] / unit
        return np.ldexp(sums, -np.maximum(shifts, -1022)[:, None].astype(np.int32))

    def data(self) -> Iterator[Data]:
        """Yield the bytes that `load` reads."""
        yield self._sums
        yield self._shifts

    def load(self, file: BinaryIO) -> None:
        """Read the sums that a file holds from its position on."""
        for array in (self._sums, self._shifts):
            array[...] = _read(file, array.dtype, array.size).reshape(array.shape)

    def clear(self) -> None:
        """Forget all parts."""
        self._sums[...], self._shifts[...] = 0, _NO_SHIFT


def _read(file: BinaryIO, dtype: "np.dtype[Any]", count: int) -> NDArray[Any]:
    data = file.read(count * dtype.itemsize)
    if len(data) < count * dtype.itemsize:
        raise OSError("a part has become shorter")
    return np.frombuffer(data, dtype)
