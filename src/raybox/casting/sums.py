"""Sums over all rays, such as those of `deposit`: a part has the sums of every primitive, of a run of blocks.

Where terms have a bound, sums of a block are in fixed point (`raybox.queries.path_sums.fixed_point`): two
words, ``high + low / 2^B``, scaled alike in every block. They are added as integers of three words, so the
bits do not depend on which blocks a part covers. Other sums are floats, added in the order of the rays: parts
of them cover one block, or all blocks from the first on.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox.casting.arguments import Arguments, rows_at
from raybox.casting.blocks import BLOCK
from raybox.casting.job import SUMS, CastJob
from raybox.casting.part import BlockFacts, CastPart, PartFile, PartFolders, PartReader
from raybox.geometry import Rays
from raybox.hits.file_columns import Columns
from raybox.queries.deposit import partial_sums
from raybox.queries.names import Per
from raybox.queries.path_sums.fixed_point import BITS, TermLimits
from raybox.queries.table import GROUPS
from raybox.scene.scene import Scene
from raybox.validation import Floats

_ROWS = 1 << 16  # primitives: their sums are added, or written, at once
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
        return 3 if self.shifts else 1

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Of the numbers."""
        return np.dtype("<i8" if self.shifts else "<f8")


def sum_job(scene: Scene, dimension: int, size: int, arguments: Arguments) -> SumJob:
    """Return how sums are computed for blocks of `size` rays; raise for wrong arguments."""
    weights, where = arguments.get("weights"), arguments.get("where")
    per: Any = arguments.get("per", "length")
    channels = weights.shape[1] if isinstance(weights, np.ndarray) and weights.ndim == 2 else 1
    job = SumJob(per, len(scene), channels)
    ray, one = Rays(*np.random.default_rng(0).random((2, 1, dimension))), np.ones((1, channels))
    groups = 0 if GROUPS in arguments else None
    scene.deposit(ray, one, per=per, where=where, groups=groups)  # raises for wrong arguments
    if per == "length" and not np.isfinite(scene.bounds).all():
        return job
    limits = TermLimits(max(size, BLOCK), _largest(weights), np.inf)
    fixed = partial_sums(scene, ray, one, limits=limits, per=per, workers=1, where=where, groups=groups).fixed
    shifts = len(fixed.shifts)
    bits = fixed.bits or BITS - (limits.rays - 1).bit_length()  # 0: no part of the scene is visited
    return job._replace(limits=limits, bits=bits, shifts=shifts)


def _largest(weights: object) -> float:
    """Return the largest size of a weight; they may be mapped, and larger than memory."""
    if not isinstance(weights, np.ndarray):
        return 1.0
    blocks = (rows_at(weights, begin, begin + BLOCK) for begin in range(0, len(weights), BLOCK))
    return max((float(np.abs(block).max(initial=0.0)) for block in blocks), default=0.0)


class Sums:
    """The sums of consecutive blocks."""

    def __init__(self, job: SumJob) -> None:
        self._job = job
        self._sums: NDArray[Any] = np.zeros((job.primitives, job.channels, job.words), job.dtype)
        self._shifts: _Shifts = np.full(job.shifts, _NO_SHIFT, np.int16)
        self.is_whole = True
        """False if some terms of a block are missing: an error came while they were added."""

    def add_block(self, scene: Scene, rays: Rays, workers: int, arguments: Arguments) -> None:
        """Add the terms of the rays of a block; their weights and groups are among the arguments."""
        job, weights = self._job, arguments.get("weights")
        options: Any = {name: arguments.get(name) for name in ("where", GROUPS)}
        options |= {"workers": workers, "per": job.per}
        if job.limits is None:
            terms, shifts = scene.deposit(rays, weights, **options), self._shifts
        else:
            terms, fixed = partial_sums(scene, rays, weights, limits=job.limits, **options)
            shifts = np.asarray(fixed.shifts)
        words = 1 if job.limits is None else 2
        terms = np.asarray(terms).reshape(job.primitives, job.channels, words)
        self.is_whole = False
        for begin in range(0, job.primitives, _ROWS):
            rows = slice(begin, begin + _ROWS)
            self._add(rows, terms[rows])
        np.maximum(self._shifts, np.maximum(shifts, _NO_SHIFT), out=self._shifts, casting="unsafe")
        self.is_whole = True

    def add(self, part: PartReader) -> None:
        """Add the sums of a part."""
        job = self._job
        for begin in range(0, job.primitives, _ROWS):
            rows = slice(begin, begin + _ROWS)
            count = self._sums[rows].size
            self._add(rows, _read(part, job.dtype, count).reshape(-1, job.channels, job.words))
        np.maximum(self._shifts, _read(part, np.dtype("<i2"), job.shifts), out=self._shifts)

    def _add(self, rows: slice, terms: NDArray[Any]) -> None:
        """Add sums of some primitives: floats, or the last two or all three words of integers."""
        total = self._sums[rows]
        if not self._job.shifts:
            with np.errstate(invalid="ignore", over="ignore"):
                total += terms
            return
        bits = self._job.bits
        below = (1 << bits) - 1
        low = total[..., 2] + terms[..., -1]
        middle = total[..., 1] + terms[..., -2] + (low >> bits)
        total[..., 2], total[..., 1] = low & below, middle & below
        total[..., 0] += middle >> bits
        if terms.shape[-1] == 3:
            total[..., 0] += terms[..., 0]

    def write(self, job: CastJob, folders: PartFolders, blocks: Sequence[BlockFacts]) -> CastPart:
        """Write the sums, of some blocks that follow one another, as a part that `add` reads."""
        with PartFile(folders) as file:
            for begin in range(0, self._job.primitives, _ROWS):
                file.write(self._sums[begin : begin + _ROWS])
            file.write(self._shifts)
            return file.complete(job, SUMS, blocks)

    def rows(self, names: Sequence[str]) -> Iterator[Columns]:
        """Yield the rows of the output, a row for each primitive; names: of the columns of sums."""
        for begin in range(0, self._job.primitives, _ROWS):
            some = self._floats(slice(begin, begin + _ROWS))
            numbers: Columns = {"index": range(begin, begin + len(some))}
            yield numbers | {name: some[:, k] for k, name in enumerate(names)}

    def _floats(self, rows: slice) -> Floats:
        """Return the sums (n, C) of some primitives."""
        some = self._sums[rows]
        if not self._job.shifts:
            return some[..., 0]
        shifts = self._shifts[rows] if len(self._shifts) > 1 else self._shifts
        unit = 2.0**self._job.bits
        sums: Floats = (some[..., 0] * unit + some[..., 1]) + some[..., 2] / unit
        return np.ldexp(sums, -np.maximum(shifts, -1022)[:, None].astype(np.int32))


def _read(part: PartReader, dtype: "np.dtype[Any]", count: int) -> NDArray[Any]:
    data = part.read(count * dtype.itemsize)
    if len(data) < count * dtype.itemsize:  # its checksum differs, too: the caller raises that
        data = data.ljust(count * dtype.itemsize, b"\0")
    return np.frombuffer(data, dtype)


def total_of(job: SumJob, folders: PartFolders, parts: Sequence[CastPart]) -> Sums:
    """Return the sums of all parts, in order."""
    total = Sums(job)
    for part in parts:
        with folders.open(part) as reader:
            total.add(reader)
    return total


def merge(job: CastJob, sums: SumJob, folders: PartFolders, parts: Sequence[CastPart]) -> CastPart:
    """Write one part of several that follow one another, in their place."""
    blocks = [block for part in parts for block in part.blocks]
    merged = total_of(sums, folders, parts).write(job, folders, blocks)
    for part in parts:
        folders.remove(part)
    return merged
