"""``raybox demo``: casts a camera and a lidar into a real building that the package contains."""

import time
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import click

from raybox.cli.common import table
from raybox.cli.notices import print_versions
from raybox.cli.outputs import check_new, force_option

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from raybox.geometry import Boxes, Rays
    from raybox.hits import Hits
    from raybox.io.formats import Loaded

    Mask = NDArray[np.bool_]

CREDIT = 'BSI (2020) "Duplex Apartment Test Files", buildingSMART International, CC BY 4.0'
PICTURE, PAGE = "depth.png", "demo.html"
_NEXT = """
Next, with a file of your own (raybox COMMAND --help lists its formats):
  raybox info FILE                                what it holds
  raybox pick FILE --from X,Y,Z --to X,Y,Z        what a line of sight hits
  raybox view FILE --open                         the scene in the browser, where a click is a ray"""
_MARK = "raybox demo"
"""In the files that the demo writes: it replaces these."""
_STRIDE = 8  # every 8th of the lidar's rays on both axes is drawn: all would hide the building


class Sweep(NamedTuple):
    """One query: its name, its rays, and the boxes that take part, (N,) bool."""

    name: str
    rays: "Rays"
    where: "Mask"


@click.command(short_help="Cast a camera and a lidar into a bundled building.")
@click.option(
    "--out", type=click.Path(), default=".", help="Folder of the picture and the page. [default: here]"
)
@force_option
def demo(out: str, force: bool) -> None:
    """Cast a camera and a lidar into a real building, 286 boxes that come with raybox.

    Prints what the rays hit, writes what the camera sees as depth.png, near bright and far dark, and, with
    the extra view, the building and the lidar's rays as demo.html: a page for the browser to turn about.
    Both replace those of an earlier demo.
    """
    from raybox.hits.image import depth_picture, write_png
    from raybox.io.formats import read
    from raybox.io.formats.saving import atomic_file
    from raybox.scene.scene import Scene

    target = _picture(out)
    written = [target, *([target.with_name(PAGE)] if find_spec("viser") else [])]
    check_new(*(path for path in written if not _is_own(path)), force=force)
    with resources.as_file(resources.files("raybox") / "data" / "duplex_aabb.csv") as path:
        building = read(path)
    print_versions()
    scene = Scene(cast("Boxes", building.geometry))
    click.echo(f"Duplex Apartment: {len(scene)} boxes of a building model\n")
    sweeps = _camera(building), _lidar(building)
    for sweep in sweeps:
        scene.nearest(sweep.rays, where=sweep.where)  # compiles, before the time is taken
        started = time.perf_counter()
        hits = scene.nearest(sweep.rays, where=sweep.where)
        _report(sweep, hits, time.perf_counter() - started, building)
        if sweep.name.startswith("camera"):
            with atomic_file(target) as file:
                write_png(file, depth_picture(hits.t, hits.normals, hits.index), _MARK)
    click.echo(f"The camera's depth image: {target}")
    click.echo(_page(target.with_name(PAGE), building, sweeps[1]))
    click.echo(f"Building: {CREDIT}")
    click.echo(_NEXT)


def _page(target: Path, building: "Loaded", sweep: Sweep) -> str:
    """Write a page of the building and some rays; return a line for the user.

    Without viser, no page: the line is then the command that installs it.
    """
    if find_spec("viser") is None:
        return 'For a page of the browser, too: pip install "raybox[view]"'
    from raybox.geometry import Boxes
    from raybox.io.formats.saving import atomic_file
    from raybox.viewer import view

    rays, boxes = sweep.rays[::_STRIDE, ::_STRIDE], building.geometry
    assert isinstance(boxes, Boxes)
    with view(boxes[sweep.where], rays, port=0) as viewer, atomic_file(target) as file:
        file.write(f"{viewer.html()}\n<!-- {_MARK} -->\n".encode())
    return f"The lidar's rays in the building, a page for the browser: {target}"


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


def _camera(building: "Loaded") -> Sweep:
    """Return rays that look down on the ground floor; higher boxes are excluded."""
    import numpy as np

    from raybox.geometry import Rays

    rays = Rays.pinhole((15.8, -25.6, 17.8), (4.6, -9.9, -0.9), up=(0, 0, 1), fov=38, width=640, height=400)
    lengths = np.linalg.norm(rays.directions, axis=-1, keepdims=True)
    boxes = building.geometry
    ground = (boxes.lower[:, 2] < 2.5) & (boxes.upper[:, 2] < 3.2)  # type: ignore[union-attr]
    rays = Rays(rays.origins, rays.directions / lengths)
    return Sweep("camera, 640 x 400 pixels", rays, _solid(building) & ground)


def _lidar(building: "Loaded") -> Sweep:
    """Return a turn of 64 lidar beams in the living room.

    1,024 steps; elevations from -25 to 15 degrees.
    """
    import numpy as np

    from raybox.geometry import Rays

    azimuth = np.linspace(0.0, 2.0 * np.pi, 1024, endpoint=False)
    elevation = np.radians(np.linspace(-25.0, 15.0, 64))[:, None]
    level = np.cos(elevation)
    x, y, z = np.broadcast_arrays(level * np.cos(azimuth), level * np.sin(azimuth), np.sin(elevation))
    rays = Rays((3.2, -15.0, 1.5), np.stack([x, y, z], axis=-1))
    return Sweep("lidar, 64 beams x 1,024 steps", rays, _solid(building))


def _solid(building: "Loaded") -> "Mask":
    """Return which boxes are solid, (N,) bool: all but rooms and openings."""
    import numpy as np

    return ~np.isin(building.labels["ifc_class"], ["IfcSpace", "IfcOpeningElement"])


def _report(sweep: Sweep, hits: "Hits", seconds: float, building: "Loaded") -> None:
    """Print the share of hits, and the boxes hit most."""
    import numpy as np

    distances = hits.t[hits.hit]
    share = len(distances) / max(hits.hit.size, 1)
    click.echo(
        f"{sweep.name}: {hits.hit.size:,} rays, {len(distances):,} hit ({share:.0%}), "
        f"from {distances.min():.2f} to {distances.max():.2f} m, in {seconds:.3f} s"
    )
    boxes, counts = np.unique(hits.index[hits.hit], return_counts=True)
    rows = []
    for k in np.argsort(-counts, kind="stable")[:6]:
        nearest = float(hits.t[hits.index == boxes[k]].min())
        labels = [building.labels[name][boxes[k]] for name in ("ifc_class", "name")]
        rows.append([f"{counts[k] / len(distances):.1%}", f"{nearest:.2f} m", labels[0], labels[1][:52]])
    click.echo(table(["share", "nearest", "class", "name"], rows) + "\n")
