"""From results to rows, and from rows to tables: for a terminal and for Markdown."""

from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

from raybox.bench.timing import ratio


class Row(NamedTuple):
    """One contestant's answer to one question about one kind of rays.

    ``ratio``: its time for a ray over the reference's, median of the rounds, with the least and the greatest.
    """

    boxes: str
    size: int
    threads: int
    rays: str
    question: str
    name: str
    asked: int
    mrays: float
    ratio: float
    low: float
    high: float
    agreement: dict[str, int] | None


def rows(result: dict[str, Any]) -> list[Row]:
    """Return a row for each contestant that answered, in the order in which they were asked."""
    spec, found = result["spec"], []
    reference: list[float] = []
    for told in result["times"]:
        if told.get("why_not"):
            continue
        paces = [seconds / told["asked"] for seconds in told["seconds"]]
        if told["name"] == spec["names"][0]:
            reference = paces
        if not reference:  # the reference itself failed: there is nothing to hold the others against
            continue
        about = (spec["boxes"], result["size"], spec["threads"], told["rays"], told["question"], told["name"])
        rate = 1e-6 / median(paces)
        found.append(Row(*about, told["asked"], rate, *ratio(reference, paces), told.get("agreement")))
    return found


def pivot(found: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Return head and lines of a table: a line for each question, the ratio of each peer in a column.

    ``*`` marks a peer that was given fewer rays, ``!`` one whose answers differ from raybox's in some.
    """
    reference = found[0].name if found else ""
    names = list(dict.fromkeys(row.name for row in found if row.name != reference))
    lines: dict[tuple[Any, ...], list[str]] = {}
    for row in found:
        about = (row.boxes, row.size, row.threads, row.rays, row.question)
        if row.name == reference:
            shown = [f"{row.size:,}", row.boxes, str(row.threads), row.rays, row.question]
            lines[about] = [*shown, short(row.mrays), *["-"] * len(names)]
        else:
            lines[about][names.index(row.name) - len(names)] = _ratio(row, found)
    head = ["boxes", "kind", "threads", "rays", "question", f"{reference} M rays/s"]
    return head + [f"{name} /" for name in names], list(lines.values())


def _ratio(row: Row, found: Sequence[Row]) -> str:
    given = max(other.asked for other in found if other[:5] == row[:5])
    differs = bool(row.agreement and row.agreement["differ"])
    return short(row.ratio) + "*" * (row.asked < given) + "!" * differs


def short(value: float) -> str:
    """Write a number for reading, with three digits."""
    if value >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def agreement(facts: dict[str, int] | None) -> str:
    """Say how answers agreed."""
    if facts is None:
        return ""
    if not facts["differ"] and not facts["near"]:
        wrong = facts["settled"] - facts["peer_right"]
        return f"WRONG: {wrong} of {facts['settled']}" if wrong else "agree"
    said = [f"{facts['near']:,} near ties"] if facts["near"] else []
    if facts["differ"]:
        settled = f"of {facts['settled']} settled {facts['raybox_right']} raybox's, {facts['peer_right']} its"
        said.append(f"{facts['differ']:,} differ: {settled}")
    return "; ".join(said)


def differing(found: Sequence[Row]) -> list[str]:
    """Say in which answers peers differ, and who was right; raybox's own proofs too."""
    lines = []
    for row in found:
        said = agreement(row.agreement)
        if said not in ("", "agree"):
            about = f"{row.size:,} {row.boxes} boxes, {row.rays} rays, {row.question}"
            lines.append(f"{row.name}, {about}: of {row.agreement['compared']:,} rays {said}")  # type: ignore[index]
    return lines


def absent(result: dict[str, Any]) -> list[str]:
    """Name who was not asked, or did not answer, and why."""
    lines = [f"{c['name']}: {c['why_not']}" for c in result["contestants"] if c["why_not"]]
    for told in result["times"]:
        if told.get("why_not"):
            lines.append(f"{told['name']}, {told['question']}, {told['rays']} rays: {told['why_not']}")
    return lines


def text(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Lay a table out for a terminal: numbers to the right."""
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    numeric = [_is_numeric(column) for column in zip(*lines, strict=True)] or [False] * len(head)
    made = []
    for line in [head, *lines]:
        padded = (
            c.rjust(w) if right else c.ljust(w) for c, w, right in zip(line, widths, numeric, strict=True)
        )
        made.append("  ".join(padded).rstrip())
    return "\n".join(made)


def markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Lay a table out in Markdown."""
    numeric = [_is_numeric(column) for column in zip(*lines, strict=True)] or [False] * len(head)
    rule = ["---:" if right else "---" for right in numeric]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *lines])


def _is_numeric(column: Sequence[str]) -> bool:
    return any(map(_number, column)) and all(_number(cell) for cell in column if cell not in ("", "-"))


def _number(cell: str) -> bool:
    """Tell whether a cell is a number, whatever marks it bears."""
    return cell.strip("*!+%").replace(",", "").replace(".", "", 1).lstrip("-").isdigit()
