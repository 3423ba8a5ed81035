"""``raybox cast``: a file of rays into a scene, answers into a file."""

import math
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raybox.cli.common import announce_compiling, as_json, load_rays, load_scene, vector

if TYPE_CHECKING:
    from raybox.files import Saveable
    from raybox.geometry import Boxes, Mesh, Rays

QUERIES = ("nearest", "occluded", "count", "all")
INVALID = ("raise", "miss")


@click.command(short_help="Cast a file of rays into a scene, answers into a file.")
@click.argument("scene", type=click.Path())
@click.argument("rays", type=click.Path())
@click.option(
    "-o", "--out", required=True, help="The answers' file (.csv .npz .npy .parquet), or - : CSV on stdout."
)
@click.option(
    "--query", type=click.Choice(QUERIES), default="nearest", show_default=True, help="What to ask."
)
@click.option(
    "--origin", type=vector, metavar="X,Y,Z", help="Makes rays from here to each point, if RAYS holds points."
)
@click.option("--boxes", is_flag=True, help="One box of each part of a mesh, in place of its triangles.")
@click.option(
    "--invalid", type=click.Choice(INVALID), default="raise", help="What rays with NaN do. [default: raise]"
)
@click.option("--workers", type=int, default=-1, show_default=True, help="Threads; -1 takes every core.")
@click.option(
    "--progress/--no-progress", default=None, help="A bar on stderr. [default: if it is a terminal]"
)
@click.option("--json", "json_", is_flag=True, help="Print the summary as one JSON object on stdout.")
def cast(scene: str, rays: str, out: str, query: str, **options: Any) -> None:
    r"""Cast every ray of RAYS into SCENE, and write the answers to a file.

    \b
    SCENE  .npz .npy .csv .parquet of boxes; .ply .obj .stl .glb meshes; .ifc; .city.json; .vox
    RAYS   .npz .npy .csv .parquet of rays; .las .laz .ply .pcd of points, with --origin

    \b
    query     columns of the answer (id: if the scene names its boxes)
    nearest   ray, index (-1 for a miss), id, t, x, y, z; a row for each ray
    occluded  ray, occluded (1 or 0); a row for each ray
    count     ray, count; a row for each ray
    all       ray, index, id, t, t_enter, t_exit, length; a row for each box that a ray meets

    \b
    raybox cast skull.obj rays.npz -o hits.parquet
    raybox cast duplex.ifc scan.laz --origin 4,-15,1.5 -o hits.csv
    """
    _check_out(out, scene, rays)
    geometry, ids = load_scene(scene, options["boxes"])
    bundle = load_rays(rays, options["origin"], options["invalid"])
    announce_compiling()
    progress = sys.stderr.isatty() if options["progress"] is None else options["progress"]
    answers, met, seconds = _ask(geometry, bundle, query, workers=options["workers"], progress=progress)
    _write(out, answers, ids)
    summary = {"scene": scene, "size": len(geometry), "rays": rays, "cast": math.prod(bundle.shape)}
    summary |= {"query": query, "met": met, "seconds": round(seconds, 3), "out": out}
    click.echo(as_json(summary) if options["json_"] else _in_words(summary), err=not options["json_"])


def _check_out(out: str, *inputs: str) -> None:
    """Refuse, before any work, an OUT that cannot be written or would overwrite what is read."""
    from raybox.files import check_target

    if out == "-":
        return
    check_target(Path(out))
    if any(Path(out).resolve() == Path(given).resolve() for given in inputs):
        raise click.UsageError(f"{out} is also an input. Give the answers a file of their own.")


def _ask(geometry: "Boxes | Mesh", rays: "Rays", query: str, **how: Any) -> tuple["Saveable", int, float]:
    """Ask; give the answers, how many rays met anything (``all``: how many boxes are met), the seconds."""
    import numpy as np

    from raybox.scene import Scene

    ask = getattr(Scene(geometry), query)
    ask(rays.reshape(-1)[:1])  # whatever has to be compiled is compiled before the clock runs
    started = time.perf_counter()
    answers = ask(rays, **how)
    seconds = time.perf_counter() - started
    if query == "nearest":
        return answers, int(np.count_nonzero(answers.hit)), seconds
    if query == "all":
        return answers, len(answers.index), seconds
    flat = answers.ravel()
    return {"ray": np.arange(flat.size), query: flat}, int(np.count_nonzero(flat)), seconds


def _write(out: str, answers: "Saveable", ids: list[str] | None) -> None:
    from raybox.files import save, text
    from raybox.files.saving import columns_of

    if out == "-":
        text.write(sys.stdout.buffer, columns_of(answers, ids))
    else:
        save(out, answers, ids=ids)


def _in_words(summary: dict[str, Any]) -> str:
    met = "boxes met" if summary["query"] == "all" else "met something"
    out = "stdout" if summary["out"] == "-" else summary["out"]
    return (
        f"raybox: {summary['cast']:,} rays into a scene of {summary['size']:,}: {summary['met']:,} {met}, "
        f"in {summary['seconds']:.2f} s; written to {out}"
    )
