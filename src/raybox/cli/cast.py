"""``raybox cast``: casts a file of rays into a scene, and writes the results to a file."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raybox.cli.common import announce_compiling, as_json, load_scene, scene_options, vector

if TYPE_CHECKING:
    from raybox.geometry import Boxes, Grid, Mesh
    from raybox.io.chunked import Summary
    from raybox.queries.query import FileQuery

INVALID = ("raise", "miss")
PER = ("length", "hit")  # of deposit: times the length inside, or times 1
_ARRAYS = "values", "weights"
_COUNTED = {"all": "hits", "segments": "stretches", "deposit": "sums above or below zero"}


class QueryName(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """The name of a query that can be cast: one of the table of queries, imported where it is needed."""

    name = "query"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name; fail if there is no such query."""
        return self._choice().convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Any:
        """Return the names that begin so."""
        return self._choice().shell_complete(ctx, param, incomplete)

    @staticmethod
    def _choice() -> Any:
        from raybox.queries.table import file_queries

        return click.Choice(file_queries())


@click.command(short_help="Cast a file of rays into a scene, results into a file.")
@click.argument("scene", type=click.Path())
@click.argument("rays", type=click.Path())
@click.option(
    "-o",
    "--out",
    required=True,
    help="The file of results (.parquet .npy .csv .npz .zarr), or - : CSV on stdout.",
)
@click.option(
    "--query",
    type=QueryName(),
    metavar="QUERY",
    default="nearest",
    show_default=True,
    help="What to compute: one of those above.",
)
@click.option(
    "--values", type=click.Path(), metavar="FILE", help="What integrate sums: .npy, a row for each box."
)
@click.option(
    "--weights", type=click.Path(), metavar="FILE", help="What deposit sums: .npy, a row for each ray."
)
@click.option("--per", type=click.Choice(PER), help="What a weight is multiplied by. [default: length]")
@click.option(
    "--origin", type=vector, metavar="X,Y,Z", help="Makes rays from here to each point, if RAYS holds points."
)
@scene_options
@click.option(
    "--invalid", type=click.Choice(INVALID), default="raise", help="What rays with NaN do. [default: raise]"
)
@click.option("--workers", type=int, default=-1, show_default=True, help="Threads; -1 takes every core.")
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="The scheduler of a Dask cluster, like tcp://host:8786, whose workers cast.",
)
@click.option(
    "--progress/--no-progress", default=None, help="A bar on stderr. [default: if it is a terminal]"
)
@click.option("--json", "json_", is_flag=True, help="Print the summary as one JSON object on stdout.")
def cast(scene: str, rays: str, out: str, query: "FileQuery", **options: Any) -> None:
    r"""Cast every ray of RAYS into SCENE, and write the results to a file.

    \b
    SCENE  .npz .npy .csv .parquet of boxes; .ply .obj .stl .glb meshes; .ifc; .city.json; .vox;
           with --grid: .vox, or an array of cells in .npy or .npz
    RAYS   .npz .npy .csv .parquet .zarr of rays; .las .laz .ply .pcd of points, with --origin

    RAYS may be larger than memory. If the command is stopped, what is done stays in OUT.raybox-part, and the
    same command continues from there.

    \b
    query     columns of the results (id: if the scene names its boxes)
    nearest   ray, index (-1 for a miss), id, t, x, y, z; a row for each ray
    occluded  ray, occluded (1 or 0); a row for each ray
    count     ray, count; a row for each ray
    all       ray, index, id, t, t_enter, t_exit, length; a row for each hit
    segments  the same of the partition of a ray by a grid; a row for each stretch
    integrate ray, integral: the sum of value * length inside of boxes; a row for each ray
    deposit   index, id, deposit: the sum of weight * length of rays inside; a row for each box or cell

    \b
    raybox cast skull.obj rays.npz -o hits.parquet
    raybox cast duplex.ifc scan.laz --origin 4,-15,1.5 -o hits.csv
    raybox cast city.city.json rays.parquet -o hits.parquet --cluster tcp://10.0.0.1:8786
    raybox cast --grid cells.npz rays.npz -o sums.npy --query integrate --values density.npy
    raybox cast --grid model.vox sun.parquet -o light.npy --query deposit --weights power.npy
    """
    _check_out(out, options["cluster"], scene, rays)
    geometry, ids = load_scene(scene, options["boxes"], options["grid"])
    announce_compiling()
    done = _cast(geometry, rays, out, query, ids=ids, **options)
    summary = {"scene": scene, "size": len(geometry), "rays": rays, "cast": done.rays, "query": query}
    summary |= {"met": done.met, "seconds": round(done.seconds, 3), "out": out}
    summary |= {"resumed": done.resumed} if done.resumed else {}
    click.echo(as_json(summary) if options["json_"] else _in_words(summary), err=not options["json_"])


def _check_out(out: str, cluster: str | None, *inputs: str) -> None:
    """Raise, before any work, if OUT cannot be written or is also an input."""
    from raybox.io.chunked.casting import is_same_file
    from raybox.io.chunked.writers import check_out

    if out == "-":
        if cluster:
            raise click.UsageError("A cluster writes to a file. Pass its name with -o.")
        return
    if any(is_same_file(Path(out), Path(given)) for given in inputs):
        raise click.UsageError(f"{out} is also an input. Write the results to another file.")
    check_out(Path(out))


def _cast(geometry: "Boxes | Grid | Mesh", rays: str, out: str, query: "FileQuery", **how: Any) -> "Summary":
    """Cast, and return the summary; when interrupted, print which part file remains."""
    from raybox.io import chunked
    from raybox.scene.scene import Scene
    from raybox.threads.chunks import check_workers

    check_workers(how["workers"])
    given = {name: _load_array(how[name]) for name in _ARRAYS} | {"per": how["per"]}
    if how["cluster"] and any(value is not None for value in given.values()):
        raise click.UsageError("A cluster takes no --values, --weights or --per. Cast on one machine.")
    shown = sys.stderr.isatty() if how["progress"] is None else how["progress"]
    options = {name: how[name] for name in ("ids", "origin", "invalid", "workers")}
    try:
        if how["cluster"]:
            from raybox.distributed import dask as cluster

            options["cluster"] = how["cluster"]
            return cluster.cast(Scene(geometry), rays, out, query=query, progress=shown, **options)
        to = sys.stdout.buffer if out == "-" else out
        return chunked.cast(Scene(geometry), rays, to, query=query, progress=shown, **given, **options)
    except KeyboardInterrupt as interrupt:
        for note in getattr(interrupt, "__notes__", ()):
            click.echo(f"raybox: {note}", err=True)
        raise


def _load_array(path: str | None) -> Any:
    """Return the array of a file, mapped; None without a file."""
    if path is None:
        return None
    import numpy as np

    from raybox.io.formats.common import file_error

    try:
        return np.load(path, allow_pickle=False, mmap_mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise file_error(Path(path), f"is no .npy file: {error}", "write it with np.save") from error


def _in_words(summary: dict[str, Any]) -> str:
    counted = _COUNTED.get(summary["query"], "hit something")
    out = "stdout" if summary["out"] == "-" else summary["out"]
    before = f" ({summary['resumed']:,} of them before)" if "resumed" in summary else ""
    return (
        f"raybox: {summary['cast']:,} rays{before} into a scene of {summary['size']:,}: "
        f"{summary['met']:,} {counted}, in {summary['seconds']:.2f} s; written to {out}"
    )
