"""``raybox demo``: casts a camera and a lidar into a real building that the package contains."""

import time
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import click

from raybox.cli.common import table
from raybox.cli.notices import print_versions
from raybox.cli.outputs import check_new, force_option

if TYPE_CHECKING:
    from raybox.geometry import Mesh, Rays
    from raybox.hits import Hits

CREDIT = 'BSI (2020) "Duplex Apartment Test Files", buildingSMART International, CC BY 4.0'
PICTURE, PAGE = "depth.png", "demo.html"
_NEXT = """
Next, with a file of your own (raybox COMMAND --help lists its formats):
  raybox info FILE                                what it holds
  raybox pick FILE --from X,Y,Z --to X,Y,Z        what a line of sight hits
  raybox view FILE --open                         the scene in the browser, where a click is a ray"""
_MARK = "raybox demo"
"""In the files that the demo writes: it replaces these."""
_GROUND = "storey == 'Level 1' and ifc_class not in ('IfcCovering', 'IfcBeam')"  # without its ceiling
_STRIDE = 8  # every 8th of the lidar's rays on both axes is drawn: all would hide the building


class Sweep(NamedTuple):
    """One query: its name, its rays, and the objects that they may hit, as an expression of labels."""

    name: str
    rays: "Rays"
    where: str | None


@click.command(short_help="Cast a camera and a lidar into a bundled building.")
@click.option(
    "--out", type=click.Path(), default=".", help="Folder of the picture and the page. [default: here]"
)
@force_option
def demo(out: str, force: bool) -> None:
    """Cast a camera and a lidar into a real building, which comes with raybox.

    Prints what the rays hit, and writes what the camera sees as depth.png, near bright and far dark, and the
    building with the lidar's rays as demo.html: a page for the browser, where a click is a ray. Both replace
    those of an earlier demo.
    """
    from raybox.geometry.mesh import object_count
    from raybox.hits.image import depth_picture, write_png
    from raybox.io.formats.saving import atomic_file
    from raybox.scene.scene import Scene

    target = _picture(out)
    page = target.with_name(PAGE)
    check_new(*(path for path in (target, page) if not _is_own(path)), force=force)
    _expect_kernels()
    building = _building()
    print_versions()
    scene = Scene(building)
    click.echo(f"Duplex Apartment: {len(building):,} triangles of {object_count(building):,} objects\n")
    sweeps = _camera(), _lidar()
    for sweep in sweeps:
        scene.nearest(sweep.rays, where=sweep.where)  # compiles, before the time is taken
        started = time.perf_counter()
        hits = scene.nearest(sweep.rays, where=sweep.where)
        _report(sweep, hits, time.perf_counter() - started)
        if sweep.name.startswith("camera"):
            with atomic_file(target) as file:
                write_png(file, depth_picture(hits.t, hits.normals, hits.object), _MARK)
    click.echo(f"The camera's depth image: {target}")
    with atomic_file(page) as file:
        file.write(live_page())
    click.echo(f"The lidar's rays in the building, a page for the browser: {page}")
    click.echo(f"Building: {CREDIT}")
    click.echo(_NEXT)


def _expect_kernels() -> None:
    """Compile what takes longest on other cores, while the scene is made."""
    from raybox.bvh.sah_build import build_nodes
    from raybox.compiler.entry_points import expect
    from raybox.geometry import RayRows
    from raybox.geometry.rows import TriangleRows
    from raybox.primitives.pairs import normals_of
    from raybox.queries.nearest.stream import Nearest
    from raybox.traversal.packet_batches import traverse_packets
    from raybox.traversal.ray_groups import traverse_groups

    functions = traverse_packets, traverse_groups, normals_of, build_nodes
    expect(functions, TriangleRows, RayRows, Nearest)


def live_page() -> bytes:
    """Return the page of the building, without its upper floor at first, and of the lidar's rays."""
    from raybox.viewer.content import make_content
    from raybox.viewer.stage import make_stage

    stage = make_stage(_building(), "Duplex Apartment", where=_GROUND, credit=CREDIT)
    content = make_content(stage, _lidar().rays[::_STRIDE, ::_STRIDE])
    return content.saved() + f"\n<!-- {_MARK} -->\n".encode()


@cache
def _building() -> "Mesh":
    """Return the building that the package contains."""
    from raybox.io.formats import load

    with resources.as_file(resources.files("raybox") / "data" / "duplex.npz") as path:
        return cast("Mesh", load(path))


def _is_own(path: Path) -> bool:
    """Return whether an earlier demo wrote a file: then it is replaced."""
    if not path.is_file():
        return False
    content = path.read_bytes()
    return _MARK.encode() in content[:128] + content[-128:]


def _picture(out: str) -> Path:
    """Return the picture's path; make its folder."""
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.UsageError(
            f"Cannot create the folder {out}: {error.strerror}. Pass another --out."
        ) from error
    return folder / PICTURE


def _camera() -> Sweep:
    """Return rays that look down on the ground floor, as if the upper floor were lifted off."""
    import numpy as np

    from raybox.geometry import Rays

    rays = Rays.pinhole((15.8, -25.6, 17.8), (4.2, -10.6, -0.9), up=(0, 0, 1), fov=38, width=640, height=400)
    lengths = np.linalg.norm(rays.directions, axis=-1, keepdims=True)
    return Sweep("camera, 640 x 400 pixels", Rays(rays.origins, rays.directions / lengths), _GROUND)


def _lidar() -> Sweep:
    """Return a turn of 64 lidar beams in the living room.

    1,024 steps; elevations from -25 to 15 degrees.
    """
    import numpy as np

    from raybox.geometry import Rays

    azimuths = np.linspace(0.0, 360.0, 1024, endpoint=False)
    rays = Rays.lidar((3.2, -15.0, 1.5), azimuths, np.linspace(-25.0, 15.0, 64))
    return Sweep("lidar, 64 beams x 1,024 steps", rays, None)


def _report(sweep: Sweep, hits: "Hits", seconds: float) -> None:
    """Print the share of hits, and the objects hit most."""
    import numpy as np

    distances = hits.t[hits.hit]
    share = len(distances) / max(hits.hit.size, 1)
    click.echo(
        f"{sweep.name}: {hits.hit.size:,} rays, {len(distances):,} hit ({share:.0%}), "
        f"from {distances.min():.2f} to {distances.max():.2f} m, in {seconds:.3f} s"
    )
    objects, pixels, counts = np.unique(hits.object[hits.hit], return_index=True, return_counts=True)
    classes, names = (hits[hits.hit][pixels].labels(name) for name in ("ifc_class", "name"))
    rows = []
    for k in np.argsort(-counts, kind="stable")[:6]:
        nearest = distances[hits.object[hits.hit] == objects[k]].min()
        rows.append([f"{counts[k] / len(distances):.1%}", f"{nearest:.2f} m", classes[k], names[k][:52]])
    click.echo(table(["share", "nearest", "class", "name"], rows) + "\n")
