"""The writers of `.npy` and `.csv`, and what all writers have to know."""

import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox.files.text import plain_numbers
from raybox.stream.answers import Columns, Sparse, laid_out
from raybox.stream.part_files import Part, Parts

_AT_ONCE = 1 << 16  # rows that are laid out at once, where that takes memory
Kinds = dict[str, np.dtype[Any]]


class Task(NamedTuple):
    """What a writer has to know: where, which columns, the ids of the boxes, when to give up."""

    folder: Path
    kinds: Kinds
    ids: list[str] | None
    check: Callable[[], None] = lambda: None


def slices(columns: Columns, task: Task, names: NDArray[Any] | None) -> Iterator[dict[str, NDArray[Any]]]:
    """Give columns some rows at a time, with the column ``id`` where it belongs."""
    whole = {
        name: laid_out(column) if isinstance(column, Sparse) else column for name, column in columns.items()
    }
    for start in range(0, len(columns["ray"]), _AT_ONCE):
        task.check()
        some = {name: laid_out(column[start : start + _AT_ONCE]) for name, column in whole.items()}
        if names is not None and "id" in task.kinds:
            some["id"] = names[some["index"]]
        yield {name: some[name] for name in task.kinds}


def names_of(task: Task) -> NDArray[Any] | None:
    """Give the boxes' ids as an array whose last is of a miss; None if they have none."""
    return None if task.ids is None else np.array([*task.ids, ""], dtype=str)


class Npy:
    """One table with named columns."""

    def __init__(self, task: Task, lengths: dict[str, int]) -> None:
        self._task, self._names = task, names_of(task)
        self._whole = task.folder / "answers.npy"
        self.parts = Parts(answers=Part(self._whole, lengths.get("answers", 0)))
        self.close = self.parts.close
        self._kind = np.dtype(list(task.kinds.items()))
        self.head = len(self._header(0))
        if not self.parts["answers"].length:
            self.parts["answers"].write(self._header(0))

    def add(self, columns: Columns) -> None:
        """Append rows."""
        for some in slices(columns, self._task, self._names):
            table = np.empty(len(some["ray"]), self._kind)
            for name, column in some.items():
                table[name] = column
            self.parts["answers"].write(table)

    def finish(self, rows: int) -> None:
        """Say how many rows there are, where NumPy leaves room for that."""
        header = self._header(rows)
        assert len(header) == self.head
        with self._whole.open("r+b") as file:
            file.write(header)

    def _header(self, rows: int) -> bytes:
        out = io.BytesIO()
        described = np.lib.format.dtype_to_descr(self._kind)
        np.lib.format.write_array_header_1_0(
            out, {"descr": described, "fortran_order": False, "shape": (rows,)}
        )
        return out.getvalue()


class Csv:
    """Text, as `raybox.save` writes it."""

    def __init__(self, task: Task, lengths: dict[str, int]) -> None:
        self._task, self._names = task, names_of(task)
        self.parts = Parts(answers=Part(task.folder / "answers.csv", lengths.get("answers", 0)))
        self.close = self.parts.close
        self.head = len(_line(task))
        if not self.parts["answers"].length:
            self.parts["answers"].write(_line(task))

    def add(self, columns: Columns) -> None:
        """Append rows."""
        for some in slices(columns, self._task, self._names):
            self.parts["answers"].write(_lines(some))

    def finish(self, rows: int) -> None:
        """Need nothing more."""


class CsvTo:
    """Text, to somebody who reads it right away: nothing can be taken back."""

    def __init__(self, task: Task, file: BinaryIO) -> None:
        self._task, self._names, self._file = task, names_of(task), file
        self._begun = False
        self.parts = Parts()
        self.close = self.parts.close

    def add(self, columns: Columns) -> None:
        """Write rows."""
        self._begin()
        for some in slices(columns, self._task, self._names):
            self._file.write(_lines(some))

    def finish(self, rows: int) -> None:
        """Let all of it go."""
        self._begin()
        self._file.flush()

    def _begin(self) -> None:
        if not self._begun:
            self._file.write(_line(self._task))
        self._begun = True


def _line(task: Task) -> bytes:
    return (",".join(task.kinds) + "\n").encode()


def _lines(columns: dict[str, NDArray[Any]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(plain_numbers(columns))
    return text.getvalue().encode()
