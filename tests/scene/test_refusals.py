"""Calls that a query, a scene, a sweep or a pairwise test refuses, and what the errors say."""

import re

import numpy as np
import pytest

import raybox as rb
from test_scene_mesh import CUBE

INF = np.inf
FLAT, SOLID = rb.Boxes([0, 0], [1, 1]), rb.Boxes([0, 0, 0], [1, 1, 1])
FLAT_RAY, RAY = rb.Rays([0, 0], [1, 0]), rb.Rays([0, 0, 0], [1, 0, 0])
MESH, PLANES, INSTANCES = rb.Mesh(*CUBE), rb.Planes([1, 0, 0], 4), rb.Instances(SOLID, np.eye(4))
GRID = rb.Grid(np.arange(21), np.arange(8), np.arange(6), occupied=np.arange(700).reshape(20, 7, 5) % 3 > 0)
DIMENSIONS = "rays must have the scene's dimensions, D = {}; got D = {}. Add or drop a coordinate"
NO_SCENE = "a Scene is made of"
WHERE = "where must be one bool for each of the scene's {} rows"
MOVED = "update needs the geometry of the scene, moved"
SWEPT = "scene must be a Scene of boxes; got "
CULL = 'cull="back" is for Planes and Mesh; got '


def sweep(boxes=FLAT, way=(1, 0), scene=FLAT, **how):
    """Sweep boxes in a scene."""
    return rb.sweep(boxes, way, scene if scene is FLAT_RAY else rb.Scene(scene), **how)


SPATIAL, GROUPED, POINT = rb.Scene(SOLID), rb.Scene(SOLID, groups=[0]), [0.0, 0, 0]


def queries(points, scene=SPATIAL, **how):
    """Return calls of all queries of points."""
    return (
        lambda: scene.containing(points, **how),
        lambda: scene.within_distance(points, 1.0, **how),
        lambda: scene.closest(points, **how),
    )


REFUSED = [
    (lambda: rb.Scene([FLAT, MESH]), "same dimensions; got Boxes(1, D=2), Mesh"),
    (lambda: rb.Scene([]), "at least one geometry"),
    *((lambda one=one: rb.Scene(one), NO_SCENE) for one in ("boxes", [FLAT, 7], [[FLAT]], rb.Scene(FLAT))),
    *((lambda one=one: rb.Scene(FLAT, quality=one), "quality must be one of 'fast', 'balanced', 'best'; got")
      for one in ("", "Balanced", "worst", None, 3, ["fast"])),
    *((lambda one=one: rb.Scene(FLAT, workers=one), "workers must be") for one in (0, -2, 1.5, True)),
    (lambda: rb.Scene([GRID] * 3).segments(RAY), "segments needs a Scene of one Grid"),
    (lambda: rb.Scene(SOLID).segments(RAY), "segments needs a Scene of one Grid"),
    (lambda: rb.Scene(SOLID).nearest(FLAT_RAY), DIMENSIONS.format(3, 2)),
    (lambda: rb.Scene(FLAT).count(RAY), DIMENSIONS.format(2, 3)),
    (lambda: rb.Scene(SOLID).first(FLAT_RAY, 3), DIMENSIONS.format(3, 2)),
    *((lambda one=one: rb.Scene(SOLID).first(RAY, one), "k must be a whole number, at least 1; got")
      for one in (0, -1, 2.5)),
    *((lambda one=one: rb.Scene(SOLID).occluded(one), "rays must be raybox.Rays; got ")
      for one in ("rays", None, np.zeros((1, 6)))),
    *((lambda one=one: getattr(rb.Scene(SOLID), one)(RAY, workers=0), "workers must be")
      for one in ("nearest", "occluded", "count", "all")),
    (lambda: rb.Scene(SOLID).nearest(RAY, where=np.ones(5, bool)), WHERE.format(1)),
    *((lambda one=one: rb.Scene(GRID).count(RAY, where=one), WHERE.format(700) + ", or of shape (20, 7, 5)")
      for one in (np.ones(699, bool), np.ones((7, 20, 5), bool), np.ones((20, 7, 5)))),
    (lambda: rb.Scene([SOLID, MESH]).count(RAY, where=np.ones(13, bool)),
     "where must be a list of 2, a mask, an expression or None for each"),
    (lambda: rb.Scene(SOLID).nearest(RAY, cull="back"), CULL + "Boxes"),
    (lambda: rb.Scene(GRID).nearest(RAY, cull="back"), CULL + "Grid"),
    (lambda: rb.Scene([SOLID, INSTANCES]).count(RAY, cull="back"), "there are none here"),
    (lambda: rb.Scene(MESH).count(RAY, cull=True), 'cull must be None or "back"; got True'),
    (lambda: rb.Scene(SOLID).update(rb.Boxes(np.zeros((2, 3)), np.ones((2, 3)))), MOVED),
    (lambda: rb.Scene([SOLID, MESH]).update([MESH, SOLID]), MOVED),
    (lambda: rb.Scene([SOLID, MESH]).update([SOLID]), MOVED),
    (lambda: rb.Scene([SOLID, MESH]).update(SOLID), MOVED),
    (lambda: rb.Scene(GRID).update(rb.Grid(*GRID.edges)), "a Grid stays. Build a new Scene instead"),
    (lambda: rb.intersect(rb.Rays(np.zeros((3, 3)), [1, 0, 0]), rb.Boxes(np.zeros((4, 3)), np.ones((4, 3)))),
     "rays of shape (3,) do not broadcast against 4 rows"),
    (lambda: rb.intersect(FLAT_RAY, SOLID), "rays and geometry must have the same dimensions; got D = 2 and"),
    (lambda: rb.intersect(RAY, PLANES, cull="front"), "cull must be None or \"back\"; got 'front'"),
    (lambda: rb.intersect(RAY, SOLID, cull="back"), "is for Planes and Mesh; got Boxes"),
    (lambda: sweep([0, 0]), "boxes_moving must be raybox.Boxes; got list. Make some"),
    (lambda: sweep(rb.Boxes([0, 0], [1, INF])), "boxes_moving.upper must be finite; 1 of 1 break this"),
    (lambda: sweep(rb.Boxes([-INF, 0], [1, 1])), "boxes_moving.lower must be finite; 1 of 1 break this"),
    (lambda: sweep(way=[[1, 0]] * 2), "one for each box: (2,) or (1, 2); got (2, 2)"),
    (lambda: sweep(way=[1, np.nan]), "displacement must be finite; 1 of 1 break this"),
    (lambda: sweep(SOLID, [1, 0, 0]), "D = 2; got D = 3. Add or drop a coordinate"),
    (lambda: sweep(workers=0), "workers must be a whole number of threads"),
    (lambda: sweep(scene=FLAT_RAY), SWEPT + "Rays"),
    *((lambda one=one: sweep(SOLID, [1, 0, 0], one), SWEPT) for one in (MESH, PLANES, INSTANCES, [SOLID])),
    *((call, "points must be finite; got points = [0.0, nan, 0.0].") for call in queries([0, np.nan, 0])),
    *((call, "points must be finite; 1 of 2 break this, first point 1: points[1] = [inf, 0.0, 0.0]")
      for call in queries([POINT, [INF, 0, 0]])),
    *((call, "points must have shape (..., 3)") for one in ([0, 0], 5) for call in queries(one)),
    *((call, "points must be an array of numbers") for one in (RAY, SOLID) for call in queries(one)),
    *((call, "queries need groups, as the scene has some") for call in queries(POINT, scene=GROUPED)),
    *((call, "queries have groups, and the scene has none") for call in queries(POINT, groups=0)),
    *((call, "groups must broadcast to the shape of the queries, (2,); got shape (3,)")
      for call in queries([POINT] * 2, scene=GROUPED, groups=[0] * 3)),
    *((call, "groups must be -1, for all, or a number from 0 on; got groups = -2")
      for call in queries(POINT, scene=GROUPED, groups=-2)),
    *((call, WHERE.format(1)) for call in queries(POINT, where=np.ones(5, bool))),
    *((call, "workers must be a whole number of threads") for call in queries(POINT, workers=0)),
    *((call, "Planes(1, D=3). Planes have no bounds") for call in queries(POINT, scene=rb.Scene(PLANES))),
    *((call, "is of boxes and grids; the scene holds Mesh(12, vertices=8). Make a scene of the boxes around "
       "its triangles: Scene(Boxes.of_triangles(") for call in queries(POINT, scene=rb.Scene([SOLID, MESH]))),
    *((call, "Make a scene of the boxes around its copies: Scene(instances.boxes())")
      for call in queries(POINT, scene=rb.Scene(INSTANCES))),
    *((lambda one=one: rb.Scene(one).containing(POINT), "; of points inside of a closed mesh: Mesh.contains.")
      for one in (MESH, INSTANCES)),
    *((lambda one=one: SPATIAL.closest(POINT, one), "k must be a whole number of boxes, at least 1; got ")
      for one in (0, -1, 1.5, True, None, "3")),
    *((lambda one=one: SPATIAL.closest(POINT, one), "k must be less than 2**31; got ")
      for one in (2**31, 10**30)),
    *((lambda one=one: SPATIAL.within_distance(POINT, one), f"must be at least 0; got distance = {one}.")
      for one in (-1.0, -INF, np.nan)),
    (lambda: SPATIAL.closest([POINT] * 2, max_distance=[1, np.nan]),
     "max_distance must be at least 0; 1 of 2 break this, first point 1: max_distance[1] = nan. Pass 0"),
    *((lambda one=one: SPATIAL.within_distance([POINT] * 2, one),
       "distance must be a number, or broadcast to the shape of the points, (2,); got shape (3")
      for one in ([1, 2, 3], [[1], [2], [3]])),
    *((lambda one=one: SPATIAL.overlapping(one), "boxes must be raybox.Boxes; got ")
      for one in ([0, 0, 0], None, RAY, MESH, GRID, SPATIAL)),
    (lambda: SPATIAL.overlapping(FLAT), "boxes must have the scene's dimensions, D = 3; got D = 2. Add or"),
    (lambda: rb.Scene([SOLID, PLANES]).overlapping(SOLID),
     "overlapping is of boxes, grids, meshes and instances; the scene holds Planes(1, D=3). Planes have"),
    (lambda: GROUPED.overlapping(SOLID), "queries need groups, as the scene has some"),
    (lambda: SPATIAL.overlapping(SOLID, groups=0), "queries have groups, and the scene has none"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "text"), REFUSED, ids=[text for _, text in REFUSED])
def test_wrong_calls_are_refused(call, text):
    with pytest.raises(rb.InvalidInput, match=re.escape(text)):
        call()


@pytest.mark.parametrize("geometry", [[SOLID, MESH], [SOLID], INSTANCES, PLANES], ids=str)
def test_pictures_are_of_one_geometry_with_bounds(geometry):
    pytest.importorskip("matplotlib")
    text = r"a Scene, Boxes, a Grid or a Mesh; got .*Draw the geometries of a scene one by one"
    for one in (geometry, rb.Scene(geometry)):
        with pytest.raises(rb.InvalidInput, match=text):
            rb.plot(one)
