"""The independent truth of sums over paths: lengths inside of boxes in Fractions, and stated bounds."""

import math
from collections import Counter
from fractions import Fraction
from typing import NamedTuple

import numpy as np

import exact_instances
from exact import INF

_FINE = 1 << 400
TINY = Fraction(1, 1 << 1000)
LARGEST = Fraction(math.ldexp(1.0 - 2.0**-53, 1024))


def root(x: Fraction) -> Fraction:
    """Return the square root to 400 bits of itself, at least."""
    scale = 1
    while x * scale * scale < _FINE:
        scale *= _FINE
    return Fraction(math.isqrt(int(x * scale * scale)), scale)


class Path(NamedTuple):
    """A ray inside of a box; `reach` is how far from the origin it enters and leaves it, added."""

    geometry: int
    index: int
    length: Fraction | float
    reach: Fraction | float
    touch: bool
    inside: bool  # the ray starts inside of it
    t: Fraction | float


def paths(rays, *geometries, where=None) -> list[list[Path]]:
    """Return the paths of each ray, those of length 0 too."""
    flat = rays.reshape(-1)
    found = exact_instances.along(flat, *geometries, where=where)
    parts = exact_instances.parts_of(flat)
    return [[path(hit, d, *span) for hit in row] for row, (_, d, span) in zip(found, parts, strict=True)]


def path(hit, d, low, high) -> Path:
    speed = root(sum(Fraction(x) ** 2 for x in d)) if any(d) else Fraction(0)
    begin, end = max(hit.t_enter, low), min(hit.t_exit, high)
    inside = hit.t_enter < low
    if speed == 0:
        length = reach = Fraction(0)
    elif INF in (abs(begin), abs(end)):
        length = reach = INF
    else:
        begin, end = Fraction(begin), Fraction(end)
        length, reach = (end - begin) * speed, (abs(begin) + abs(end)) * speed
    return Path(hit.geometry, hit.index, length, reach, hit.touch, inside, hit.t)


class Sum(NamedTuple):
    """The exact sum of terms factor * length, and how far off a result may be."""

    value: Fraction | float
    bound: Fraction
    size: Fraction = Fraction(0)  # of finite terms, or a length: past float64's range, results may be, too

    def is_infinite(self, result: float) -> bool:
        """Return whether a result is the value, which is infinite or NaN; NaN if finite terms overflow."""
        return result == self.value or (
            math.isnan(result) and (math.isnan(self.value) or self.size > LARGEST)
        )


def exact_sum(terms, relative) -> Sum:
    """Return the sum of terms (factor, length, reach).

    relative: number of terms -> the share of the sum of abs(factor) * reach that is the bound.
    """
    terms = [(Fraction(factor), length, reach) for factor, length, reach in terms if factor != 0]
    ends = {math.copysign(1.0, factor) for factor, length, _ in terms if length == INF}
    if ends:
        value, bound = ends.pop() * INF if len(ends) == 1 else math.nan, Fraction(0)
        return Sum(value, bound, exact_sum([x for x in terms if x[1] != INF], relative).size)
    value = sum((factor * length for factor, length, _ in terms), Fraction(0))
    size = sum((abs(factor) * reach for factor, _, reach in terms), Fraction(0))
    tiny = sum((1 + abs(factor) for factor, _, _ in terms), Fraction(0)) * TINY
    longest = max((length + reach / (1 << 50) for _, length, reach in terms), default=Fraction(0))
    total = max(longest, sum((abs(factor) * length for factor, length, _ in terms), Fraction(0)))
    return Sum(value, relative(len(terms)) * size + tiny, total)


def plain(count):
    """Return the share that `integrate` and `deposit` state."""
    return Fraction(count + 8, 1 << 52)


def assert_sums(got, want: list[Sum], counts: Counter) -> None:
    """Assert sums against the truth; count what was compared."""
    got = np.asarray(got).reshape(-1)
    assert got.dtype == np.float64
    assert len(got) == len(want)
    for k, (mine, true) in enumerate(zip(got.tolist(), want, strict=True)):
        if isinstance(true.value, float):
            counts["endless"] += 1
            assert true.is_infinite(mine), (k, mine, true.value)
        elif true.size + true.bound > LARGEST:
            counts["overflow"] += 1
        else:
            counts["exact" if mine == true.value else "near"] += 1
            assert math.isfinite(mine), (k, mine, float(true.value))
            off = abs(Fraction(mine) - true.value)
            assert off <= true.bound, (k, mine, float(true.value), float(off), float(true.bound))


def integrals(rows, values, channel=None, relative=plain) -> list[Sum]:
    """Return the sum of each ray. values: for each geometry an array, or None for ones."""

    def factor(path):
        value = values[path.geometry]
        value = 1.0 if value is None else value[path.index]
        return float(value if channel is None or np.ndim(value) == 0 else value[channel])

    return [exact_sum([(factor(p), p.length, p.reach) for p in row], relative) for row in rows]


def deposits(rows, weights, sizes, per_hit=False, relative=plain) -> list[list[Sum]]:
    """Return the sums of each geometry's primitives. weights: one number a ray."""
    terms = [[[] for _ in range(size)] for size in sizes]
    for row, weight in zip(rows, weights, strict=True):
        for p in row:
            size = (Fraction(1), Fraction(1)) if per_hit else (p.length, p.reach)
            terms[p.geometry][p.index].append((float(weight), *size))
    return [[exact_sum(one, relative) for one in some] for some in terms]


def count_cases(rows, counts: Counter) -> None:
    """Count hits, misses, touches, ties, starts inside and paths without end."""
    for row in rows:
        counts["miss" if not row else "hit"] += 1
        counts["touch"] += sum(p.touch for p in row)
        counts["zero"] += sum(p.length == 0 for p in row)
        counts["inside"] += sum(p.inside for p in row)
        counts["tie"] += len({p.t for p in row}) < len(row)
        counts["inf"] += sum(p.length == INF for p in row)
