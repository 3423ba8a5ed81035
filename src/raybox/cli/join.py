"""``raybox join``: pairs of boxes of two scenes that overlap or are near, as a clash list."""

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raybox.cli.common import as_json
from raybox.cli.inputs import STDIN, check_format, format_option, input_files, shown
from raybox.cli.notices import QUIET, notice, print_versions, verbosity
from raybox.cli.outputs import check_new, check_no_input, force_option, stdout
from raybox.cli.scenes import SceneOptions, geometries, load_scene, scene_options

if TYPE_CHECKING:
    from raybox.scene.scene import Scene
    from raybox.validation import Ints


@click.command(short_help="List what of two scenes overlaps or is near, such as clashes.")
@click.argument("a", type=click.Path())
@click.argument("b", type=click.Path(), required=False)
@click.option(
    "-o", "--out", required=True, help="The file of pairs (.parquet .csv .npz .npy), or -: CSV on stdout."
)
@click.option(
    "--distance",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    metavar="D",
    help="The largest gap of a pair; 0: boxes that share a point.",
)
@click.option(
    "--labels",
    metavar="NAMES",
    help="Labels of both objects to write, or all. [default: name,ifc_class, where there are such]",
)
@click.option("--where-b", metavar="EXPR", help="As --where, of B; --where is of A.")
@scene_options
@format_option
@force_option
@click.option("--exit-status", is_flag=True, help="End with exit code 1 if there is no pair.")
@click.option("--workers", type=int, default=-1, show_default=True, help="Threads; -1 takes every core.")
@click.option(
    "--progress/--no-progress", default=None, help="A bar on stderr. [default: if it is a terminal]"
)
@click.option("--json", "json_", is_flag=True, help="Print the summary as one JSON object on stdout.")
def join(a: str, b: str | None, out: str, reading: SceneOptions, **options: Any) -> None:
    r"""List all pairs of an object of A and one of B whose boxes overlap or are near.

    Without B, pairs are of two objects of A, each pair once. A and B are files of boxes or of objects: of
    .ifc, .city.json and meshes, the box around each object, parallel to the axes, is compared, as with
    --boxes. Each may be a pattern in quotes, or one of them -, stdin. Options of scenes are for both, but
    --where is of A.

    \b
    columns of PAIRS
    index_a index_b  the rows of both: of boxes in their file, or of objects
    id_a id_b        their ids, if there are ids
    NAME_a NAME_b    labels of both, such as name_a and name_b

    Touching counts, and a gap of exactly D. Pairs are sorted by index_a, then index_b.

    \b
    raybox join ducts.ifc structure.ifc -o clashes.csv
    raybox join duplex.ifc -o near.parquet --distance 0.05 --labels name,storey
    raybox join a.ifc b.ifc -o - --where "ifc_class == 'IfcDoor'" --where-b "storey == '1'"
    """
    names, format_ = [name for name in (a, b) if name is not None], options["format_"]
    check_format(format_, *names)
    if b is None and options["where_b"] is not None:
        raise click.UsageError("--where-b is of B. Pass B, or --where for both boxes of a pair.")
    files_a = input_files([a], format_, names[1:])
    files_b = [] if b is None else input_files([b], format_, [a])
    _check_out(out, [*files_a, *files_b], options)
    started = time.perf_counter()
    first = _scene(files_a, reading)
    second = None if b is None else _scene(files_b, reading._replace(where=options["where_b"]))
    print_versions()
    pairs = _write(first, second, out, where=reading.where, **options)
    summary: dict[str, Any] = {"a": shown(files_a), "size_a": len(first)}
    if second is not None:
        summary |= {"b": shown(files_b), "size_b": len(second)}
    seconds = round(time.perf_counter() - started, 3)
    summary |= {"distance": options["distance"], "pairs": pairs, "seconds": seconds, "out": out}
    if options["json_"]:
        click.echo(as_json(summary))
    else:
        notice(_in_words(summary))
    if options["exit_status"] and not pairs:
        click.get_current_context().exit(1)


def _check_out(out: str, inputs: Sequence[str], options: dict[str, Any]) -> None:
    """Raise, before any work, if OUT cannot be written, is also an input, or is to stay as it is."""
    from raybox.casting.pair_files import SUFFIXES
    from raybox.io.formats.saving import check_target

    if out == STDIN:
        if options["json_"]:
            raise click.UsageError("-o - and --json both write to stdout. Give -o the name of a file.")
        return
    check_target(Path(out), SUFFIXES)
    check_no_input(out, inputs)
    check_new(out, force=options["force"])


def _scene(paths: Sequence[str], reading: SceneOptions) -> "Scene":
    """Return the boxes of files: of objects, those around them; of a saved scene of boxes, with its trees."""
    from raybox.geometry import Boxes, Grid
    from raybox.io.formats.table import SAVED_SCENE
    from raybox.scene.scene import Scene

    is_saved = Path(paths[0]).suffix.lower() == SAVED_SCENE
    content = load_scene(paths, reading if reading.grid or is_saved else reading._replace(boxes=True))
    if isinstance(content, Scene) and content.groups is not None:
        raise click.UsageError(f"{paths[0]} has groups, whose boxes only Scene.join compares in each group.")
    if not all(isinstance(one, Boxes | Grid) for one in geometries(content)):
        content = load_scene(paths, reading._replace(boxes=True))
    return content if isinstance(content, Scene) else Scene(content)


def _write(first: "Scene", second: "Scene | None", out: str, **how: Any) -> int:
    """Write the pairs, and return how many there are."""
    from raybox.casting.pair_files import pair_columns, write_pairs
    from raybox.threads.chunks import check_workers
    from raybox.threads.progress import progress_bar

    check_workers(how["workers"])
    labels = None if how["labels"] is None else [name.strip() for name in how["labels"].split(",")]
    suffix = ".csv" if out == STDIN else Path(out).suffix.lower()
    columns = pair_columns((first, first if second is None else second), labels, suffix)
    options = {"where": how["where"], "other_where": how["where_b"], "workers": how["workers"]}
    blocks = first.join(second, distance=how["distance"], chunks=True, **options)
    is_shown = sys.stderr.isatty() and verbosity() > QUIET if how["progress"] is None else how["progress"]
    with progress_bar("pairs", shown=is_shown) as bar:

        def counted() -> "Iterator[Ints]":
            for block in blocks:
                bar.update(len(block))
                yield block

        return write_pairs(counted(), columns, stdout() if out == STDIN else Path(out))


def _in_words(summary: dict[str, Any]) -> str:
    out = "stdout" if summary["out"] == "-" else summary["out"]
    boxes = f"{summary['size_a']:,} boxes"
    boxes += f" and {summary['size_b']:,} boxes" if "size_b" in summary else ""
    return f"{boxes}: {summary['pairs']:,} pairs, in {summary['seconds']:.2f} s; written to {out}"
