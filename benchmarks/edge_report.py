"""Reduce a wrong case to one ray and few primitives, and print it as Python."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

import raybox as rb
from edge_checks import outcomes
from edge_outcome import Outcome
from edge_truth import Case


def reduced(case, query: str, row: int) -> tuple:
    """Return the smallest case found with a wrong result of a query, and its outcome.

    row: of the outcome that is wrong: a ray, which is left alone, if it is wrong alone.
    """
    best, found = case, _wrong(case, query)
    for k in [row, *range(rows_of(case))] if row < rows_of(case) else []:
        outcome = _wrong(alone(case, k), query)
        if outcome is not None:
            best, found = alone(case, k), outcome
            break
    if not isinstance(case, Case):
        return best, found
    smaller = True
    while smaller:
        smaller = False
        for geometries in _less(best.geometries):
            outcome = _wrong(best._replace(geometries=geometries), query)
            if outcome is not None:
                best, found, smaller = best._replace(geometries=geometries), outcome, True
                break
    return best, found


def outcomes_of(case, counts: Counter | None = None) -> Iterator[Outcome]:
    """Yield the outcomes of a case of any kind."""
    if isinstance(case, Case):
        return outcomes(case, counts)
    return case.outcomes(Counter() if counts is None else counts)


def rows_of(case) -> int:
    """Return the number of rays of a case, of moving boxes, points or matrices."""
    return len(case.rays if isinstance(case, Case) else case.rows)


def alone(case, k: int):
    """Return a case of one row."""
    return case._replace(rays=case.rays[[k]]) if isinstance(case, Case) else case.alone(k)


def _wrong(case, query: str) -> Outcome | None:
    """Return the first wrong outcome of a query."""
    return next((one for one in outcomes_of(case) if one.query == query and one.wrong.any()), None)


def _less(geometries: tuple) -> Iterator[tuple]:
    """Yield geometries of which one, or one primitive, is left out."""
    for k, geometry in enumerate(geometries):
        before, after = geometries[:k], geometries[k + 1 :]
        if before or after:
            yield before + after
        for less in _without_one(geometry):
            yield (*before, less, *after)


def _without_one(geometry) -> Iterator:
    if isinstance(geometry, rb.Instances):
        for mask in _masks(len(geometry)):
            yield rb.Instances(geometry.geometry, geometry.transforms[mask])
        for inner in _without_one(geometry.geometry):
            yield rb.Instances(inner, geometry.transforms)
    elif isinstance(geometry, rb.Mesh):
        for mask in _masks(len(geometry)):
            corners = geometry.triangles[mask]
            yield rb.Mesh(corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3))
    elif isinstance(geometry, rb.Planes):
        for mask in _masks(len(geometry)):
            yield rb.Planes(geometry.normals[mask], geometry.offsets[mask])
    elif isinstance(geometry, rb.Boxes):
        for mask in _masks(len(geometry)):
            yield rb.Boxes(geometry.lower[mask], geometry.upper[mask])


def _masks(count: int) -> Iterator[np.ndarray]:
    """Yield masks of halves, then of all but one."""
    if count > 3:
        yield np.arange(count) < count // 2
        yield np.arange(count) >= count // 2
    for k in range(count if count > 1 else 0):
        yield np.arange(count) != k


def source(geometry) -> str:
    """Return Python that makes a geometry or rays."""
    if isinstance(geometry, rb.Boxes):
        return f"rb.Boxes({_plain(geometry.lower)}, {_plain(geometry.upper)})"
    if isinstance(geometry, rb.Mesh):
        corners = geometry.triangles.reshape(-1, 3)
        return f"rb.Mesh({_plain(corners)}, {np.arange(len(corners)).reshape(-1, 3).tolist()})"
    if isinstance(geometry, rb.Planes):
        return f"rb.Planes({_plain(geometry.normals)}, {_plain(geometry.offsets)})"
    if isinstance(geometry, rb.Instances):
        return f"rb.Instances({source(geometry.geometry)}, {_plain(geometry.transforms)})"
    if isinstance(geometry, rb.Grid):
        edges = ", ".join(_plain(axis) for axis in geometry.edges)
        mask = "" if geometry.occupied.all() else f", occupied={geometry.occupied.tolist()}"
        return f"rb.Grid({edges}{mask})"
    low, high = (_plain(t) for t in (geometry.t_min, geometry.t_max))
    return f"rb.Rays({_plain(geometry.origins)}, {_plain(geometry.directions)}, t_min={low}, t_max={high})"


def _plain(array) -> str:
    return str(array.tolist()).replace("inf", "np.inf")


def printed(case, outcome: Outcome) -> str:
    """Return a case as Python, with what came and what is exact."""
    k = int(outcome.wrong.argmax())
    end = f"# {outcome.query}: got {outcome.got[k]}, exact {outcome.want[k]}"
    if not isinstance(case, Case):
        return f"{case.source()}\n{end}"
    parts = [source(g) for g in case.geometries]
    scene = parts[0] if len(parts) == 1 else f"[{', '.join(parts)}]"
    lines = [f"geometry = {scene}", f"rays = {source(case.rays)}"]
    if case.sorted:
        lines.append("raybox.queries.one_by_one.MOST_RAYS = 15")
    return "\n".join([*lines, end])
