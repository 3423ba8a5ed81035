"""``raybox cast``: casts a file of rays into a scene, and writes the results to a file."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from raybox.cli.common import as_json
from raybox.cli.inputs import STDIN, TableChoice, check_format, format_names, input_files, shown
from raybox.cli.notices import QUIET, notice, print_versions, verbosity
from raybox.cli.outputs import check_new, check_no_input, force_option, stdout
from raybox.cli.scenes import (
    SceneOptions,
    geometries,
    load_scene,
    origin_option,
    scene_options,
    size_of,
)
from raybox.errors import printable
from raybox.queries.names import Per

if TYPE_CHECKING:
    from raybox.casting import Summary
    from raybox.cli.scenes import SceneContent
    from raybox.scene.scene import Scene
    from raybox.validation import Array, Ints

_ARRAYS = "values", "weights"
_PASSED = "per", "k", "max_distance", "origin", "invalid", "layout", "workers", "where", "format"
_GROUP = "group"
_COUNTED = {
    "all": "hits",
    "segments": "segments",
    "deposit": "sums above or below zero",
    "containing": "boxes found",
    "overlapping": "boxes found",
    "closest": "near a box",
}


def _query_names() -> Sequence[str]:
    from raybox.scene.file_queries import file_queries

    return file_queries()


def _format_names() -> list[str]:
    return [*format_names(), "zarr"]


@click.command(short_help="Cast a file of rays into a scene, results into a file.")
@click.argument("scene", type=click.Path())
@click.argument("rays", type=click.Path(), nargs=-1, required=True)
@click.option(
    "-o",
    "--out",
    required=True,
    help="The file of results (.parquet .npy .csv .npz .zarr); OUT/, a folder of them; or -: CSV on stdout.",
)
@click.option(
    "--query",
    type=TableChoice("query", _query_names),
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
@click.option(
    "--per", type=click.Choice(get_args(Per)), help="What a weight is multiplied by. [default: length]"
)
@click.option(
    "--k", type=click.IntRange(1), metavar="N", help="How many boxes closest finds for a point. [default: 1]"
)
@click.option(
    "--max-distance",
    type=click.FloatRange(0),
    metavar="D",
    help="The largest distance of closest. [default: inf]",
)
@origin_option
@click.option(
    "--labels",
    metavar="NAMES",
    help="Labels of the object hit to write, too, such as name,ifc_class, or all; raybox info lists them.",
)
@click.option(
    "--carry",
    metavar="NAMES",
    help="Columns of RAYS to write, too, such as id,time, or all; .csv and .parquet only.",
)
@click.option(
    "--group-column",
    metavar="NAME",
    help="The column of RAYS with the group of each, which hits boxes of its own and of -1. SCENE is a "
    "folder of a scene with groups, or has the label group.",
)
@scene_options
@click.option(
    "--format",
    "format_",
    type=TableChoice("format", _format_names),
    metavar="NAME",
    help="Of stdin, such as csv [default: by its first bytes]; of a folder OUT/, parquet or zarr. "
    "[default: parquet]",
)
@click.option(
    "--chunk", type=click.IntRange(1), metavar="N", help="Rays in memory at once. [default: a million]"
)
@force_option
@click.option("--exit-status", is_flag=True, help="End with exit code 1 if nothing was hit.")
@click.option("--workers", type=int, default=-1, show_default=True, help="Threads; -1 takes every core.")
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="The scheduler of a Dask cluster, like tcp://host:8786, whose workers cast.",
)
@click.option(
    "--blocks",
    metavar="FROM:TO",
    help="Cast only these blocks of --chunk rays, such as 0:100, into OUT.raybox: for job arrays.",
)
@click.option("--finish", "finish_", is_flag=True, help="Write OUT of blocks that were all cast by --blocks.")
@click.option(
    "--progress/--no-progress", default=None, help="A bar on stderr. [default: if it is a terminal]"
)
@click.option("--json", "json_", is_flag=True, help="Print the summary as one JSON object on stdout.")
def cast(
    scene: str, rays: tuple[str, ...], out: str, query: str, reading: SceneOptions, **options: Any
) -> None:
    r"""Cast every ray of RAYS into SCENE, and write the results to a file.

    \b
    SCENE  .npz .npy .csv .tsv .txt .xyz .bin .parquet .zarr of boxes, also oriented;
           .npz of any saved scene; .scene folders;
           .ply .obj .stl .glb .gltf meshes; .ifc; .city.json .jsonl; .vox;
           with --boxes: a box of each object of a mesh, .ifc or .city.json
           with --grid: .vox, or an array of cells in .npy or .npz
    RAYS   .npz .npy .csv .tsv .txt .xyz .bin .parquet .zarr of rays;
           with --origin: also of points, and .las .laz .ply .pcd
           for containing and closest: points; for overlapping: boxes, as SCENE with --boxes

    Each may be a pattern in quotes, such as 'rays_*.csv', and RAYS several files: rays are numbered on from
    file to file, and so are the rows of the files of SCENE, which are one scene. One of the two may be -,
    stdin: its format is that of --format, else that of its first bytes, else CSV.

    RAYS may be larger than memory. If the command is stopped, what is done stays in OUT.raybox, and the same
    command continues from there.

    OUT/ is a dataset: a folder of Parquet files of --chunk rays, as pandas, polars, DuckDB and Dask read it;
    with --format zarr, a group of arrays with an element for each ray.

    \b
    query     columns of the results (object: if a mesh has objects; id: if the objects have names)
    nearest   ray, index (-1 for a miss), object, id, t, x, y, z; a row for each ray
    occluded  ray, occluded (1 or 0); a row for each ray
    count     ray, count (of a mesh: of triangles); a row for each ray
    all       ray, index, object, id, t, t_enter, t_exit, length; a row for each box or triangle
    segments  the same of the partition of a ray by a grid; a row for each segment
    integrate ray, integral: the sum of value * length inside of boxes; a row for each ray
    deposit   index, id, deposit: the sum of weight * length inside; a row for each box or cell

    \b
    containing   row, index, object, id: boxes that hold a point; a row for each box or cell
    overlapping  row, index, object, id: boxes that share a point with a box of RAYS; a row for each
    closest      row, index (-1 for none), object, id, distance; --k rows for each point

    Before id, a saved scene of several has the column geometry, and oriented boxes and saved copies have the
    column primitive, the row in what is copied.

    \b
    raybox cast skull.obj rays.npz -o hits.parquet
    raybox cast duplex.ifc scan.laz --origin 4,-15,1.5 -o hits.csv --labels name,ifc_class
    raybox cast 'tiles_*.csv' 'rays_*.parquet' -o hits.parquet --carry id,time
    zcat rays.csv.gz | raybox cast boxes.csv - -o - --query count > counts.csv
    raybox cast city.city.json rays.parquet -o hits/ --cluster tcp://10.0.0.1:8786
    raybox cast city.scene rays.npy -o hits.npy --blocks 0:50
    raybox cast city.scene rays.npy -o hits.npy --finish
    raybox cast --grid cells.npz rays.npz -o sums.npy --query integrate --values density.npy
    raybox cast duplex.ifc scan.laz --boxes -o near.parquet --query closest --labels name
    raybox cast --grid model.vox sun.parquet -o light.npy --query deposit --weights power.npy
    """
    if options["blocks"] and options["finish_"]:
        raise click.UsageError("--finish writes OUT of all blocks. Run it once those of --blocks are cast.")
    is_folder = out.endswith(("/", os.sep))
    options["format"], of_stdin = _formats(options["format_"], is_folder, [scene, *rays])
    scenes = input_files([scene], of_stdin, rays)
    files = input_files(rays, of_stdin, [scene])
    arrays = [options[name] for name in _ARRAYS if options[name]]
    _check_out(out, options, [*scenes, *files, *arrays], query)
    summary: dict[str, Any] = {"scene": shown(scenes)}
    if options["finish_"]:
        done = _finish(out)
    else:
        geometry = load_scene(scenes, reading.next_to_rays())
        print_versions()
        done = _cast(geometry, files, out, query, where=reading.where, **options, **reading.of_rays())
        summary |= {"size": size_of(geometry)}
    summary |= {"rays": shown(files), "cast": done.rays}
    summary |= {"query": query, "hit_count": done.hit_count, "rows": done.rows}
    stored = f"{out.rstrip(os.sep)}.raybox" if options["blocks"] else out
    summary |= {"seconds": round(done.seconds, 3), "out": stored}
    summary |= {"resumed": done.resumed} if done.resumed else {}
    if options["json_"]:
        click.echo(as_json(summary))
    else:
        notice(_in_words(summary))
    if options["exit_status"] and not done.hit_count:
        click.get_current_context().exit(1)


def _formats(given: str | None, is_folder: bool, inputs: Sequence[str]) -> tuple[str | None, str | None]:
    """Return the format of a folder of results, None for one file; and that of stdin, None if not given."""
    if STDIN in inputs or not is_folder:
        check_format(given, *inputs)
        return "parquet" if is_folder else None, given
    return given or "parquet", None


def _check_out(out: str, options: dict[str, Any], inputs: Sequence[str], query: str) -> None:
    """Raise, before any work, if OUT cannot be written, is also an input, or is to stay as it is."""
    from raybox.casting.call import check_out, dataset_format
    from raybox.casting.cast_folder import cast_folder

    if out == STDIN:
        if options["json_"]:
            raise click.UsageError("-o - and --json both write to stdout. Give -o the name of a file.")
        if options["cluster"] or options["blocks"] or options["finish_"]:
            raise click.UsageError("Several processes write to a file. Pass its name with -o.")
        return
    check_out(Path(out), dataset_format(out, options["format"]), query)
    check_no_input(out, inputs)
    if not cast_folder(
        Path(out)
    ).exists():  # else an earlier command has begun OUT, and this one continues it
        check_new(out, force=options["force"])


def _cast(geometry: "SceneContent", rays: Sequence[str], out: str, query: str, **how: Any) -> "Summary":
    """Cast, and return the summary; when interrupted, print how many rays are stored."""
    from raybox import casting
    from raybox.threads.chunks import check_workers

    check_workers(how["workers"])
    scene = _scene(geometry, how["group_column"])
    options: dict[str, Any] = {name: _load_array(how[name]) for name in _ARRAYS}
    options |= {name: how[name] for name in _PASSED}
    options |= {name: _names(how[name]) for name in ("carry", "labels")}
    options |= {"chunk": how["chunk"]} if how["chunk"] else {}
    options |= {"blocks": _numbers(how["blocks"])} if how["blocks"] else {}
    shown = sys.stderr.isatty() and verbosity() > QUIET if how["progress"] is None else how["progress"]
    given = options | {"query": query, "progress": shown, "groups": how["group_column"]}
    try:
        to = stdout() if out == STDIN else out
        return casting.cast(scene, rays, to, cluster=how["cluster"], **given)
    except KeyboardInterrupt as interrupt:
        for note in getattr(interrupt, "__notes__", ()):
            click.echo(f"raybox: {printable(note)}", err=True)
        raise


def _scene(content: "SceneContent", group_column: str | None) -> "Scene":
    """Return the scene, with groups if rays have some: those of a saved scene, or of the label."""
    from raybox.geometry import object_rows
    from raybox.scene.scene import Scene

    if isinstance(content, Scene):
        if content.groups is not None and group_column is None:
            raise click.UsageError("SCENE has groups. Pass --group-column, the column of those of RAYS.")
        if content.groups is None and group_column is not None:
            way_out = "Save one that has: Scene(geometry, groups=...).save(path)."
            raise click.UsageError(f"--group-column: SCENE has no groups. {way_out}")
        return content
    if group_column is None:
        return Scene(content)
    groups = list["Ints | None"]()
    for one in geometries(content):
        rows = object_rows(one)
        label = rows.attributes.labels.get(_GROUP)
        if label is not None and label.dtype.kind != "i":
            raise click.UsageError(f"The label {_GROUP} of SCENE is not an integer in each row. Correct it.")
        groups.append(label if label is None or rows.numbers is None else label[rows.numbers])
    if all(one is None for one in groups):
        raise click.UsageError(
            f"--group-column: SCENE has no label {_GROUP}. Add a column {_GROUP} of integers to its boxes."
        )
    return Scene(content, groups=groups if isinstance(content, list) else groups[0])


def _finish(out: str) -> "Summary":
    from raybox import casting
    from raybox.casting.cast_folder import cast_folder

    return casting.finish(cast_folder(Path(out)))


def _numbers(text: str) -> range:
    """Return the numbers of blocks in a text such as 0:100."""
    start, separator, end = text.partition(":")
    if not (separator and start.isdecimal() and end.isdecimal() and int(start) < int(end)):
        raise click.BadParameter(
            f"{text!r} is no range. Write FROM:TO, such as 0:100.", param_hint="--blocks"
        )
    return range(int(start), int(end))


def _names(text: str | None) -> list[str]:
    """Return names that are separated by commas; none without a text."""
    return [name.strip() for name in text.split(",")] if text else []


def _load_array(path: str | None) -> "Array | None":
    """Return the array of a file, mapped; None without a file."""
    if path is None:
        return None
    from raybox.io.formats.common import reader_errors
    from raybox.io.formats.numpy_arrays import map_array

    with reader_errors(Path(path), "a NumPy array (npy)"):
        return map_array(Path(path))


def _in_words(summary: dict[str, Any]) -> str:
    from raybox.scene.file_queries import columns_of

    counted = _COUNTED.get(summary["query"], "hit something")
    out = "stdout" if summary["out"] == "-" else summary["out"]
    before = f" ({summary['resumed']:,} of them before)" if "resumed" in summary else ""
    scene = f" into a scene of {summary['size']:,}" if "size" in summary else ""
    reads = columns_of(summary["query"]).reads
    scene = scene if reads == "rays" else scene.replace("into", "in")
    return (
        f"{summary['cast']:,} {reads}{before}{scene}: "
        f"{summary['hit_count']:,} {counted}, in {summary['seconds']:.2f} s; written to {out}"
    )
