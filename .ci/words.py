"""Check names, imports and sizes of modules, classes, functions and packages.

Names have no banned words, no two classes have one name, modules and signatures are short, imports do not run
in circles, and no package has more lines than its budget.

Run from the root of the repository: `python .ci/words.py`. Prints each finding as `path:line: message`, and
exits with status 1 if there is any.
"""

import ast
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

FOLDERS = ("src", "tests", "benchmarks", "examples")
LINES = 500  # of a module in src: one subject is one file
BUDGETS = "lines.txt"  # in the folder of this script: the most lines of each package of src
POSITIONAL = 6  # parameters of a function in src (ruff has PLR0917 in preview only)

# Metaphors that stood for the field's words, and words that make persons of functions.
BANNED = frozenset(
    [
        "crew",
        "desk",
        "shelf",
        "keeper",
        "calm",
        "careful",
        "doubt",
        "doubts",
        "few",
        "seen",
        "sure",
        "sift",
        "strike",
        "deal",
        "held",
        "holding",
        "lens",
        "lent",
        "begun",
        "chords",
        "sinks",
        "sink",
        "hands",
        "asked",
        "ask",
        "told",
        "tell",
        "give_up",
        "bring",
        "judge",
        "settle",
        "propose",
        "kept",
    ]
)

# Identifiers that stay, each with its reason, and the folders or files where it may stand.
ALLOWED = {
    "tell": ("the method of Python's files", FOLDERS),
}
# Of the allowed ones, those that are names of attributes alone, and the files that define such a method.
METHODS = {"tell": ("src/raybox/casting/part.py", "src/raybox/store/disk.py")}


def segments(name: str) -> set[str]:
    """Return the words of an identifier, and each two that follow each other, in lower case."""
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name)]
    return {*words, *map("_".join, pairwise(words))}


def is_allowed(name: str, path: str, before: str) -> bool:
    """Return whether an identifier may stand in a file, after this token, whatever its words."""
    _, places = ALLOWED.get(name, ("", ()))
    is_place = any(path == place or path.startswith(f"{place}/") for place in places)
    is_method = before == "." or (before == "def" and path in METHODS.get(name, ()))
    return is_place and (name not in METHODS or is_method)


def banned_words(root: Path, path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the message for each line's identifiers with banned words."""
    for word in sorted(segments(path.stem) & BANNED):
        yield 1, f"module name {path.stem!r} has the banned word {word!r}"
    found, before = set(), ""
    with tokenize.open(root / path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type == tokenize.NAME and not is_allowed(token.string, path.as_posix(), before):
                words = sorted(segments(token.string) & BANNED)
                found |= {(token.start[0], token.string, word) for word in words}
            before = token.string
    for line, name, word in sorted(found):
        yield line, f"{name!r} has the banned word {word!r}"


def long_signatures(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the message for each function with too many positional parameters."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
            count = len(names) - (names[:1] in (["self"], ["cls"]))
            if count > POSITIONAL:
                yield node.lineno, f"{node.name} has {count} positional parameters, {POSITIONAL} at most"


def nodes_that_run(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a tree, but those under `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        yield node
        yield from nodes_that_run(node)


def imports(path: Path, modules: Collection[str]) -> set[str]:
    """Return which of these modules a file imports, within functions too."""
    found = set()
    for node in nodes_that_run(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in modules else node.module for name in names.values()}
    return found & set(modules)


def circles(source: Path) -> Iterator[list[str]]:
    """Yield circles of modules, in which each imports the next; each has an import that no circle before has.

    A package imports what its `__init__.py` does. A module in it does not import it by being there.
    """
    paths = {
        ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted(source.rglob("*.py"))
    }
    graph = {module: imports(path, paths) for module, path in paths.items()}
    while True:
        try:
            TopologicalSorter({module: sorted(names) for module, names in graph.items()}).prepare()
            return
        except CycleError as error:
            circle = error.args[1][::-1]
            yield circle
            graph[circle[0]].remove(circle[1])


def over_budget(source: Path, budgets: Path) -> Iterator[str]:
    """Yield a message for each package of src that has more lines than it may, or has no budget."""
    most = {name: int(lines) for name, lines in map(str.split, budgets.read_text().splitlines())}
    found = Counter[str]()
    for path in source.rglob("*.py"):
        package = path.relative_to(source).parts[1:-1]
        found[package[0] if package else "raybox"] += path.read_text(encoding="utf-8").count("\n")
    for name, lines in sorted(found.items()):
        if lines > most.get(name, 0):
            yield (
                f"src: {name} has {lines:,} lines, {most.get(name, 0):,} at most by .ci/{budgets.name}: "
                "take others away, or raise it and say in the commit what the lines are for"
            )


def findings(root: Path) -> Iterator[str]:
    """Yield everything that is wrong."""
    classes = defaultdict[str, list[str]](list)
    for path in sorted(file for folder in FOLDERS for file in (root / folder).rglob("*.py")):
        place = path.relative_to(root)
        found = list(banned_words(root, place))
        if place.parts[0] == "src":
            text = path.read_text(encoding="utf-8")
            tree = ast.parse(text)
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    classes[node.name].append(f"{place}:{node.lineno}")
            found += long_signatures(tree)
            lines = text.count("\n")
            if lines > LINES:
                found.append((lines, f"{lines} lines, {LINES} at most"))
        yield from (f"{place}:{line}: {message}" for line, message in found)
    for name, places in sorted(classes.items()):
        if len(places) > 1:
            yield f"{places[0]}: class {name} is also in {', '.join(places[1:])}"
    for circle in circles(root / "src"):
        yield f"src: imports run in a circle: {' -> '.join(circle)}"
    if (budgets := root / ".ci" / BUDGETS).exists():
        yield from over_budget(root / "src", budgets)


def main() -> int:
    """Print what is wrong; return the exit status."""
    found = list(findings(Path()))
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(found)} findings" if found else "words: nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
