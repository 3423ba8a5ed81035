"""Writes docs/performance.md and its appendix from the results."""

from pathlib import Path
from statistics import median
from typing import Any

import aims
import for_you
import own_tables
import parts
from raybox.bench import machine, peers, report
from raybox.bench.report import Row

Results = dict[str, Any]
HEAD = """\
# {title}

<!-- Written by benchmarks/performance.py from what it measured: do not edit. -->
"""
MORE = "[All measurements]({appendix}.md) are an appendix: other libraries, real files, how it was measured."
INTRO = "The measurements behind [{title}]({name}.md), which has what a user may expect."
METHOD = """\
## How it was measured

In one run on one machine: the same boxes, the same rays, results compared. {warning}

raybox returns exact results throughout. All write arrays of results, and all have the same number of threads:
each measurement is a process bound to that many cores. Boxes and rays are float32 numbers, prepared in each
peer's own form before the clock runs. Contestants take turns, round by round, the garbage collector is
off, and a ratio is the median over rounds of a peer's time for a ray over raybox's in the same round: of five
at least (three where scenes are large), and of up to five times as many where all together
take less than {least:g} seconds. For half of all ratios every round lies within {spread:.0%} of it.

{machine}
"""
DATA = """\
**Boxes**, uniform: centres uniform in the unit cube, half sizes uniform in [0, 0.01]·(10⁵/N)^⅓; a tenth of
the cube is filled at every N. **Rays**, 2²⁰ of each kind: incoherent: origins uniform in a cube twice as
wide, directions uniform on the sphere; inside: the same with origins in the cube; camera: a pinhole picture,
1024 x 1024, 40 degrees wide. A peer that needs more than a few seconds for a call gets an evenly spread part
of the rays (marked `*`), at least 64.
"""
LEGEND = "`*` fewer rays; `!` some results differ from raybox's, decided below; `-` it has no such query."


def write(results: Results, docs: Path, name: str = "performance", title: str = "Performance") -> None:
    """Write a page, its appendix, and their plots; plots of other pages start with the page's name."""
    some = next(iter(results.values()), None)
    if some is None:
        raise SystemExit("there are no results; measure first")
    rows = aims.all_rows(results)
    facts = machine.in_words(some["machine"])
    caption = facts.split("\n")[0]
    import plots  # needs matplotlib; the tables do not

    images = "images/" if name == "performance" else f"images/{name}-"
    plots.ratios(rows, docs / f"{images}peers.svg", caption)
    if any(row.threads == 1 for row in rows):
        plots.rates(rows, docs / f"{images}size.svg", caption)
    appendix = f"{name}_appendix"
    opening = [
        HEAD.format(title=title),
        for_you.section(results, rows),
        MORE.format(appendix=appendix),
    ]
    measured = [
        HEAD.format(title=f"{title}: all measurements"),
        INTRO.format(title=title, name=name),
        _peers(rows),
        _others(results),
        *own_tables.sections(results),
        _method(results, rows, facts),
        _given(results),
        _agreement(results),
        AGAIN,
    ]
    docs.mkdir(parents=True, exist_ok=True)
    for stem, sections in ((name, opening), (appendix, measured)):
        text = "\n\n".join(s.strip() for s in sections if s) + "\n"
        (docs / f"{stem}.md").write_text(text.replace("(images/", f"({images}"), encoding="utf-8")


def _method(results: Results, rows: list[Row], facts: str) -> str:
    wide = [max(row.high / row.ratio, row.ratio / row.low) - 1 for row in rows if row.ratio != 1.0]
    dates = sorted(result["machine"]["date"] for result in results.values())
    first, versions = facts.split("\n")
    words = f"{dates[0]} to {dates[-1]}; {first.split('; ', 1)[1]}.\n{versions}."
    spread = median(wide or [0.0])
    return METHOD.format(warning=machine.WARNING, least=parts.LEAST, spread=spread, machine=words)


def _peers(rows: list[Row]) -> str:
    """Return a table of ratios for each number of threads."""
    made = ["## Compared with other libraries", DATA]
    if any(row.threads == 1 for row in rows):  # which the plot is of
        made.append("![times slower, by query and rays](images/peers.svg)")
    for threads in sorted({row.threads for row in rows}):
        some = [row for row in rows if row.threads == threads]
        made.append(f"### {'One thread' if threads == 1 else f'{threads} threads'}")
        made.append("Times raybox's time for a ray, so above 1 raybox is faster:")
        made.append(_pivot(some, (1, 2)))
    return "\n\n".join([*made, LEGEND])


def _pivot(rows: list[Row], dropped: tuple[int, ...]) -> str:
    head, lines = report.pivot(rows)
    columns = [k for k in range(len(head)) if k not in dropped]
    return report.markdown([head[k] for k in columns], [[line[k] for k in columns] for line in lines])


def _others(results: Results) -> str:
    """Return a table of other kinds of boxes and of real files."""
    chosen = [name for name in results if name.startswith(("clustered", "mixed-sizes", "real-"))]
    rows: list[Row] = []
    for name in chosen:
        label = name.removeprefix("real-")
        for row in report.rows(results[name]):
            kind = "lidar beams" if row.rays == "beams" else row.rays
            rows.append(row._replace(boxes=label, rays=kind))
    if not rows:
        return ""
    return "\n\n".join(["## Other boxes, and real ones", OTHERS, _pivot(rows, (2,)), LEGEND])


OTHERS = """\
One thread. clustered: the uniform boxes in crowds of 1000; mixed-sizes: half sizes log-uniform over a factor
of 300 on each axis. house: an apartment's building elements; city: a box for each object of a part of Delft;
skull: the boxes of a mesh's triangles; voxels: a shop of cubes that share faces; street: labelled cuboids
and a lidar's beams. Real boxes were moved to the origin first, to suit float32."""


def _given(results: Results) -> str:
    """Return the forms of boxes that peers got, and which peers were not measured."""
    versions = {name: v for result in results.values() for name, v in result["machine"]["versions"].items()}
    used = {c["name"] for result in results.values() for c in result.get("contestants", [])}
    lines = [
        (p.name, versions.get(p.distribution, "-"), p.given) for p in peers.table().values() if p.name in used
    ]
    absent = dict.fromkeys(
        line for result in results.values() if "contestants" in result for line in report.absent(result)
    )
    notes = "\n".join(f"- {' '.join(line.split())}" for line in absent)
    table = report.markdown(("peer", "version", "given"), lines)
    sentences = [f"{PEERS_NOTE} Not measured:", notes] if notes else [PEERS_NOTE]
    return "\n\n".join(["### What each was given", table, *sentences])


PEERS_NOTE = """\
Triangles are surfaces: a ray that starts inside a box hits it where it leaves, while a closed box is hit at
once. That is another query, and compared as such. An Embree scene has about 1 kB a box, so none was built of
10⁷ boxes. embreex runs a call on one thread; with more threads it was called from several at once, each
with its part of the rays."""


def _agreement(results: Results) -> str:
    """Return the agreement of results, by peer."""
    sums: dict[str, list[int]] = {}
    for result in results.values():
        for record in result.get("times", []):
            if facts := record.get("agreement"):
                numbers = [facts[k] for k in KEYS]
                before = sums.setdefault(record["name"], [0] * len(KEYS))
                sums[record["name"]] = [a + b for a, b in zip(before, numbers, strict=True)]
    lines = [(name, *(f"{number:,}" for number in numbers)) for name, numbers in sums.items()]
    head = ("peer", "results compared", "near ties", "differ", "decided", "raybox right", "peer right")
    return "\n\n".join(["### Do they agree?", AGREEMENT, report.markdown(head, lines)])


KEYS = ("compared", "near", "differ", "settled", "raybox_right", "peer_right")
AGREEMENT = """\
Results were compared ray by ray with raybox's. A near tie is another box at the same t within float32's
tolerance. Of the rest a sample was decided by rational arithmetic; for raybox itself, rays spread over all
of them."""
AGAIN = """\
### Again

```console
pip install -e ".[bench]"
python benchmarks/performance.py --data ../shared/data
```

Parts that are done already are not done again; `--list` names them. `raybox bench` is the short form, of
about a minute: this machine and, with `benchmarks` on `PYTHONPATH`, the peers that are installed."""
