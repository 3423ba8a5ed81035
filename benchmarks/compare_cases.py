"""The cases of `compare.py`: plain data, which a worker turns into calls (`compare_actions`)."""

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

QUERIES = ("nearest", "occluded", "count", "all", "first")
MILLION_SCENES = ("uniform-1e5", "clustered-1e5", "mixed-1e5", "mesh")
SYNTHETIC = (
    *("uniform-1e3", *MILLION_SCENES, "uniform-1e6"),
    *("instances", "turned-boxes", "planes", "flat", "several", "hard", "hard-boxes", "hard-mesh"),
)
QUICK = ("uniform-1e5", "mesh", "several", "hard")
REAL = {
    "house": "duplex_ifc/duplex_aabb.csv",
    "city": "delft_cityjson/delft.city.json",
    "skull": "skull_mesh/skull.obj",
    "voxels": "voxel_store/scene_store8.vox",
    "skull-triangles": "skull_mesh/skull.obj",
}
VIEWED = {  # scenes of which only the kinds of rays are compared
    "skull-finer": "skull_mesh/skull.obj",
    "city-triangles": "delft_cityjson/delft.city.json",
    "house-triangles": "duplex_ifc/duplex_a_20110907.ifc",
}
FILES = REAL | VIEWED
"""A name's form: the boxes of objects or triangles; `-triangles` themselves; `-finer`: boxes of four each."""
FORMATS = (("parquet", "parquet"), ("npy", "npy"), ("csv", "csv"), ("parquet", "npz"))
LARGE = 1 << 18  # rays of the scenes that are not in MILLION_SCENES, at most
LISTED = 1 << 17  # rays of `all` and `first`, whose results are long, at most
SUMMED = ("uniform-1e3", "uniform-1e5", "clustered-1e5", "mixed-1e5", "turned-boxes")
CELLS = ("grid-full", "grid-clumps", "grid-boxes")  # a full grid; few cells in clumps, and the boxes of these
DENSE = 1 << 14  # the same, where a ray hits a hundred primitives
EXACT = 1 << 13  # rays of scenes where most are decided in exact arithmetic, at most


class Case(NamedTuple):
    """One comparison: an action of `compare_actions`, and its input."""

    name: str
    action: str
    geometry: str
    rays: tuple[str, int] = ("", 0)
    """kind and count"""
    options: dict[str, Any] = {}  # noqa: RUF012


class Extent(NamedTuple):
    """The extent of a comparison."""

    scenes: tuple[str, ...]
    rays: int
    quick: bool


def plan(extent: Extent) -> Iterator[Case]:
    """Yield every case, those of one scene together, so that its tree is built once a worker."""
    for scene in extent.scenes:
        if scene in FILES:
            yield from _views(scene, extent)
        if scene in VIEWED:
            continue
        yield from _queries(scene, extent)
        yield from _sums(scene, extent) if scene in SUMMED else ()
        yield from _options(scene, extent)
        yield from _builds(scene, extent)
    yield from _made_rays(extent)
    yield from _cells(extent)
    yield from _pairs(extent)
    yield from _files(extent)
    for scene in ("uniform-1e3",) if extent.quick else ("uniform-1e3", "mesh", "instances"):
        yield Case(f"{scene}/first-use", "first_use", scene, (_kind(scene), 20_000))


def _kind(scene: str) -> str:
    return "hard" if scene.startswith("hard") else "incoherent"


def _kinds(scene: str) -> tuple[str, ...]:
    return (_kind(scene), "camera", *(["beams"] if scene == "street" else []))


def _most(scene: str, query: str, extent: Extent) -> int:
    """Return the number of rays of a large batch."""
    most = extent.rays if scene in MILLION_SCENES else min(extent.rays, LARGE)
    if scene.startswith("hard"):
        return min(most, EXACT)
    if query not in ("all", "first"):
        return most
    return min(most, DENSE if scene in ("voxels", "planes") else LISTED)


def _queries(scene: str, extent: Extent) -> Iterator[Case]:
    for query in QUERIES:
        for kind in _kinds(scene):
            most = _most(scene, query, extent)
            how = {"query": query} | ({"k": 4} if query == "first" else {})
            batches = ((1, 1), (1000, 1), (most, 1), (most, 2))
            for count, workers in batches[2:3] if kind == "camera" and extent.quick else batches:
                name = f"{scene}/{query}/{kind}/{count}/workers={workers}"
                yield Case(name, "query", scene, (kind, count), how | {"workers": workers})


def _views(scene: str, extent: Extent) -> Iterator[Case]:
    """Yield cases of the kinds of rays that people cast in real scenes, on one thread."""
    kinds = ("oblique", "inside", *(_kinds(scene) if scene in VIEWED else ()))
    for query, kind in product(QUERIES[:3], kinds):
        count = _most(scene, query, extent)
        how = {"query": query, "workers": 1}
        yield Case(f"{scene}/{query}/{kind}/{count}/workers=1", "query", scene, (kind, count), how)


def _made_rays(extent: Extent) -> Iterator[Case]:
    """Yield cases of `nearest` whose rays are made by the call: of arrays, and of a camera."""
    for kind, count in product(("incoherent", "camera"), (1, 10, 100, 1000, extent.rays)):
        rays = (kind, max(1024, count))
        how = {"batch": count}
        yield Case(f"uniform-1e5/arrays/{kind}/{count}", "arrays", "uniform-1e5", rays, how)
    side = int(extent.rays**0.5)
    yield Case(f"uniform-1e5/pinhole/{side}^2", "pinhole", "uniform-1e5", ("camera", 1024), {"side": side})


def _sums(scene: str, extent: Extent) -> Iterator[Case]:
    """Yield cases of sums over paths, whose bits are compared: reproducible ones."""
    for query, workers in product(("integrate", "deposit"), (1, 2)):
        how = {"query": query, "reproducible": True, "workers": workers}
        rays = _kind(scene), _most(scene, query, extent)
        yield Case(f"{scene}/{query}/workers={workers}", "query", scene, rays, how)


def _cells(extent: Extent) -> Iterator[Case]:
    """Yield cases of grids, and of boxes in their place, with rays that begin inside."""
    for scene in CELLS[:1] if extent.quick else CELLS:
        for query in ("nearest", "occluded", "count", "all", "integrate"):
            most = min(extent.rays, DENSE if scene == "grid-full" else LISTED)
            how = {"query": query, "workers": 1} | ({"reproducible": True} if query == "integrate" else {})
            yield Case(f"{scene}/{query}/inside/{most}", "query", scene, ("inside", most), how)


def _options(scene: str, extent: Extent) -> Iterator[Case]:
    """Yield cases with a mask, a culled side, and fields derived from hits."""
    kind, middle = _kind(scene), min(_most(scene, "all", extent), DENSE)
    for query in ("nearest", "all"):
        yield Case(f"{scene}/fields/{query}", "fields", scene, (kind, middle), {"query": query})
    for query in QUERIES:
        how = {"query": query, "masked": True} | ({"k": 4} if query == "first" else {})
        yield Case(f"{scene}/where/{query}", "query", scene, (kind, middle), how)
        if scene in ("mesh", "planes", "skull-triangles", "hard-mesh"):
            yield Case(f"{scene}/cull/{query}", "query", scene, (kind, middle), how | {"cull": "back"})


def _builds(scene: str, extent: Extent) -> Iterator[Case]:
    rays = (_kind(scene), 1000)
    for quality in ("fast", "balanced", "best"):
        for workers in (1, 2):
            how = {"quality": quality, "workers": workers}
            if workers == 2 or quality == "balanced" or not (extent.quick or scene == "uniform-1e6"):
                yield Case(f"{scene}/build/{quality}/workers={workers}", "build", scene, rays, how)
    for far in (False, True):
        yield Case(f"{scene}/update/{'far' if far else 'near'}", "update", scene, rays, {"far": far})


def _pairs(extent: Extent) -> Iterator[Case]:
    """Yield pairwise tests and moving boxes."""
    most = min(extent.rays, LARGE)
    for scene in ("uniform-1e5", "mesh", "planes", "hard-boxes", "hard-mesh"):
        for form in ("rows", "one", "grid", "single"):
            count = most if form in ("rows", "one") else 1000
            yield Case(f"{scene}/intersect/{form}", "intersect", scene, (_kind(scene), count), {"form": form})
    for scene, count in (("uniform-1e5", most // 4), ("hard-boxes", 2000), ("flat", 10_000)):
        for workers in (1, 2):
            how = {"count": count, "workers": workers}
            yield Case(f"{scene}/sweep/workers={workers}", "sweep", scene, (), how)


def _files(extent: Extent) -> Iterator[Case]:
    """Yield casts of a file of rays to a file of results, and readings of geometry."""
    for scene in ("uniform-1e5",) if extent.quick else ("uniform-1e5", "mesh"):
        for query, (source, target) in product(QUERIES[:4], FORMATS[:2] if extent.quick else FORMATS):
            most = extent.rays if query != "all" else min(extent.rays, LISTED)
            rays = ("incoherent", min(most, 20_000) if source == "csv" else most)
            how = {"query": query, "source": source, "target": target}
            yield Case(f"{scene}/cast/{query}/{source}-{target}", "cast", scene, rays, how)
    for scene in extent.scenes:
        if scene in REAL and "-" not in scene:
            yield Case(f"{scene}/load", "load", scene)
