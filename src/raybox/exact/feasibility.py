"""Exact decision whether linear inequalities a . x <= b have a common solution, in integers of any length.

Variables are eliminated one by one (Fourier 1826, Motzkin 1936): of an upper and a lower bound of the last
variable, the sum in which it cancels remains. A solution of what remains is extended, variable by variable.
The number of sums may grow with the square, so only inequalities that a solution breaks are added to those
that are solved, one at a time.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import gcd, lcm

Inequality = tuple[int, ...]
"""The numbers a of each variable, and b: a . x <= b"""


def is_feasible(inequalities: Iterable[Inequality], variables: int) -> bool:
    """Return whether inequalities have a common solution among the real numbers.

    Examples
    --------
    >>> is_feasible([(1, 1, 2), (-1, 0, -1), (0, -1, -1)], 2)  # x + y <= 2, x >= 1, y >= 1
    True
    >>> is_feasible([(1, 1, 2), (-1, 0, -1), (0, -2, -3)], 2)  # y >= 3 / 2
    False
    """
    distinct = {_reduced(one) for one in inequalities}
    chosen: set[Inequality] = set()
    point: list[Fraction] | None = [Fraction(0)] * variables
    while point is not None:
        scale = lcm(*(x.denominator for x in point))
        weights = [*((x.numerator * (scale // x.denominator)) for x in point), -scale]
        excess = {one: sum(a * w for a, w in zip(one, weights, strict=True)) for one in distinct}
        worst = max(excess, key=excess.__getitem__, default=None)
        if worst is None or excess[worst] <= 0:
            return True
        chosen.add(worst)
        point = _solution(chosen, variables)
    return False


def _solution(inequalities: set[Inequality], variables: int) -> list[Fraction] | None:
    """Return a point that satisfies inequalities, or None if there is none."""
    if variables == 0:
        return None if any(bound < 0 for (bound,) in inequalities) else []
    last = variables - 1
    above = [one for one in inequalities if one[last] > 0]
    below = [one for one in inequalities if one[last] < 0]
    sums = {_without(last, one) for one in inequalities if one[last] == 0}
    sums |= {_without(last, _cancelled(one, other, last)) for one in above for other in below}
    point = _solution(sums, last)
    if point is None:
        return None
    highest = min((_bound(one, point) for one in above), default=None)
    lowest = max((_bound(one, point) for one in below), default=None)
    if highest is None or lowest is None:
        return [*point, next((x for x in (highest, lowest) if x is not None), Fraction(0))]
    return [*point, (highest + lowest) / 2]


def _cancelled(above: Sequence[int], below: Sequence[int], variable: int) -> Inequality:
    """Return the sum of two inequalities in which a variable cancels."""
    one, other = -below[variable], above[variable]
    return tuple(one * x + other * y for x, y in zip(above, below, strict=True))


def _without(variable: int, inequality: Inequality) -> Inequality:
    return _reduced((*inequality[:variable], *inequality[variable + 1 :]))


def _reduced(inequality: Inequality) -> Inequality:
    """Return an inequality divided by the greatest common divisor of its numbers."""
    divisor = gcd(*inequality)
    return inequality if divisor <= 1 else tuple(x // divisor for x in inequality)


def _bound(inequality: Inequality, point: Sequence[Fraction]) -> Fraction:
    """Return the bound of the variable after those of a point."""
    known = sum((a * x for a, x in zip(inequality, point, strict=False)), Fraction(0))
    return (inequality[-1] - known) / inequality[len(point)]
