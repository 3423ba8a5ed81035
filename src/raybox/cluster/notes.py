"""What is noted of parts: what each tells of itself, and, in a log, which are joined.

The log has a line for each part that is joined: what it told, and how long the output's files are with it.
"""

import json
from pathlib import Path
from typing import NamedTuple


class Told(NamedTuple):
    """What a part tells of itself."""

    rays: int
    rows: int
    met: int
    length: int
    """Of the answers, in bytes."""
    of: str
    """The sum of the rays."""


class Note(NamedTuple):
    """A part that is joined, and the lengths of the output's files then."""

    told: Told
    files: dict[str, int]


def line_of(number: int, note: Note) -> bytes:
    """Give the line of a part."""
    return json.dumps([number, note.told, note.files]).encode() + b"\n"


def noted(log: Path, whole: Path) -> list[Note]:
    """Read which parts are joined: from the first on, as far as lines are whole.

    There are none if the output's files are gone: who was stopped had just put them in their place.
    """
    notes = list[Note]()
    for line in log.read_bytes().splitlines() if log.exists() else ():
        try:
            number, told, files = json.loads(line)
            note = Note(Told(*told), dict(files))
        except (ValueError, TypeError):
            break
        if number != len(notes):
            break
        notes.append(note)
    there = sum(path.stat().st_size for path in whole.rglob("*")) if whole.exists() else 0
    return notes if notes and there >= sum(notes[-1].files.values()) else []
