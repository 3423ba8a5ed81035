"""Pairs of boxes as a file, with the ids and labels of both; some pairs are in memory at a time."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from raybox.casting.blocks import Position
from raybox.casting.cast_folder import system_errors
from raybox.casting.columns import (
    Dtypes,
    LabelColumn,
    ObjectColumns,
    OutputSpec,
    chosen_labels,
    id_column,
    label_names,
    object_columns,
    spec_of,
    with_labels,
)
from raybox.casting.finishing import FILE_WRITERS, PartSource, StreamOutput
from raybox.casting.job import CastJob
from raybox.casting.part import BlockFacts, CastPart, PartFile, PartFolders, part_folders
from raybox.casting.scenes import dimension_of, objects_of
from raybox.casting.writers import WRITERS
from raybox.hits.file_columns import Columns
from raybox.io.formats.common import ReadOptions, resolved
from raybox.scene.scene import Scene
from raybox.store.folder import TEMPORARY, make_folder
from raybox.validation import Ints

SUFFIXES = (".parquet", ".csv", ".npz", ".npy")
DEFAULT_LABELS = ("name", "ifc_class")
"""Written without being named, where a scene has them."""
_QUERY = "overlapping"  # its columns name boxes as those of pairs do
_OUT = TEMPORARY + "out"


class PairSide(NamedTuple):
    """One of the two scenes of pairs."""

    name: str
    """at the end of its columns"""
    starts: Ints
    """the number of the first box of each geometry"""
    objects: ObjectColumns
    named: dict[str, LabelColumn]
    """ids and labels"""

    def rows(self, numbers: Ints) -> Columns:
        """Return the ids and labels of boxes, by their numbers."""
        geometry = np.searchsorted(self.starts, numbers, side="right") - 1
        found = self.objects.with_rows({"index": numbers - self.starts[geometry], "geometry": geometry})
        if "id" in self.named:
            found = found | {"id": self.named["id"].values.take(found["id"])}
        return {f"{name}_{self.name}": found[name] for name in self.named}


class PairColumns(NamedTuple):
    """The columns of pairs: both numbers, both ids, and labels of both."""

    sides: tuple[PairSide, PairSide]
    spec: OutputSpec

    def rows(self, pairs: Ints) -> Columns:
        """Return pairs (n, 2) as columns."""
        found: Columns = {}
        for side, numbers in zip(self.sides, np.ascontiguousarray(pairs.T), strict=True):
            found |= {f"index_{side.name}": numbers, **side.rows(numbers)}
        return {name: found[name] for name in self.spec.dtypes}


def pair_columns(scenes: tuple[Scene, Scene], labels: Sequence[str] | None, suffix: str) -> PairColumns:
    """Return the columns of pairs of two scenes of boxes and grids, in the types of a format.

    labels: ``["all"]`` for all, None for `DEFAULT_LABELS`; raise `InvalidInput` for one that no scene has.
    """
    known = [label_names([own.objects for own in objects_of(scene)]) for scene in scenes]
    every = list(dict.fromkeys(name for names in known for name in names))
    chosen = [*filter(every.__contains__, DEFAULT_LABELS)] if labels is None else chosen_labels(every, labels)
    own = [[*filter(names.__contains__, chosen)] for names in known]
    first, second = (_side(*one, suffix) for one in zip("ab", scenes, own, strict=True))
    named = {f"{name}_{s.name}": column for s in (first, second) for name, column in s.named.items()}
    names = dict.fromkeys([*first.named, *second.named])
    order = [column for name in names for column in (f"{name}_a", f"{name}_b") if column in named]
    dtypes: Dtypes = dict.fromkeys(("index_a", "index_b"), np.dtype(np.int64))
    arrow_types = {name: kind for name in order if (kind := named[name].arrow_type) is not None}
    dtypes |= {name: named[name].dtype for name in order}
    return PairColumns((first, second), OutputSpec(dtypes, None, "", arrow_types, suffix))


def _side(name: str, scene: Scene, labels: Sequence[str], suffix: str) -> PairSide:
    objects = object_columns(scene, None, _QUERY)
    spec = spec_of(_QUERY, dimension_of(scene), objects, suffix)
    objects, _ = with_labels(objects, scene, labels, spec)
    named = {} if objects.ids is None else {"id": id_column(objects.ids, suffix)}
    starts = np.cumsum([0, *(own.size for own in objects_of(scene))])[:-1]
    return PairSide(name, starts, objects, named | objects.labels)


def write_pairs(blocks: Iterable[Ints], columns: PairColumns, out: Path | BinaryIO) -> int:
    """Write blocks of pairs (n, 2), and return how many there are; an open file gets CSV."""
    folder = resolved(out).parent if isinstance(out, Path) else None
    with (
        system_errors(out if isinstance(out, Path) else Path("out")),
        tempfile.TemporaryDirectory(prefix=".raybox-", dir=folder) as path,
        make_folder(Path(path)) as opened,
        part_folders(opened) as folders,
    ):
        parts = _parts(blocks, columns, folders)
        if not isinstance(out, Path):
            return _to_stream(parts, columns, folders, out)
        source = PartSource(folders, [*parts], columns.spec)
        with opened.create(_OUT) as file:
            FILE_WRITERS[columns.spec.suffix](source, file)
            file.sync()
        opened.move_to(_OUT, resolved(out))
        return source.rows


def _parts(blocks: Iterable[Ints], columns: PairColumns, folders: PartFolders) -> Iterator[CastPart]:
    """Write a part for each block that has pairs."""
    job = CastJob((), ReadOptions(), _QUERY, 1, suffix=columns.spec.suffix)
    form = job.rows_format
    for number, pairs in enumerate(block for block in blocks if len(block)):
        with PartFile(folders) as file:
            writer = WRITERS[form](columns.spec, file)
            writer.add(columns.rows(pairs))
            facts, counts = BlockFacts(number, 0, Position(), "", ""), (len(pairs), len(pairs))
            yield file.complete(job, form, [facts], counts=counts, body=writer.finish())


def _to_stream(parts: Iterable[CastPart], columns: PairColumns, folders: PartFolders, out: BinaryIO) -> int:
    stream, total = StreamOutput(columns.spec, out), 0
    for part in parts:
        stream.add(folders, part)
        total += part.rows
    stream.flush()
    return total
