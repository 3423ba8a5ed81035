"""Move a complete output to its place, once, whatever interrupts it."""

from pathlib import Path
from typing import Any, NamedTuple

from raybox.casting.output import Totals
from raybox.casting.steps import step
from raybox.store.checksum import Facts
from raybox.store.folder import Folder, open_folder
from raybox.store.identity import content_facts
from raybox.store.record import RecordKind

PLACE_NAME = "placed"


class Placed(NamedTuple):
    """A complete output, just before it is moved."""

    job: str
    """Its id."""
    name: str
    """In the folder of the cast."""
    facts: Facts
    """Of its content, when it is moved."""
    totals: Totals


def _parsed(value: Any) -> Placed:
    job, name, facts, totals = value
    return Placed(str(job), str(name), dict(facts), Totals(*map(int, totals)))


PLACE = RecordKind("placed output", 1, _parsed)


def place_output(folder: Folder, placed: Placed, target: Path) -> None:
    """Move an output, which is on the disk, from the folder of its cast to its place."""
    output = folder.path / placed.name
    if output.is_dir():
        with open_folder(output) as published:
            published.publish()
    placed = placed._replace(facts=content_facts(output))
    folder.write_record(PLACE_NAME, PLACE, placed, durable=True)
    step("place stored")
    folder.move_to(placed.name, target)
    with open_folder(target.parent, own=False) as parent:
        parent.sync()
    step("output placed")


def moved(folder: Folder) -> Placed | None:
    """Return the output that an earlier call has moved out of the folder; None if there is none."""
    if folder.stat(PLACE_NAME) is None:
        return None
    placed = folder.read_record(PLACE_NAME, PLACE).value
    return placed if folder.stat(placed.name) is None else None


def is_there(placed: Placed, target: Path) -> bool:
    """Return whether an output that was moved is still in its place."""
    return target.exists() and content_facts(target) == placed.facts
