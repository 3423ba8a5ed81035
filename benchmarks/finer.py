"""A mesh whose triangles are each four: every edge is halved."""

import numpy as np

import raybox as rb


def subdivided(mesh: rb.Mesh) -> rb.Mesh:
    """Return the mesh with a vertex in the middle of each side of each triangle."""
    corners = mesh.vertices[mesh.faces]
    middles = (corners + np.roll(corners, -1, axis=1)) / 2
    a, b, c = (len(mesh.vertices) + 3 * np.arange(len(mesh.faces)) + k for k in range(3))
    first, second, third = mesh.faces.T
    rows = [(first, a, c), (a, second, b), (c, b, third), (a, b, c)]
    faces = np.stack([np.stack(row, axis=1) for row in rows], axis=1)
    return rb.Mesh(np.concatenate([mesh.vertices, middles.reshape(-1, 3)]), faces.reshape(-1, 3))
