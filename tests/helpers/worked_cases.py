"""Rays and boxes whose contacts are worked by hand."""

import math
from fractions import Fraction

from aim import INF

NAN = math.nan
ORIGIN = (0.0, 0.0, 0.0)
UNIT = (ORIGIN, (1.0, 1.0, 1.0))
RAY = (0.0, INF)
LINE = (-INF, INF)
TINY = 5e-324
EAST = ((-INF, -INF), (2.0, INF))
SPACE, WEST = ((-INF,) * 3, (INF,) * 3), (1.0, -INF, -INF)
ABOVE, OVER_HALF = math.nextafter(1.0, 2.0), math.nextafter(0.5, 1.0)

HALF, THIRD, FAR = Fraction(1, 2), Fraction(1, 3), Fraction(1e300) / Fraction(1e-300)

# Origin, direction, range, (lower, upper), and (t, t_enter, t_exit, axis, touch) or None, worked by hand.
BY_HAND = {
    "oblique": ((-1.0, 0.5, 0.25), (1.0, 0.25, 0.0), RAY, UNIT, (1, 1, 2, 0, False)),
    "inside": ((0.5, 0.5, 0.5), (1.0, 0.0, 0.0), RAY, UNIT, (0, -HALF, HALF, -1, False)),
    "on min face, in": ((0.0, 0.5, 0.5), (1.0, 0.0, 0.0), RAY, UNIT, (0, 0, 1, 0, False)),
    "on min face, out": ((0.0, 0.5, 0.5), (-1.0, 0.0, 0.0), RAY, UNIT, (0, -1, 0, -1, True)),
    "on max face, along": ((0.5, 0.5, 1.0), (0.0, 2.0, 0.0), RAY, UNIT, (0, -HALF / 2, HALF / 2, -1, True)),
    "graze max face": ((-1.0, 0.5, 1.0), (1.0, 0.0, -0.0), RAY, UNIT, (1, 1, 2, 0, True)),
    "graze min edge": ((-1.0, 0.0, 0.0), (1.0, -0.0, 0.0), RAY, UNIT, (1, 1, 2, 0, True)),
    "an ulp above the max face": ((-1.0, 0.5, ABOVE), (1.0, 0.0, 0.0), RAY, UNIT, None),
    "a denormal below the min face": ((-1.0, 0.5, -TINY), (1.0, 0.0, 0.0), RAY, UNIT, None),
    "enter by an edge": ((-1.0, 2.0, 0.5), (1.0, -1.0, 0.0), RAY, UNIT, (1, 1, 2, 0, False)),
    "touch an edge": ((-1.0, 0.0, 0.5), (1.0, 1.0, 0.0), RAY, UNIT, (1, 1, 1, 0, True)),
    "touch a corner": ((-1.0, 0.0, 2.0), (1.0, 1.0, -1.0), RAY, UNIT, (1, 1, 1, 0, True)),
    "enter by a corner": ((-3.0, -3.0, -3.0), (3.0, 3.0, 3.0), RAY, UNIT, (1, 1, 4 * THIRD, 0, False)),
    "miss an edge by a denormal": ((-1.0, TINY, 0.5), (1.0, 1.0, 0.0), RAY, UNIT, None),
    "behind": ((2.0, 0.5, 0.5), (1.0, 0.0, 0.0), RAY, UNIT, None),
    "behind, as a line": ((2.0, 0.5, 0.5), (1.0, 0.0, 0.0), LINE, UNIT, (-2, -2, -1, 0, False)),
    "ends on the face": ((-1.0, 0.5, 0.5), (1.0, 0.0, 0.0), (0.0, 1.0), UNIT, (1, 1, 2, 0, True)),
    "ends before the face": ((-1.0, 0.5, 0.5), (1.0, 0.0, 0.0), (0.0, math.nextafter(1, 0)), UNIT, None),
    "starts on the exit": ((-1.0, 0.5, 0.5), (1.0, 0.0, 0.0), (2.0, INF), UNIT, (2, 1, 2, -1, True)),
    "starts after the exit": ((-1.0, 0.5, 0.5), (1.0, 0.0, 0.0), (math.nextafter(2, 3), 9.0), UNIT, None),
    "one instant inside": ((-1.0, 0.5, 0.5), (1.0, 0.0, 0.0), (1.5, 1.5), UNIT, (1.5, 1, 2, -1, False)),
    "thirds": ((-1.0, 0.5, 0.5), (3.0, 0.0, 0.0), RAY, UNIT, (THIRD, THIRD, 2 * THIRD, 0, False)),
    "range ends a hair before 1/3": ((-1.0, 0.5, 0.5), (3.0, 0.0, 0.0), (0.0, 1 / 3), UNIT, None),
    "no direction, inside": ((0.5, 0.5, 0.5), (0.0, -0.0, 0.0), RAY, UNIT, (0, -INF, INF, -1, False)),
    "no direction, on a corner": ((1.0, 0.0, 1.0), (0.0, 0.0, 0.0), RAY, UNIT, (0, -INF, INF, -1, True)),
    "no direction, outside": ((1.5, 0.5, 0.5), (0.0, 0.0, 0.0), RAY, UNIT, None),
    "no direction, from -inf": ((0.5, 0.5, 0.5), (0.0, 0.0, 0.0), LINE, UNIT, (-INF, -INF, INF, -1, False)),
    "half-space": ((0.0, 9.0, 9.0), (2.0, 1.0, 0.0), RAY, (WEST, SPACE[1]), (0.5, 0.5, INF, 0, False)),
    "all of space": ((3.0, 4.0, 5.0), (1.0, 1.0, 1.0), RAY, SPACE, (0, -INF, INF, -1, False)),
    "no real point": ((0.0, 0.5, 0.5), (1.0, 0.0, 0.0), LINE, ((INF, 0.0, 0.0), (INF, 1.0, 1.0)), None),
    "plate, through": ((-1.0, 0.5, 0.5), (1.0, 0.0, 0.0), RAY, (ORIGIN, (0.0, 1.0, 1.0)), (1, 1, 1, 0, True)),
    "plate, within": ((0.0, -1.0, 0.5), (0.0, 1.0, 0.0), RAY, (ORIGIN, (0.0, 1.0, 1.0)), (1, 1, 2, 1, True)),
    "point, met": ((-1.0, -1.0, -1.0), (0.5,) * 3, RAY, (ORIGIN, ORIGIN), (2, 2, 2, 0, True)),
    "point, passed": ((-1.0, -1.0, -1.0), (0.5, 0.5, OVER_HALF), RAY, (ORIGIN, ORIGIN), None),
    "denormal, leaving": ((-1.0, 1.0, 0.5), (1.0, TINY, 0.0), RAY, UNIT, None),
    "denormal, arriving": ((-1.0, 0.0, 0.5), (1.0, TINY, 0.0), RAY, UNIT, (1, 1, 2, 0, False)),
    "denormal only": ((-1.0, 0.5, 0.5), (TINY, 0.0, 0.0), RAY, UNIT, (2**1074, 2**1074, 2**1075, 0, False)),
    "huge": ((-1e300, 0.5, 0.5), (1e-300, 0.0, 0.0), RAY, UNIT,
             (FAR, FAR, FAR + 1 / Fraction(1e-300), 0, False)),
    "from minus zero": ((0.5, 0.5, 0.5), (1.0, 0.0, 0.0), (-0.0, INF), UNIT, (0, -HALF, HALF, -1, False)),
    "no direction, later": ((0.5, 1.0, 0.0), (0.0, -0.0, 0.0), (2.0, 3.0), UNIT, (2, -INF, INF, -1, True)),
    "half-space, leaving": ((0.0, 0.0), (1.0, 0.0), RAY, EAST, (0, -INF, 2, -1, False)),
    "half-space, from -inf": ((0.0, 0.0), (1.0, 0.0), LINE, EAST, (-INF, -INF, 2, -1, False)),
    "half-space, backwards": ((3.0, 0.0), (-1.0, 0.0), RAY, EAST, (1, 1, INF, 0, False)),
    "half-space, empty range": ((0.5, 0.5), (1.0, 0.0), (-INF, -INF), EAST, None),
    "no real point at -inf": ((0.0, 0.0), (1.0, 1.0), RAY, ((-1.0, -INF), (1.0, -INF)), None),
    "point, start": ((2.0, 2.0), (1.0, 1.0), RAY, ((2.0, 2.0), (2.0, 2.0)), (0, 0, 0, 0, True)),
    "from end to end": ((-1e308, 0.0), (1e308, TINY), RAY, ((1e308, 0.0), (1e308, 1.0)), (2, 2, 2, 0, True)),
    "least numbers": ((TINY, TINY), (-TINY, -TINY), RAY, ((0.0, 0.0), (0.0, 0.0)), (1, 1, 1, 0, True)),
    "time beyond floats": ((0.0, 0.0), (TINY, 0.0), RAY, ((1e300, 0.0), (1e301, 0.0)),
                           (Fraction(1e300) / Fraction(TINY), Fraction(1e300) / Fraction(TINY),
                            Fraction(1e301) / Fraction(TINY), 0, True)),
    "planar, downwards": ((0.5, 3.0), (0.0, -2.0), RAY, ((0.0, 0.0), (1.0, 1.0)), (1, 1, 1.5, 1, False)),
    "empty range at +inf": ((0.5, 0.5, 0.5), (1.0, 0.0, 0.0), (INF, INF), UNIT, None),
    "empty range at -inf": ((0.5, 0.5, 0.5), (1.0, 0.0, 0.0), (-INF, -INF), UNIT, None),
    "a bad ray": ((NAN, INF, 0.5), (1.0, 0.0, NAN), (INF, -INF), UNIT, None),
}  # fmt: skip
