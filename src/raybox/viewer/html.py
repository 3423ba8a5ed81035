"""Results of clicks as HTML, and points as text.

Ids and names come from files: everything is escaped, nothing is Markdown.
"""

import re
from collections.abc import Sequence
from html import escape

import numpy as np

from raybox.errors import InvalidInput
from raybox.geometry import Boxes, Grid, Instances, Mesh
from raybox.geometry.grid_cells import count_occupied
from raybox.validation import Floats
from raybox.viewer import appearance
from raybox.viewer.model import ClickResult, Contact, LineOfSight, LineStart, Picked
from raybox.viewer.stage import Stage


def frame(address: str) -> str:
    """Return a frame that shows the page at an address, and a link to it."""
    safe = escape(address, quote=True)
    return (
        f'<iframe src="{safe}" title="raybox" width="100%" height="560" style="border: 0"></iframe>'
        f'<p><a href="{safe}" target="_blank" rel="noopener">{safe}</a></p>'
    )


def point(name: str, text: str) -> list[float]:
    """Return three numbers read from text, separated by commas or spaces.

    >>> point("origin", "1, 2.5 -3e2")
    [1.0, 2.5, -300.0]
    """
    words = re.split(r"[,;\s]+", text.strip(" \t()[]"))
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = []
    if len(numbers) != 3:
        raise InvalidInput(f"{name} must be three numbers, such as 1, 2.5, -3; got {text[:40]!r}")
    return numbers


def written(values: Floats) -> str:
    """Return the text of a point, which reads back bit for bit.

    >>> written(np.array([0.1, 2.0, -3.0]))
    '0.1, 2.0, -3.0'
    """
    return ", ".join(map(repr, values.tolist()))


_CELL = 'style="padding:1px 8px 1px 0;vertical-align:top;overflow-wrap:anywhere"'
_NUMBER = 'style="padding:1px 8px 1px 0;vertical-align:top;white-space:nowrap;text-align:right"'
_NAME = 'style="padding:1px 10px 1px 0;vertical-align:top;white-space:nowrap;color:#666"'
_TABLE = 'style="border-collapse:collapse"'
_LIST = 'style="font-size:0.86em;border-collapse:collapse"'
_KINDS: dict[type, str] = {Boxes: "boxes", Grid: "cells", Mesh: "triangles", Instances: "copies"}
ROWS = 60  # of the table of contacts; the rest is counted


def summary(stage: Stage) -> str:
    """Return the scene's name, size, bounds and legend as HTML."""
    what = "oriented boxes" if stage.noun == "Box" and stage.objects is not None else ""
    what = what or _KINDS[type(stage.solid)]
    low, high = stage.scene.bounds.tolist() if len(stage.scene) else ([], [])
    rows = [("from", numbers(low)), ("to", numbers(high))] if low else []
    swatches = "".join(
        f'<span style="white-space:nowrap;margin-right:10px"><span style="display:inline-block;width:9px;'
        f'height:9px;margin-right:4px;background:rgb({r},{g},{b})"></span>{escape(name)}</span> '
        for name, (r, g, b) in appearance.legend(stage)
    )
    shown = "" if stage.where is None else f"{np.count_nonzero(stage.where):,} of "
    head = f"<b>{escape(stage.name)}</b>: {shown}{len(stage.scene):,} {what}"
    if stage.noun == "Object" and stage.objects is not None:
        numbers_shown = stage.objects if stage.shown is None else stage.objects[stage.shown]
        head += f" of {len(np.unique(numbers_shown)):,} objects"
    if isinstance(stage.solid, Grid) and (cells := stage.solid.rows()).blocks.size:
        rows.append(("occupied", f"{count_occupied(cells):,}"))
    return f"<div {_STYLE}>{head}{_pairs(rows)}<div>{swatches}</div></div>"


def message(text: str) -> str:
    """Return an error message as HTML."""
    return f'<div {_STYLE} class="raybox-message"><b style="color:#cc3311">{escape(text)}</b></div>'


def panel(result: ClickResult | None) -> str:
    """Return the result of a click as HTML; None: the instruction to click."""
    if result is None:
        return f"<div {_STYLE}>Click on the scene: a ray goes from the eye through that pixel.</div>"
    if isinstance(result, LineStart):
        text = "<b>Line of sight</b>: now click on its other end" + _pairs(_about(result.end))
        return f'<div {_STYLE} class="raybox-answer" data-index="{result.end.index}">{text}</div>'
    body = _picked(result) if isinstance(result, Picked) else _sight(result)
    ray = f'data-origin="{_exact(result.ray.origins)}" data-direction="{_exact(result.ray.directions)}"'
    index = result.nearest if isinstance(result, Picked) else -1
    return f'<div {_STYLE} class="raybox-answer" data-index="{index}" {ray}>{body}</div>'


def _picked(result: Picked) -> str:
    if not result.contacts:
        return "<b>Nothing</b> is met on this ray in this range of t."
    first = result.contacts[0]
    return (
        f"<b>{result.noun} {first.object}</b>{_pairs([*_about(first), ('face', result.face)])}{_list(result)}"
    )


def _sight(result: LineOfSight) -> str:
    one, other = result.ends
    distance = float(np.linalg.norm(result.ray.directions))
    if result.clear:
        verdict = '<b style="color:#0077bb">The line of sight is clear</b>'
    else:
        verdict = f'<b style="color:#cc3311">The line of sight is blocked</b> by {result.total:,}'
    rows = [("from", _name(one)), ("to", _name(other)), ("distance", f"{distance:.6g}")]
    return f"{verdict}{_pairs(rows)}{_list(result) if result.contacts else ''}"


def _name(contact: Contact) -> str:
    return f"{contact.object}" if contact.id is None else f"{contact.object} ({contact.id})"


def _about(contact: Contact) -> list[tuple[str, str]]:
    named = [] if contact.id is None else [("id", contact.id)]
    return [*named, *contact.labels, ("t", f"{contact.t:.9g}"), ("point", numbers(contact.point))]


def _list(result: Picked | LineOfSight) -> str:
    """Return a table of the first `ROWS` contacts, in order along the ray."""
    named = any(contact.id is not None for contact in result.contacts)
    columns = [("", _NUMBER), ("object", _NUMBER), *([("id", _CELL)] if named else []), ("t", _NUMBER)]
    several = any(contact.contacts > 1 for contact in result.contacts)
    columns += [(name, _NUMBER) for name in (("last t", "contacts") if several else ("inside",))]
    rows = "<tr>" + "".join(f"<th {style}>{name}</th>" for name, style in columns) + "</tr>"
    for k, contact in enumerate(result.contacts[:ROWS], 1):
        id_ = [contact.id or ""] if named else []
        last = f"{contact.t_last:.6g}", str(contact.contacts)
        cells = (str(k), str(contact.object), *id_, f"{contact.t:.6g}")
        cells += last if several else (f"{contact.length:.3g}",)
        pairs = zip(cells, columns, strict=True)
        rows += "<tr>" + "".join(f"<td {style}>{escape(cell)}</td>" for cell, (_, style) in pairs) + "</tr>"
    more = result.total - min(ROWS, len(result.contacts))
    rest = f"<div>and {more:,} more</div>" if more else ""
    title = f"<div style='margin-top:6px'>Along the ray, in order: {result.total:,}</div>"
    return f"{title}<table class='raybox-along' {_LIST}>{rows}</table>{rest}"


def _pairs(rows: Sequence[tuple[str, str]]) -> str:
    lines = (f"<td {_NAME}>{escape(name)}</td><td {_CELL}>{escape(value)}</td>" for name, value in rows)
    return f"<table {_TABLE}>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def numbers(values: Sequence[float]) -> str:
    """Return a point with nine significant digits."""
    return ", ".join(f"{value:.9g}" for value in values)


def _exact(values: Floats) -> str:
    """Return the text of a point for an attribute, which reads back bit for bit."""
    return ",".join(repr(value) for value in values.tolist())


_STYLE = 'style="font-size:0.82em;line-height:1.35;padding:2px 12px;font-variant-numeric:tabular-nums"'
