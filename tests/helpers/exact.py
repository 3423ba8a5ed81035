"""The independent truth: rays against boxes in rational arithmetic, written from the definition.

Nothing here imports raybox. A ray is the point set ``{o + t d : t_min <= t <= t_max}`` over real t; boxes are
closed; a bound of -inf or +inf on its own side is no bound. ``t_enter`` and ``t_exit`` are the infimum and
supremum of t over the whole line; ``t``, the first contact, is ``max(t_min, t_enter)``.

Three formulations are tested against each other (test_oracle.py): ``by_membership`` (membership of points at
every t where it can change), ``by_slabs`` (Fractions, one interval per axis) and ``met_rows`` (integers,
fast, for tests of many pairs). Planes and triangles are in exact_surfaces.py.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

INF = math.inf
Real = Fraction | float  # a Fraction, or one of the two infinities
Row = Sequence[float]
CHUNK = 8192


class Met(NamedTuple):
    """The hit of a ray and a primitive; axis of the face entered at t, -1 without one."""

    t: Real
    t_enter: Real
    t_exit: Real
    axis: int = -1
    touch: bool = False  # every point in common lies on the boundary of the box


class Contact(NamedTuple):
    """`Met` in integers: numerator over denominator > 0; infinities are 1/0 and -1/0."""

    t: tuple[int, int]
    t_enter: tuple[int, int]
    t_exit: tuple[int, int]
    axis: int
    touch: bool


class Answers(NamedTuple):
    """One row per pair: every t correctly rounded; a miss has t = inf, the others NaN, axis -1."""

    hit: np.ndarray
    t: np.ndarray
    t_enter: np.ndarray
    t_exit: np.ndarray
    axis: np.ndarray
    touch: np.ndarray


# Numbers


def has_range(t_min: float, t_max: float) -> bool:
    """Return whether any real t lies in the range (False for NaN)."""
    return t_min <= t_max and t_min < INF and t_max > -INF


def real(x: float) -> Real:
    return Fraction(x) if math.isfinite(x) else float(x)


def quotient(n: int, d: int) -> float:
    """Return n / d rounded to the nearest float64, ties to even; infinite past the largest."""
    try:
        return n / d
    except (ZeroDivisionError, OverflowError):
        return INF if n > 0 else -INF


def rounded(x: Real) -> float:
    return x if isinstance(x, float) else quotient(x.numerator, x.denominator)


def ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Return the float64 steps between two arrays: 0 for two NaN, inf for one NaN."""
    got, want = (np.asarray(x, dtype=np.float64) for x in (got, want))
    steps = np.zeros(got.shape)
    for where in zip(*np.nonzero((got != want) & ~(np.isnan(got) & np.isnan(want))), strict=True):
        pair = got[where], want[where]
        steps[where] = INF if np.isnan(pair).any() else abs(_rank(pair[0]) - _rank(pair[1]))
    return steps


def _rank(x: np.float64) -> int:
    bits = int(np.float64(x).view(np.int64))
    return bits if bits >= 0 else -(2**63) - bits


# Boxes by definition: the set of t inside can only change where a coordinate equals a bound.


def by_membership(o: Row, d: Row, t_min: float, t_max: float, lower: Row, upper: Row) -> Met | None:
    """Return the hit by testing points at, between and beyond all t where membership can change."""

    def inside(t: Fraction) -> bool:
        point = [Fraction(p) + t * Fraction(q) for p, q in zip(o, d, strict=True)]
        return all(a <= x <= b for x, a, b in zip(point, lower, upper, strict=True))

    if not has_range(t_min, t_max):
        return None
    turns = {Fraction(t) for t in (0.0, t_min, t_max) if math.isfinite(t)}
    for p, q, a, b in zip(o, d, lower, upper, strict=True):
        turns |= {(Fraction(x) - Fraction(p)) / Fraction(q) for x in (a, b) if q != 0 and math.isfinite(x)}
    marks = sorted(turns)
    halves = [(a + b) / 2 for a, b in itertools.pairwise(marks)]
    marks = sorted([marks[0] - 1, *marks, *halves, marks[-1] + 1])
    met = [t for t in marks if inside(t)]
    if not any(t_min <= t <= t_max for t in met):
        return None
    t_enter: Real = -INF if inside(marks[0]) else met[0]
    t_exit: Real = INF if inside(marks[-1]) else met[-1]
    return Met(max(real(t_min), t_enter), t_enter, t_exit)


# Boxes by slabs: the line is between each pair of parallel planes during an interval of t.


def by_slabs(o: Row, d: Row, t_min: float, t_max: float, lower: Row, upper: Row) -> Met | None:
    """Return the hit by clipping the line with one slab after the other."""
    if not has_range(t_min, t_max):
        return None
    t_enter, t_exit, axis, grazes = -INF, INF, -1, False
    for k, (p, q, a, b) in enumerate(zip(o, d, lower, upper, strict=True)):
        if a == INF or b == -INF:
            return None
        if q == 0:
            if not a <= p <= b:
                return None
            grazes |= p in {a, b}
            continue
        times = [(Fraction(x) - Fraction(p)) / Fraction(q) if math.isfinite(x) else x * q for x in (a, b)]
        if min(times) > t_enter:
            t_enter, axis = min(times), k
        t_exit = min(t_exit, max(times))
    first, last = max(real(t_min), t_enter), min(real(t_max), t_exit)
    if first > last:
        return None
    strictly = first < last or t_enter < first < t_exit
    return Met(first, t_enter, t_exit, axis if t_enter >= t_min else -1, grazes or not strictly)


# Boxes, third way, for sweeps: whole numbers. A float is m * 2**e, a crossing time a pair (n, d) with d > 0.


def met_rows(origins, directions, t_min, t_max, lower, upper) -> Iterator[Contact | None]:
    """Yield the hit of each ray with the box of its row; ranges broadcast; invalid rays miss."""
    rows = origins.shape[0]
    t_min, t_max = np.broadcast_to(t_min, rows), np.broadcast_to(t_max, rows)
    for start in range(0, rows, CHUNK):
        part = slice(start, start + CHUNK)
        yield from _met_chunk(*(x[part] for x in (origins, directions, t_min, t_max, lower, upper)))


def _met_chunk(o, d, t_min, t_max, lower, upper) -> Iterator[Contact | None]:
    # Comparing floats with floats is exact: settle here what needs no crossing time.
    still = d == 0
    off = (lower == INF) | (upper == -INF) | (still & ((o < lower) | (o > upper)))
    ranged = (t_min <= t_max) & (t_min < INF) & (t_max > -INF)
    dead = off.any(axis=1) | ~ranged | ~(np.isfinite(o) & np.isfinite(d)).all(axis=1)
    grazes = (still & ((o == lower) | (o == upper))).any(axis=1)

    # Mirror the axes on which the ray runs down, so that it enters every slab through the nearer bound.
    down = np.signbit(d)
    near, far = np.where(down, -upper, lower), np.where(down, -lower, upper)
    columns = [part for x in (np.where(down, -o, o), np.abs(d), near, far) for part in _split(x)]
    axes = [list(zip(*(c[:, k].tolist() for c in columns), strict=True)) for k in range(o.shape[1])]
    ranges = zip(t_min.tolist(), t_max.tolist(), strict=True)
    for axis_rows, (low, high), skip, graze in zip(
        zip(*axes, strict=True), ranges, dead.tolist(), grazes.tolist(), strict=True
    ):
        yield None if skip else _met(axis_rows, low, high, graze)


def _split(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return integers m and e with x = m * 2**e; m is None for an infinity."""
    finite = np.isfinite(x)
    m, e = np.frexp(np.where(finite, x, 0.0))
    whole = np.ldexp(m, 53).astype(np.int64)
    if not finite.all():
        whole = whole.astype(object)
        whole[~finite] = None
    return whole, e.astype(np.int64) - 53


def _met(axes: Iterable[tuple], t_min: float, t_max: float, grazes: bool) -> Contact | None:
    # Clip the whole line, -1/0 .. 1/0, by one slab after the other. Later ties do not move the entry axis.
    en, ed, xn, xd, axis = -1, 0, 1, 0, -1
    for k, (om, oe, dm, de, nm, ne, fm, fe) in enumerate(axes):
        if dm == 0:
            continue
        if nm is not None:
            n, m = _crossing(om, oe, dm, de, nm, ne)
            if n * ed > en * m:
                en, ed, axis = n, m, k
        if fm is not None:
            n, m = _crossing(om, oe, dm, de, fm, fe)
            if n * xd < xn * m:
                xn, xd = n, m
    if en * xd > xn * ed:
        return None

    # Keep what lies in the range of the ray; -1/0 <= x <= 1/0 holds by cross-multiplication.
    sn, sd = t_min.as_integer_ratio() if t_min > -INF else (-1, 0)
    hn, hd = t_max.as_integer_ratio() if t_max < INF else (1, 0)
    if xn * sd < sn * xd or hn * ed < en * hd:
        return None
    late = en * sd < sn * ed  # the line enters before the range starts
    fn, fd = (sn, sd) if late else (en, ed)
    cut = hn * xd < xn * hd  # the range ends before the line leaves
    ln, ld = (hn, hd) if cut else (xn, xd)
    # A stretch, or a point past the entry and short of the exit, is inside unless it runs along a face.
    strictly = fn * ld < ln * fd or (fd == 0 and ld == 0) or (late and fn * xd < xn * fd)
    return Contact((fn, fd), (en, ed), (xn, xd), -1 if late else axis, grazes or not strictly)


def _crossing(om: int, oe: int, dm: int, de: int, pm: int, pe: int) -> tuple[int, int]:
    """Return (p - o) / d as (numerator, denominator > 0), for d > 0."""
    if pe >= oe:
        n, e = (pm << (pe - oe)) - om, oe - de
    else:
        n, e = pm - (om << (oe - pe)), pe - de
    return (n << e, dm) if e >= 0 else (n, dm << -e)


def box_rows(origins, directions, t_min, t_max, lower, upper) -> Answers:
    """Return the results of each ray with the box of the same row."""
    met = met_rows(origins, directions, t_min, t_max, lower, upper)
    return _answers([_plain(c) for c in met])


def _plain(c: Contact | None) -> tuple:
    if c is None:
        return (False, INF, math.nan, math.nan, -1, False)
    return (True, quotient(*c.t), quotient(*c.t_enter), quotient(*c.t_exit), c.axis, c.touch)


def _answers(rows: list[tuple]) -> Answers:
    columns = zip(*rows, strict=True) if rows else [()] * 6
    kinds = (bool, float, float, float, np.int64, bool)
    return Answers(*(np.array(c, dtype=kind) for c, kind in zip(columns, kinds, strict=True)))


def normals(answers: Answers, directions: np.ndarray) -> np.ndarray:
    """Return outward normals: against the ray along the axis of entry, else zero."""
    out = np.zeros(directions.shape)
    (rows,) = np.nonzero(answers.axis >= 0)
    axes = answers.axis[rows]
    out[rows, axes] = -np.sign(directions[rows, axes])
    return out


# Scenes: every ray against every box


class Found(NamedTuple):
    index: int
    t: Fraction | float
    plain: tuple  # hit, t, t_enter, t_exit, axis, touch, as floats


def along(origins, directions, t_min, t_max, lower, upper) -> Iterator[list[Found]]:
    """Yield each ray's hits, sorted by (exact t, index)."""
    for met in contacts(origins, directions, t_min, t_max, lower, upper):
        yield [Found(i, _value(c.t), _plain(c)) for i, c in met]


def contacts(origins, directions, t_min, t_max, lower, upper) -> Iterator[list[tuple[int, Contact]]]:
    """Yield each ray's boxes and contacts, sorted by (exact t, index)."""
    boxes = lower.shape[0]
    t_min, t_max = np.broadcast_to(t_min, origins.shape[0]), np.broadcast_to(t_max, origins.shape[0])
    for row in range(origins.shape[0]):
        ray = [np.broadcast_to(x[row], (boxes, *x.shape[1:])) for x in (origins, directions, t_min, t_max)]
        met = [(i, c) for i, c in enumerate(_met_chunk(*ray, lower, upper)) if c is not None]
        yield sorted(met, key=lambda pair: (_value(pair[1].t), pair[0]))


def _value(x: tuple[int, int]) -> Real:
    return Fraction(*x) if x[1] else x[0] * INF


def ties(found: list[Found]) -> int:
    """Return the number of boxes that tie with the nearest one."""
    return sum(f.t == found[0].t for f in found[1:])
