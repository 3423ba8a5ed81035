"""Time whole tasks of the how-to guides with raybox, and with what people use for them otherwise.

    pip install astra-toolbox scikit-image
    python benchmarks/tasks.py [--rounds 5] [--only NAME ...]

A time is that of the whole task, from arrays or files that are there to the result: trees, rays, queries, and
what is written. Contestants alternate on one thread; a ratio is the median over rounds of a contestant's time
over raybox's in the same round. Those that are not installed are left out. The last column is the share of
results that differ from raybox's; of tomography, the mean error of the picture.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

import raybox as rb
import real_data
from raybox.bench import machine, report, timing, worker

Way = Callable[[], np.ndarray]
Ways = dict[str, Way]
NEAR = 1e-6  # of a segment: what peers leave out at its ends
CHUNK = 1_000_000  # rays of a file that peers cast together
ITERATIONS = 20


def open3d_scene(mesh: rb.Mesh) -> object:
    """Return a scene of Open3D, of float32."""
    import open3d as o3d

    scene = o3d.t.geometry.RaycastingScene(nthreads=1)
    scene.add_triangles(mesh.vertices.astype(np.float32), mesh.faces.astype(np.uint32))
    return scene


def open3d_rays(origins: np.ndarray, directions: np.ndarray) -> object:
    """Return rays as a tensor of Open3D."""
    import open3d as o3d

    rays = np.concatenate(np.broadcast_arrays(origins, directions), axis=-1)
    return o3d.core.Tensor(rays.reshape(-1, 6).astype(np.float32))


def embreex_scene(mesh: rb.Mesh) -> object:
    """Return the intersector of trimesh that uses embreex."""
    import trimesh
    from trimesh.ray.ray_pyembree import RayMeshIntersector

    return RayMeshIntersector(trimesh.Trimesh(mesh.vertices, mesh.faces, process=False))


def embreex_ranges(scene: object, origins: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Return the distance to the first hit of each ray, shape (N,); +inf for a miss."""
    points, ray, _ = scene.intersects_location(origins, directions, multiple_hits=False)
    ranges = np.full(len(origins), np.inf)
    ranges[ray] = np.linalg.norm(points - origins[ray], axis=1)
    return ranges


def flat(origins: np.ndarray, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rays as trimesh needs them: two arrays of shape (N, 3)."""
    origins, directions = np.broadcast_arrays(origins, directions)
    return origins.reshape(-1, 3), directions.reshape(-1, 3)


def at_origin(mesh: rb.Mesh) -> rb.Mesh:
    """Return a mesh moved to 0, so that float32 suffices for peers."""
    return rb.Mesh(mesh.vertices - mesh.bounds[0], mesh.faces)


def windows() -> Ways:
    """What a person sees of each window of a house, from places half a metre apart."""
    house = rb.load(real_data.HOUSE)
    is_window = house.labels["ifc_class"][house.objects] == "IfcWindow"
    rest, glass = at_origin(house[~is_window]), house[is_window]
    points = glass.sample(2000, seed=1).points - house[~is_window].bounds[0]
    x, y = np.meshgrid(np.arange(1.0, 8.0, 0.5), np.arange(2.0, 17.0, 0.5))
    eyes = np.stack([x.ravel(), y.ravel(), np.full(x.size, 3.1)], axis=1)
    starts, ends = np.broadcast_arrays(eyes[:, None], points)

    def of_trimesh() -> np.ndarray:
        origins, directions = flat(starts, ends - starts)
        ranges = embreex_ranges(embreex_scene(rest), origins, directions)
        return ranges > (1 - NEAR) * np.linalg.norm(directions, axis=1)

    def of_open3d() -> np.ndarray:
        rays = open3d_rays(starts, ends - starts)
        return ~open3d_scene(rest).test_occlusions(rays, tnear=NEAR, tfar=1 - NEAR, nthreads=1).numpy()

    return {
        "raybox": lambda: rb.Scene(rest).visible(starts, ends, workers=1).ravel(),
        "trimesh, embreex": of_trimesh,
        "Open3D": of_open3d,
    }


def sky() -> Ways:
    """The share of the sky that is seen from places in a city."""
    city = at_origin(rb.load(real_data.CITY))
    x, y = np.meshgrid(np.arange(50.0, 450.0, 10), np.arange(50.0, 300.0, 10))
    above = np.stack([x.ravel(), y.ravel(), np.full(x.size, 100.0)], axis=1)
    ground = rb.Scene(city).nearest(rb.Rays(above, [0, 0, -1]))
    places = ground.points[ground.hit] + [0, 0, 1.5]
    z = (np.arange(1000) + 0.5) / 1000
    turn = np.arange(1000) * np.pi * (3 - np.sqrt(5))
    toward = np.stack([np.sqrt(1 - z**2) * np.cos(turn), np.sqrt(1 - z**2) * np.sin(turn), z], axis=1)
    rays = places[:, None], toward
    return {
        "raybox": lambda: rb.Scene(city).occluded(rb.Rays(*rays), workers=1).ravel(),
        "trimesh, embreex": lambda: embreex_scene(city).intersects_any(*flat(*rays)),
        "Open3D": lambda: open3d_scene(city).test_occlusions(open3d_rays(*rays), nthreads=1).numpy(),
    }


def drive() -> Ways:
    """Ranges of 32 lasers on a car that drives 88 m in 10 s: 3,600 poses, in one call or a call for each."""
    city = rb.load(real_data.CITY)
    corner = city.bounds[0]
    start, end = np.array([84897, 447514, 1.9]) - corner, np.array([84967, 447568, 2.1]) - corner
    clock = np.arange(3600) / 360
    path = start + clock[:, None] / 10 * (end - start)
    angle = np.arctan2(*(end - start)[[1, 0]]) - 2 * np.pi * clock
    cos, sin, zero = np.cos(angle), np.sin(angle), np.zeros(3600)
    rotation = np.stack([cos, -sin, zero, sin, cos, zero, zero, zero, zero + 1], axis=-1).reshape(-1, 3, 3)
    offsets, elevations = np.tile([-4.2, -1.4, 1.4, 4.2], 8)[:, None], np.linspace(-25, 15, 32)
    city = at_origin(city)

    def rays() -> rb.Rays:
        return rb.Rays.lidar(path, offsets, elevations, rotation=rotation)

    def at_once(prepare: Callable[[], Callable[[rb.Rays], np.ndarray]]) -> Way:
        return lambda: prepare()(rays())

    def by_pose(prepare: Callable[[], Callable[[rb.Rays], np.ndarray]]) -> Way:
        def way() -> np.ndarray:
            cast = prepare()
            return np.concatenate([cast(one) for one in rays()])

        return way

    def of_raybox() -> Callable[[rb.Rays], np.ndarray]:
        scene = rb.Scene(city)
        return lambda rays: scene.nearest(rays, workers=1).t.ravel()

    def of_open3d() -> Callable[[rb.Rays], np.ndarray]:
        scene = open3d_scene(city)

        def cast(rays: rb.Rays) -> np.ndarray:
            return scene.cast_rays(open3d_rays(rays.origins, rays.directions), nthreads=1)["t_hit"].numpy()

        return cast

    def of_trimesh() -> Callable[[rb.Rays], np.ndarray]:
        scene = embreex_scene(city)
        return lambda rays: embreex_ranges(scene, *flat(rays.origins, rays.directions))

    prepared = {"raybox": of_raybox, "trimesh, embreex": of_trimesh, "Open3D": of_open3d}
    return {name: at_once(prepare) for name, prepare in prepared.items()} | {
        f"{name}, a call for each pose": by_pose(prepare) for name, prepare in prepared.items()
    }


def files(folder: Path) -> Ways:
    """Four million rays in a file, and the triangle that each hits in another."""
    house = at_origin(rb.load(real_data.HOUSE))
    rng, low, high = np.random.default_rng(1), *house.bounds
    source, target = folder / "rays.npy", folder / "hits.npy"
    np.save(source, np.hstack([rng.uniform(low, high, (4 * CHUNK, 3)), rng.normal(size=(4 * CHUNK, 3))]))

    def of_raybox() -> np.ndarray:
        target.unlink(missing_ok=True)
        rb.cast(rb.Scene(house), source, target, workers=1)
        return np.load(target, mmap_mode="r")["index"]

    def in_chunks(cast: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        rays = np.load(source, mmap_mode="r")
        out = np.lib.format.open_memmap(target, "w+", np.int64, (len(rays),))
        for start in range(0, len(rays), CHUNK):
            chunk = rays[start : start + CHUNK]
            out[start : start + CHUNK] = cast(chunk[:, :3], chunk[:, 3:])
        out.flush()
        return out

    def of_trimesh() -> np.ndarray:
        scene = embreex_scene(house)
        return in_chunks(scene.intersects_first)

    def of_open3d() -> np.ndarray:
        scene = open3d_scene(house)

        def cast(origins: np.ndarray, directions: np.ndarray) -> np.ndarray:
            found = scene.cast_rays(open3d_rays(origins, directions), nthreads=1)["primitive_ids"]
            return found.numpy().astype(np.uint32).astype(np.int32)

        return in_chunks(cast)

    return {"raybox": of_raybox, "trimesh, embreex": of_trimesh, "Open3D": of_open3d}


def phantom(cells: int) -> np.ndarray:
    """Return three discs, shape (cells, cells); axis 0 is x."""
    x, y = np.meshgrid(*2 * [(np.arange(cells) + 0.5) * 2 / cells - 1], indexing="ij")
    discs = ((1.0, 0.7, 0.0, 0.0), (-0.5, 0.3, 0.2, 0.1), (0.4, 0.15, -0.3, -0.2))
    return sum(value * (np.hypot(x - a, y - b) < radius) for value, radius, a, b in discs)


def tomography() -> Ways:
    """Reconstruct 128 x 128 cells from 90 x 182 rays by 20 iterations; return the errors of the cells."""
    cells, angles, detectors = 128, 90, 182
    scene = rb.Scene(rb.Grid.uniform([-64, -64], 1, (cells, cells)))
    turn = np.arange(angles)[:, None] * np.pi / angles
    offset = np.arange(detectors) - (detectors - 1) / 2
    across, along = (
        np.stack([np.cos(turn + quarter), np.sin(turn + quarter)], axis=-1) for quarter in (0, np.pi / 2)
    )
    rays, truth = rb.Rays.lines(offset[:, None] * across, along), phantom(cells)
    sinogram = scene.integrate(rays, truth)

    def of_raybox() -> np.ndarray:
        length_of_ray = np.maximum(scene.integrate(rays, workers=1), 1e-9)
        length_in_cell, values = scene.deposit(rays, workers=1), np.zeros(cells**2)
        for _ in range(ITERATIONS):
            residual = sinogram - scene.integrate(rays, values, workers=1)
            values += scene.deposit(rays, residual / length_of_ray, workers=1) / length_in_cell
        return values.reshape(truth.shape) - truth

    def of_astra() -> np.ndarray:
        import astra

        volume = astra.create_vol_geom(cells, cells)
        beams = astra.create_proj_geom("parallel", 1.0, detectors, turn.ravel())
        projector = astra.create_projector("line", beams, volume)
        picture = np.flipud(truth.T)
        data, _ = astra.create_sino(picture, projector)
        found = astra.data2d.create("-vol", volume)
        config = astra.astra_dict("SIRT")
        config |= {"ProjectorId": projector, "ProjectionDataId": data, "ReconstructionDataId": found}
        algorithm = astra.algorithm.create(config)
        astra.algorithm.run(algorithm, ITERATIONS)
        error = astra.data2d.get(found) - picture
        astra.clear()
        return error

    def of_skimage() -> np.ndarray:
        from skimage.transform import iradon_sart, radon

        degrees, padded = np.degrees(turn.ravel()), np.pad(truth, 27)
        measured, found = radon(padded, degrees), None
        for _ in range(ITERATIONS):
            found = iradon_sart(measured, degrees, found)
        return found[27:-27, 27:-27] - truth

    return {"raybox": of_raybox, "ASTRA, one core": of_astra, "scikit-image": of_skimage}


def differ(first: np.ndarray, other: np.ndarray) -> str:
    """Return the share of results that differ: of numbers, by more than 1 cm, or as one is infinite."""
    if first.dtype == bool or first.dtype.kind == "i":
        return f"{(first != other).mean():.2%}"
    is_close = np.isclose(first, other, rtol=0, atol=0.01) | (np.isinf(first) & np.isinf(other))
    return f"{1 - is_close.mean():.2%}"


@contextmanager
def tasks(names: list[str]) -> Iterator[dict[str, Ways]]:
    """Yield the tasks of these names, with a folder for their files."""
    with tempfile.TemporaryDirectory() as folder:
        made = {
            "windows": windows,
            "sky view": sky,
            "lidar drive": drive,
            "tomography": tomography,
            "file of rays": lambda: files(Path(folder)),
        }
        yield {name: make() for name, make in made.items() if not names or name in names}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    options = parser.parse_args()
    worker.bind(1)
    lines = []
    with tasks(options.only) as chosen:
        for task, ways in chosen.items():
            results = {}
            for name, way in ways.items():
                try:
                    results[name] = np.array(way())
                except ImportError as error:
                    print(f"{task}: {name} is not installed: {error}", file=sys.stderr)
            seconds = timing.alternate({name: ways[name] for name in results}, options.rounds)
            for name, result in results.items():
                middle, low, high = timing.ratio(seconds["raybox"], seconds[name])
                differing = (
                    f"{abs(result).mean():.3f}" if task == "tomography" else differ(results["raybox"], result)
                )
                cells = f"{median(seconds[name]):.2f}", f"{middle:.2f}", f"{low:.2f} to {high:.2f}", differing
                lines.append((task, name, *cells))
    print(machine.in_words(machine.describe()))
    print(report.markdown(("task", "with", "seconds", "times raybox", "range", "differ"), lines))


if __name__ == "__main__":
    main()
