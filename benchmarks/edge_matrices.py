"""Matrices at the edges of float64: singular ones are refused, others are accepted."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np

import raybox as rb
from edge_outcome import equal
from edge_scales import scaled

MATRICES = 16


class Matrices(NamedTuple):
    """Square matrices (n, D, D) of instances of a unit box."""

    rows: np.ndarray

    def outcomes(self, counts):
        regular = [determinant(m.tolist()) != 0 for m in self.rows]
        counts["hits"] += sum(regular)
        counts["misses"] += len(regular) - sum(regular)
        yield equal("Instances", map(accepts, self.rows), regular)

    def alone(self, k: int) -> "Matrices":
        return Matrices(self.rows[[k]])

    def source(self) -> str:
        return f"# rb.Instances of a matrix: {self.rows.tolist()}"


def accepts(matrix: np.ndarray) -> bool:
    """Return whether `Instances` accepts a matrix."""
    dim = len(matrix)
    try:
        rb.Instances(rb.Boxes(np.zeros(dim), np.ones(dim)), np.column_stack([matrix, np.zeros(dim)])[None])
    except rb.InvalidInput:
        return False
    return True


def determinant(rows) -> Fraction:
    """Return the exact determinant of two or three rows."""
    rows = [[Fraction(x) for x in row] for row in rows]
    if len(rows) == 2:
        return rows[0][0] * rows[1][1] - rows[0][1] * rows[1][0]
    minors = [determinant([[row[j] for j in range(3) if j != k] for row in rows[1:]]) for k in range(3)]
    return rows[0][0] * minors[0] - rows[0][1] * minors[1] + rows[0][2] * minors[2]


def make(rng, _kind) -> Matrices:
    """Return matrices, of which about half are singular before their rows and columns are scaled."""
    dim, n = int(rng.integers(2, 4)), MATRICES
    whole = rng.integers(-3, 4, (n, dim, dim)).astype(float)
    full = rng.uniform(-1, 1, (n, dim, dim))
    made = np.where(rng.random((n, 1, 1)) < 0.5, whole, full)
    made = np.where(rng.random((n, dim, dim)) < 0.15, 0.0, made)
    twin = made[:, rng.permutation(dim)[0]]
    made[:, -1] = np.where(rng.random((n, 1)) < 0.5, twin * rng.choice([-2.0, 0.5, 1.0], (n, 1)), made[:, -1])
    swapped = np.where(rng.random((n, 1, 1)) < 0.5, made, made.transpose(0, 2, 1))
    wide = int(rng.choice([30, 300, 1000]))
    rows, columns = rng.integers(-wide, wide, (2, n, dim))
    far = rng.integers(300, 1000, (n, 1)) * rng.choice([-1, 1], (n, dim)) // rng.choice([1, 2], (n, dim))
    places = (rows[:, :, None], columns[:, None], rows[:, :, None] + columns[:, None], far[:, None])
    return Matrices(scaled(swapped, places[rng.integers(4)]))
