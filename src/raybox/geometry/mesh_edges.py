"""Edges of a mesh: those where it is open, and those that a picture draws."""

import math

import numpy as np
from numpy.typing import NDArray

from raybox.geometry import Mesh, stored_objects
from raybox.validation import Floats, Ints

_BEND = math.cos(math.radians(20.0))
_NOISE = 0.2  # of the ends of edges, those at which no other edge begins


def drawn_edges(mesh: Mesh) -> Ints:
    """Return the sharp edges of a mesh, or none where they are the noise of a scan: see `sharp_edges`.

    Edges of what was drawn by hand go on where one ends: of a house and a city, 0.2 % and 2 % of their ends
    do not; of a scanned skull, 49 %.
    """
    edges = sharp_edges(mesh)
    ends = np.bincount(_welded(mesh.vertices)[edges].ravel())
    return edges[:0] if (ends == 1).sum() > _NOISE * (ends > 0).sum() else edges


def sharp_edges(mesh: Mesh) -> Ints:
    """Return pairs of vertices of edges with one triangle, or where two bend by more than 20 degrees.

    Shape (E, 2). Vertices at one point count as one; triangles of two objects do not share edges.
    """
    keys = _edge_keys(mesh)
    order = np.argsort(keys, kind="stable")
    sorted_keys, face = keys[order], order // 3
    is_same = sorted_keys[1:] == sorted_keys[:-1]
    normals = _unit_normals(mesh)
    is_flat = np.zeros(len(order) + 1, np.bool_)  # as its neighbour on either side
    is_flat[1:-1] = is_same & (np.abs((normals[face[1:]] * normals[face[:-1]]).sum(axis=1)) > _BEND)
    is_first = np.append(True, ~is_same)[: len(order)]
    sharp = order[is_first & ~is_flat[1:]]
    ends = mesh.faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    return np.asarray(ends[sharp])


def open_edges(mesh: Mesh) -> Ints:
    """Return pairs of vertices (E, 2) of edges that do not run as often there as back.

    Vertices at one point count as one. A mesh without such edges is closed.
    """
    vertices = _welded(mesh.vertices)[mesh.faces]
    start, end = vertices.ravel(), np.roll(vertices, -1, axis=1).ravel()
    keys = np.minimum(start, end) * (len(mesh.vertices) + 1) + np.maximum(start, end)
    _, first, edge = np.unique(keys, return_index=True, return_inverse=True)
    surplus = np.bincount(edge, weights=np.sign(end - start), minlength=len(first))
    ends = np.stack([mesh.faces, np.roll(mesh.faces, -1, axis=1)], axis=-1).reshape(-1, 2)
    return np.asarray(ends[np.sort(first[surplus != 0])])


def _edge_keys(mesh: Mesh) -> Ints:
    """Return a key for each edge of each triangle; edges of one object between the same points have one."""
    welded = _welded(mesh.vertices)[mesh.faces][:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    low, high = welded.min(axis=1), welded.max(axis=1)
    pair = np.asarray(low * (int(high.max(initial=0)) + 1) + high)
    objects = stored_objects(mesh)
    if objects is None:
        return pair
    _, number = np.unique(pair, return_inverse=True)
    return np.repeat(objects, 3) * (len(pair) + 1) + number


def _welded(vertices: Floats) -> NDArray[np.int64]:
    """Return a number for each vertex, the same for those at one point."""
    order = np.lexsort(vertices.T)
    is_new = np.append(False, (vertices[order[1:]] != vertices[order[:-1]]).any(axis=1))[: len(order)]
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(is_new)
    return numbers


def _unit_normals(mesh: Mesh) -> Floats:
    """Return the unit normal of each triangle; zeros without area."""
    corners = mesh.triangles
    with np.errstate(over="ignore", invalid="ignore"):
        corners = corners / max(float(np.abs(corners).max(initial=0.0)), 1e-300)
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return np.asarray(normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300))
