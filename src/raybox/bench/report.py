"""Rows of results, and tables of rows for a terminal and for Markdown."""

from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

from raybox.bench.timing import ratio


class Row(NamedTuple):
    """One contestant's result for one query and one kind of rays.

    ``ratio``: its time for a ray over the reference's, median of the rounds; ``low`` and ``high`` are the
    least and the greatest.
    """

    boxes: str
    size: int
    threads: int
    rays: str
    query: str
    name: str
    ray_count: int
    mrays: float
    ratio: float
    low: float
    high: float
    agreement: dict[str, int] | None


def rows(result: dict[str, Any]) -> list[Row]:
    """Return a row for each contestant that succeeded, in the order of measurement."""
    spec, found = result["spec"], []
    reference: list[float] = []
    for record in result["times"]:
        if record.get("why_not"):
            continue
        paces = [seconds / record["ray_count"] for seconds in record["seconds"]]
        if record["name"] == spec["names"][0]:
            reference = paces
        if not reference:  # the reference failed: there is nothing to compare with
            continue
        about = (spec["boxes"], result["size"], spec["threads"], record["rays"], record["query"])
        middle, low, high = ratio(reference, paces)
        found.append(
            Row(
                *about,
                name=record["name"],
                ray_count=record["ray_count"],
                mrays=1e-6 / median(paces),
                ratio=middle,
                low=low,
                high=high,
                agreement=record.get("agreement"),
            )
        )
    return found


def pivot(found: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Return head and lines of a table: a line for each query, a ratio for each peer.

    ``*`` marks a peer with fewer rays, ``!`` one whose results partly differ from raybox's.
    """
    reference = found[0].name if found else ""
    names = list(dict.fromkeys(row.name for row in found if row.name != reference))
    lines: dict[tuple[object, ...], list[str]] = {}
    for row in found:
        about = (row.boxes, row.size, row.threads, row.rays, row.query)
        if row.name == reference:
            shown = [f"{row.size:,}", row.boxes, str(row.threads), row.rays, row.query]
            lines[about] = [*shown, short(row.mrays), *["-"] * len(names)]
        else:
            lines[about][names.index(row.name) - len(names)] = _ratio(row, found)
    head = ["boxes", "kind", "threads", "rays", "query", f"{reference} M rays/s"]
    return head + [f"{name} /" for name in names], list(lines.values())


def _ratio(row: Row, found: Sequence[Row]) -> str:
    most = max(other.ray_count for other in found if other[:5] == row[:5])
    differs = bool(row.agreement and row.agreement["differ"])
    return short(row.ratio) + "*" * (row.ray_count < most) + "!" * differs


def short(value: float) -> str:
    """Return a number with three digits."""
    if value >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def agreement(facts: dict[str, int] | None) -> str:
    """Return the agreement of results as text; empty if it was not checked."""
    if facts is None:
        return ""
    if not facts["differ"] and not facts["near"]:
        wrong = facts["settled"] - facts["peer_right"]
        return f"WRONG: {wrong} of {facts['settled']}" if wrong else "agree"
    parts = [f"{facts['near']:,} near ties"] if facts["near"] else []
    if facts["differ"]:
        settled = f"of {facts['settled']} settled {facts['raybox_right']} raybox's, {facts['peer_right']} its"
        parts.append(f"{facts['differ']:,} differ: {settled}")
    return "; ".join(parts)


def differing(found: Sequence[Row]) -> list[str]:
    """Return a line for each row whose results differ or are wrong."""
    lines = []
    for row in found:
        words = agreement(row.agreement)
        if words not in ("", "agree"):
            about = f"{row.size:,} {row.boxes} boxes, {row.rays} rays, {row.query}"
            lines.append(f"{row.name}, {about}: of {row.agreement['compared']:,} rays {words}")  # type: ignore[index]
    return lines


def absent(result: dict[str, Any]) -> list[str]:
    """Return a line for each contestant that was not measured or failed, with the reason."""
    lines = [f"{c['name']}: {c['why_not']}" for c in result["contestants"] if c["why_not"]]
    for record in result["times"]:
        if record.get("why_not"):
            lines.append(f"{record['name']}, {record['query']}, {record['rays']} rays: {record['why_not']}")
    return lines


def text(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table for a terminal, numbers aligned to the right."""
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
    """Return a table in Markdown."""
    numeric = [_is_numeric(column) for column in zip(*lines, strict=True)] or [False] * len(head)
    rule = ["---:" if right else "---" for right in numeric]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *lines])


def _is_numeric(column: Sequence[str]) -> bool:
    return any(map(_number, column)) and all(_number(cell) for cell in column if cell not in ("", "-"))


def _number(cell: str) -> bool:
    """Return whether a cell is a number, ignoring marks."""
    return cell.strip("*!+%").replace(",", "").replace(".", "", 1).lstrip("-").isdigit()
