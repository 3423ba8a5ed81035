"""The lines of `kernels.txt`: which kinds of arguments raybox's own entry points are compiled for.

A line is ``module.function(kinds)``, as `raybox.compiler.kinds` writes kinds. A name in capitals stands for
each of its kinds in turn: ``NAME = KINDS | KINDS``. A line that is indented continues the one before.
"""

import re
import sys
from collections.abc import Callable, Collection, Mapping
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from raybox.compiler.kinds import read_only_arrays, without_marks
from raybox.compiler.library import FOLDER

HOOKS = ("raybox.scene.scene", "raybox.scene.pairwise", "raybox.scene.sweep", "raybox.queries.every")
"""Modules that import all hooks of queries, which compiled code calls."""
_NAMED = re.compile(r"([\w.<>]+)\(")
_NAME = re.compile(r"\b[A-Z]{2,}\b")  # of several kinds; those of classes have small letters


class ListedEntry(NamedTuple):
    """An entry point for some kinds of arguments, as it is compiled."""

    function: Callable[..., Any]
    kinds: str
    classes: dict[str, type]
    """the named tuples among its arguments, by their names in `kinds`"""


@cache
def _listed() -> dict[str, str]:
    """Return the lines, by themselves without marks of read-only arrays; none where there is no list."""
    try:
        text = (FOLDER / "kernels.txt").read_text(encoding="utf-8")
    except OSError:
        return {}
    return {without_marks(line): line for line in expanded(text)}


def expanded(text: str) -> list[str]:
    """Return the lines of a list, sorted, with each of the kinds that its names stand for.

    A name that stands for nothing stays as it is, which is no kind.
    """
    names, lines = dict[str, list[str]](), list[str]()
    for line in re.sub(r"\n +", "", text).splitlines():
        name, is_name, kinds = line.partition(" = ")
        if is_name:
            names[name] = [one for kind in re.split(r" ?\| ", kinds) for one in _each(kind, names)]
        elif line and not line.startswith("#"):
            lines += _each(line, names)
    return sorted(lines)


def _each(text: str, names: Mapping[str, list[str]]) -> list[str]:
    """Return a text with each of the kinds of the names in it."""
    found = _NAME.search(text)
    if found is None:
        return [text]
    kinds, rest = names.get(found[0], [found[0]]), _each(text[found.end() :], names)
    return [f"{text[: found.start()]}{kind}{end}" for kind in kinds for end in rest]


def marked(name: str, kinds: str) -> str:
    """Return kinds of an entry with the marks of its line, so that one object file serves all callers.

    Other kinds are returned as they are, and so are those that mark more arrays than the line does.
    """
    line = _listed().get(without_marks(f"{name}({kinds})"), "")
    listed = line[len(name) + 1 : -1]
    is_less = line and not read_only_arrays(kinds) & ~read_only_arrays(listed)
    return listed if is_less else kinds


def is_listed(line: str) -> bool:
    """Return whether there is such a line, apart from marks."""
    return without_marks(line) in _listed()


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of an entry point in lines."""
    return f"{function.__module__}.{function.__qualname__}"


def closest(name: str, classes: Collection[str]) -> list[str]:
    """Return the lines of an entry that have most of some named tuples, and of these the fewest others."""
    given = set(classes)
    ranks = dict[str, tuple[int, int]]()
    for line in _listed().values():
        if line.startswith(f"{name}("):
            named = class_names(line[len(name) + 1 :])
            ranks[line] = len(named & given), -len(named - given)
    return [line for line, rank in ranks.items() if rank == max(ranks.values())]


def entry_of(line: str) -> ListedEntry:
    """Return the entry point of a line.

    Raise `ImportError`, `AttributeError` or `KeyError` where there is no such module, function or class.
    """
    name, _, kinds = line.partition("(")
    module, _, function = name.rpartition(".")
    found = getattr(import_module(module), function).__wrapped__
    known, kinds = named_tuples(), kinds.removesuffix(")")
    return ListedEntry(found, kinds, {name: known[name] for name in class_names(kinds)})


def class_names(kinds: str) -> set[str]:
    """Return the names of the named tuples among arguments."""
    return set(_NAMED.findall(kinds))


def named_tuples() -> dict[str, type]:
    """Return the named tuples of raybox, by name; names of classes are unique there."""
    modules = [module for name, module in sys.modules.items() if name.startswith("raybox.")]
    items = [item for module in modules for item in vars(module).values()]
    return {item.__qualname__: item for item in items if isinstance(item, type) and hasattr(item, "_fields")}
