"""``raybox bench``: this machine's figures, beside the peers that are installed."""

import json
from pathlib import Path
from typing import Any

import click

from raybox.cli.outputs import check_new, force_option

RAYS = ("incoherent", "inside", "camera")
QUERIES = ("nearest", "occluded", "count", "all")
QUICK: dict[str, Any] = {"ray_count": 2**16, "rounds": 3, "patience": 0.25, "ration": 0.05, "fewest": 8}
ADAPTERS = "put the folder benchmarks of raybox's sources on PYTHONPATH"
LEGEND = """
Columns with / : how many times longer that peer takes for a ray, median of the rounds (taken in turns).
* given fewer rays, evenly spread; ! some of its results differ, see below; - it has no such query."""


@click.command(short_help="Time raybox and other libraries on this machine.")
@click.option(
    "--boxes",
    default="uniform",
    show_default=True,
    metavar="KIND|FILE",
    help="uniform, clustered or mixed boxes, or a scene's file: a box of each object of .ifc and .city.json,"
    " of each triangle of other meshes.",
)
@click.option(
    "--size",
    type=click.IntRange(1),
    metavar="N",
    multiple=True,
    help="How many boxes; again for more. [default: 100000]",
)
@click.option(
    "--threads",
    type=click.IntRange(1),
    metavar="N",
    multiple=True,
    help="Threads of each library; again for more. [default: 1]",
)
@click.option(
    "--peer", multiple=True, help="A library to compare with; again for more. [default: all installed]"
)
@click.option("--rays", type=click.Choice(RAYS), multiple=True, help="Which rays. [default: all three]")
@click.option(
    "--query",
    type=click.Choice(QUERIES),
    multiple=True,
    help="What to compute; again for more. [default: nearest and count, in full all four]",
)
@click.option(
    "--rounds",
    type=click.IntRange(1),
    metavar="N",
    help="How often each library is timed. [default: 3, in full 7]",
)
@click.option("--full", is_flag=True, help="Measure a million rays in more rounds: minutes, not seconds.")
@click.option("--check/--no-check", default=True, help="Compare the results. [default: yes]")
@click.option("-o", "--out", type=click.Path(dir_okay=False), help="The raw results as a JSON file.")
@force_option
def bench(
    boxes: str, size: tuple[int, ...], threads: tuple[int, ...], peer: tuple[str, ...], **options: Any
) -> None:
    r"""Time raybox and the other libraries that are installed ("peers") in turns, on the same boxes and rays.

    Prints rates, how many times longer each peer takes than raybox (median of the rounds), and whether
    results agree; where they differ, exact rational arithmetic decides which are right.
    pip install "raybox[bench]" installs the peers; those that are missing are listed. The code that
    calls them is in the folder benchmarks of raybox's sources: put it on PYTHONPATH, else raybox is
    timed alone.

    \b
    raybox bench
    raybox bench --size 1000 --size 1000000 --threads 2 --full
    raybox bench --boxes city.city.json --query nearest
    """
    if options["out"]:
        check_new(options["out"], force=options["force"])
    from raybox.bench import data, machine, report
    from raybox.bench.runner import versus
    from raybox.bench.worker import run_apart

    plan = {"boxes": _known_boxes(boxes, data.BOX_KINDS), "names": _names(peer), "check": options["check"]}
    plan |= {
        "rays": options["rays"] or RAYS,
        "queries": options["query"] or QUERIES[:: 1 if options["full"] else 2],
    }
    plan |= {"rounds": 7} if options["full"] else QUICK
    if options["rounds"]:
        plan["rounds"] = options["rounds"]
    results = []
    for count in size or (100_000,):
        for workers in threads or (1,):
            results.append(run_apart(versus, plan | {"size": count, "threads": workers}, threads=workers))
    _print(results, report, machine)
    if options["out"]:
        Path(options["out"]).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def _known_boxes(boxes: str, kinds: tuple[str, ...]) -> str:
    """Return a kind of boxes, or a scene's file; raise, before any work, if it cannot be read."""
    if boxes in kinds:
        return boxes
    if not Path(boxes).exists():
        raise click.UsageError(f"--boxes {boxes}: neither a kind of boxes ({', '.join(kinds)}) nor a file.")
    from raybox.io.formats import read

    if not len(read(boxes, kind="scene").geometry):
        raise click.UsageError(f"--boxes {boxes}: holds no boxes. Pass a file with some.")
    return boxes


def _names(peers: tuple[str, ...]) -> tuple[str, ...]:
    """Return raybox first, then the given peers, or all of them."""
    from raybox.bench.peers import others, table

    for name in peers:
        if name not in table():
            hint = "" if others() else f" For other libraries, {ADAPTERS}."
            raise click.UsageError(f"--peer {name}: unknown peer. Known: {'; '.join(table())}.{hint}")
    return ("raybox", *(name for name in (peers or others()) if name != "raybox"))


def _print(results: list[dict[str, Any]], report: Any, machine: Any) -> None:
    from raybox.bench.peers import others

    rows = [row for result in results for row in report.rows(result)]
    if rows:
        click.echo(report.text(*report.pivot(rows)))
        click.echo(LEGEND)
    for line in dict.fromkeys(line for result in results for line in report.absent(result)):
        click.echo(f"not measured: {line}")
    if not others():
        click.echo(f"not measured: other libraries; to measure them, {ADAPTERS}")
    for line in report.differing(rows):
        click.echo(f"results: {line}")
    click.echo("\n" + machine.in_words(results[0]["machine"]) + "\n" + machine.WARNING)
