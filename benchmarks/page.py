"""Writes docs/performance.md and its appendix from the results."""

import re
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import aims
import array_input
import batch_sizes
import derived_fields
import for_you
import grid_sums
import own_tables
import parts
import small_batches
from raybox.bench import machine, peers, report
from raybox.bench.report import Row

Results = dict[str, Any]
HEAD = """\
# {title}

<!-- Written by benchmarks/performance.py from what it measured: do not edit. -->

Measured on {processor}. Instructions: {units}.
"""
MORE = "[All measurements]({appendix}.md) are an appendix: other libraries, small calls, how it was measured."
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
    facts = machine.in_words({**some["machine"], "code": _code(results), "versions": _versions(results)})
    caption = machine.in_words(some["machine"]).split("\n")[0]
    import plots  # needs matplotlib; the tables do not

    images = "images/" if name == "performance" else f"images/{name}-"
    plots.rates(for_you.scene_rates(results), docs / f"{images}rates.svg", caption)
    if name == "performance" and (building := for_you.house_rates(results)):  # the README's chart
        plots.house(building, docs / "images/house.svg", caption)
    if by_count := batch_sizes.curve(results):
        plots.batch_sizes(by_count, docs / f"{images}batch_sizes.svg", caption)
    processor, units = _processor(results), _units(results)
    title = f"{title}: {units}"
    appendix = f"{name}_appendix"
    opening = [
        HEAD.format(title=title, processor=processor, units=units),
        for_you.section(results),
        MORE.format(appendix=appendix),
    ]
    measured = [
        HEAD.format(title=f"{title}, all measurements", processor=processor, units=units),
        INTRO.format(title=title, name=name),
        _real(results),
        small_batches.section(results),
        batch_sizes.section(results),
        array_input.section(results),
        _peers(results),
        derived_fields.section(results),
        grid_sums.section(results),
        *own_tables.sections(results),
        _method(results, facts),
        _given(results),
        _agreement(results),
        AGAIN,
    ]
    docs.mkdir(parents=True, exist_ok=True)
    for stem, sections in ((name, opening), (appendix, measured)):
        text = "\n\n".join(s.strip() for s in sections if s) + "\n"
        (docs / f"{stem}.md").write_text(text.replace("(images/", f"({images}"), encoding="utf-8")


def _processor(results: Results) -> str:
    """Return the processors of all parts, with the most cores that one uses, and the kernels."""
    facts = [result["machine"] for result in results.values()]
    cores: Counter[str] = Counter()
    for one in facts:
        cores[one["cpu"]] = max(cores[one["cpu"]], one["usable_cores"])
    processors = "; ".join(f"{number} cores of {cpu}" for cpu, number in cores.items())
    return f"{processors}; {', '.join(dict.fromkeys(one['code'] for one in facts))}"


def _units(results: Results) -> str:
    """Return the vector instructions of all parts' kernels, and of the processor where it has more."""
    return "; ".join(dict.fromkeys(_units_of(result["machine"]) for result in results.values()))


def _units_of(facts: dict[str, Any]) -> str:
    library = re.search(r"raybox-(\w+)\.", facts["code"])  # Numba compiles for the processor
    kernels, processor = (
        UNITS.get(level, level) for level in (library[1] if library else facts["level"], facts["level"])
    )
    return kernels if kernels == processor else f"{kernels} kernels on a processor with {processor}"


UNITS = {"v2": "SSE 4.2", "v3": "AVX2", "v4": "AVX-512", "generic": "NEON"}
"""Of levels of kernels, and of processors."""


def _method(results: Results, facts: str) -> str:
    rows = [row for _, row in aims.all_rows(results, *SCENES, "versus-*")]
    wide = [max(row.high / row.ratio, row.ratio / row.low) - 1 for row in rows if row.ratio != 1.0]
    dates = sorted(result["machine"]["date"] for result in results.values())
    first, versions = facts.split("\n")
    words = f"{dates[0]} to {dates[-1]}; {first.split('; ', 1)[1]}.\n{versions}."
    spread = median(wide or [0.0])
    return METHOD.format(warning=machine.WARNING, least=parts.LEAST, spread=spread, machine=words)


def _real(results: Results) -> str:
    """Return the table of real scenes; a scene's second rays follow its other ones."""
    names = {start + part: name for part, name in SCENES.items() for start in ("", for_you.SECOND)}
    rows = [row._replace(boxes=names[part]) for part, row in aims.all_rows(results, *names)]
    return "\n\n".join(["## Real scenes", REAL, _pivot(rows, (2,)), LEGEND]) if rows else ""


REAL = """\
One thread. skull: the triangles of a mesh, and the boxes around them; city: the triangles of a part of Delft,
and a box for each object; house: the triangles of an apartment, and a box for each element; shop: cubes that
share faces; street: labelled cuboids and a lidar's beams. Scenes were moved to the origin first, to suit
float32. **Rays**, 589,824 of each kind: oblique: a picture 40 degrees wide, 768 x 768, whose camera is at the
centre + (0.3, -1.6, 0.9) times the longest side, z up; camera: a picture along the shortest side; incoherent:
origins uniform in a box twice as wide as the scene's, directions uniform on the sphere; inside: the same with
origins in the scene's box. **Second rays** start where those of the oblique picture hit, of the triangles of
the house where those of a picture in a room do, off the surface by 10⁻⁵ of the scene's longest side: sun: all
in one direction; lamp: to one point, with t up to 1, in the room or above the scene; bounce: random,
cosine-weighted about the normal on the viewer's side. The picture has pixels for 589,824 second rays, but
at most four times that number. How many times raybox's time for a ray:"""

SCENES = for_you.SCENES | {"real-skull": "skull, boxes of its triangles"}


def _peers(results: Results) -> str:
    """Return a table of ratios for each number of threads, and one of the peers that are much slower."""
    rows = sorted((row for _, row in aims.all_rows(results, "versus-*")), key=lambda row: row.size)
    made = []
    for threads in sorted({row.threads for row in rows}):
        some = [row for row in rows if row.threads == threads]
        made += [f"### {'One thread' if threads == 1 else f'{threads} threads'}", TIMES, _pivot(some, (1, 2))]
    slow = [row for _, row in aims.all_rows(results, "slow-peers")]
    made += ["### Slower ones", TIMES, _pivot(slow, (1, 2))] if slow else []
    return "\n\n".join(["## Uniform boxes", DATA, *made, LEGEND]) if made else ""


TIMES = "Times raybox's time for a ray, so above 1 raybox is faster:"


def _pivot(rows: list[Row], dropped: tuple[int, ...]) -> str:
    head, lines = report.pivot(rows)
    head[:2] = ["size", "scene"]
    columns = [k for k in range(len(head)) if k not in dropped]
    return report.markdown([head[k] for k in columns], [[line[k] for k in columns] for line in lines])


def _versions(results: Results) -> dict[str, str]:
    """Return the versions of all packages that any part had."""
    return {name: v for result in results.values() for name, v in result["machine"]["versions"].items()}


def _code(results: Results) -> str:
    """Return where the kernels came from; parts that had others are named."""
    parts_of: dict[str, list[str]] = {}
    for name, result in results.items():
        parts_of.setdefault(result["machine"]["code"], []).append(name)
    most, *others = sorted(parts_of, key=lambda code: -len(parts_of[code]))
    return "; ".join([most, *(f"{code} in {', '.join(parts_of[code])}" for code in others)])


def _given(results: Results) -> str:
    """Return the forms of boxes that peers got, and which peers were not measured."""
    versions = _versions(results)
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
python benchmarks/performance.py
```

Parts that are done already are not done again; `--list` names them. `raybox bench` is the short form, of
about a minute: this machine and, with `benchmarks` on `PYTHONPATH`, the peers that are installed."""
