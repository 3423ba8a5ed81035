"""Points as text: what is typed into the page, and what the page writes there."""

import re

import numpy as np

from raybox.errors import InvalidInput


def point(name: str, text: str) -> list[float]:
    """Read three numbers, apart by commas or spaces.

    >>> point("origin", "1, 2.5 -3e2")
    [1.0, 2.5, -300.0]
    """
    words = re.split(r"[,;\s]+", text.strip(" \t()[]"))
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = []
    if len(numbers) != 3:
        raise InvalidInput(f"{name}: three numbers, such as 1, 2.5, -3; got {text[:40]!r}")
    return numbers


def written(values: np.ndarray) -> str:
    """Write a point so that it can be read back bit by bit.

    >>> written(np.array([0.1, 2.0, -3.0]))
    '0.1, 2.0, -3.0'
    """
    return ", ".join(map(repr, values.tolist()))
