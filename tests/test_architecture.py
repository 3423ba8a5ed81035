"""The paths from a query to the node test, as `docs/architecture.md` lists them: each file calls the next."""

import re
import sys
from collections.abc import Hashable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import numpy as np
import pytest

import raybox as rb
from raybox.compiler.decorators import DISPATCHERS
from raybox.queries import batches, one_by_one
from raybox.queries.nearest.stream import Nearest

PACKAGE = Path(rb.__file__).parent
PAGE = PACKAGE.parent.parent / "docs/architecture.md"


def listed():
    """Return the files of each of the page's tables of paths, in order."""
    section = PAGE.read_text().partition("## From call to result")[2].partition("## ")[0]
    paths = []
    for line in section.splitlines():
        first = line.partition(" | ")[0]
        if line.startswith("| file"):
            paths.append([])
        elif line.startswith("| `"):
            paths[-1] += re.findall(r"`([\w/]+\.py)`", first)
    return paths


def file_of(code):
    path = Path(code.co_filename)
    return path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else None


def calls_of(call):
    """Return the pairs of files of which one calls the other, in Python; other libraries are passed over."""
    found = set()

    def profile(frame, event, _argument):
        caller = frame.f_back
        while caller and not file_of(caller.f_code):
            caller = caller.f_back
        if event == "call" and caller:
            found.add((file_of(caller.f_code), file_of(frame.f_code)))

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def names_of(code):
    """Yield the names that a function, and the functions in it, look up."""
    yield from (*code.co_names, *code.co_freevars)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_of(constant)


def compiled_calls(function, kind):
    """Return such pairs of the functions that one names, and these in turn; hooks: of a recorder's class."""
    chosen = {}
    for stub, choose in DISPATCHERS.items():
        with suppress(LookupError):  # a table of other classes
            chosen[stub] = choose(kind) or chosen.get(stub)
    found, visited, pending = set(), set(), [function]
    while pending:
        caller = pending.pop()
        for value in values_of(caller):
            callee = function_of(chosen.get(value) or value)
            if isinstance(callee, FunctionType):
                found.add((file_of(caller.__code__), file_of(callee.__code__)))
                if callee not in visited and file_of(callee.__code__):
                    visited.add(callee)
                    pending.append(callee)
    return found


def values_of(function):
    """Return what a function names, in modules too; of classes, their methods."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    scope = function.__globals__ | {name: cell.cell_contents for name, cell in cells.items()}
    names = set(names_of(function.__code__))
    spaces = [scope, *(vars(scope[name]) for name in names if isinstance(scope.get(name), ModuleType))]
    values = [space[name] for space in spaces for name in names if name in space]
    methods = [value for one in values if isinstance(one, type) for value in vars(one).values()]
    hashable = (value for value in [*values, *methods] if isinstance(value, Hashable))
    return [value for value in hashable if not isinstance(value, tuple)]


def function_of(value):
    """Return the Python function of a compiled one, of an entry point, or of vector code."""
    value = getattr(value, "py_func", getattr(value, "__wrapped__", value))
    value = getattr(value, "_defn", value)  # vector code
    for cell in getattr(value, "__closure__", None) or ():
        if getattr(cell.cell_contents, "__name__", None) == getattr(value, "__name__", ""):
            return cell.cell_contents
    return value


@pytest.mark.jit
@pytest.mark.parametrize(
    ("number", "count", "last"),
    [(0, 1, one_by_one.traverse_piece), (1, one_by_one.MOST_RAYS + 100, batches._traverse_sorted)],
    ids=["one ray", "many rays"],
)
def test_the_page_lists_the_calls_from_a_query_to_the_node_test(number, count, last):
    rng = np.random.default_rng(1)
    lower = rng.uniform(0, 10, (200, 3))
    scene = rb.Scene(rb.Boxes(lower, lower + 1))
    rays = rb.Rays(rng.uniform(0, 10, (count, 3)), rng.normal(size=(count, 3)))
    scene.nearest(rays, workers=1)  # compiles
    calls = calls_of(lambda: scene.nearest(rays, workers=1))
    calls |= compiled_calls(last, Nearest)
    path = listed()[number]
    assert path[0] == "queries/nearest/query.py"
    assert path[-1] == ("traversal/single_walk.py" if count == 1 else "traversal/node_test.py")
    assert [pair for pair in pairwise(path) if pair not in calls] == []
    assert len(path) <= 8
