"""The linter of names finds what it is for, and nothing else."""

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.core

SCRIPT = Path(__file__).parents[1] / ".ci" / "words.py"
SPEC = importlib.util.spec_from_file_location("words", SCRIPT)
words = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(words)

WRONG = """
class Thing:
    def go(self, a, b, c, d, e, f, g): ...
def rayDesk(few_rays, _SINKS): ...
file.tell, tell, give_up, cast.ask
'desk'  # desk
"""
RIGHT = """
class Other:
    def go(self, a, b, c, d, e, f, *, g): ...
def fewer_desktops(a, b, c, d, e, f, *, g): ...
file.tell, giveaway, ascii
"""


def written(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def found(root: Path, files: dict[str, str]) -> list[str]:
    return list(words.findings(written(root, files)))


def test_banned_words_and_long_signatures(tmp_path):
    messages = found(tmp_path, {"src/raybox/shelf_of.py": WRONG})
    assert [message.split(": ", 1) for message in messages] == [
        ["src/raybox/shelf_of.py:1", "module name 'shelf_of' has the banned word 'shelf'"],
        ["src/raybox/shelf_of.py:4", "'_SINKS' has the banned word 'sinks'"],
        ["src/raybox/shelf_of.py:4", "'few_rays' has the banned word 'few'"],
        ["src/raybox/shelf_of.py:4", "'rayDesk' has the banned word 'desk'"],
        ["src/raybox/shelf_of.py:5", "'ask' has the banned word 'ask'"],
        ["src/raybox/shelf_of.py:5", "'give_up' has the banned word 'give_up'"],
        ["src/raybox/shelf_of.py:5", "'tell' has the banned word 'tell'"],
        ["src/raybox/shelf_of.py:3", "go has 7 positional parameters, 6 at most"],
    ]


def test_names_that_only_look_like_it(tmp_path):
    writer = "class File:\n    def tell(self): ..."
    files = {"right.py": RIGHT, "casting/part.py": writer}
    assert not found(tmp_path, {f"src/raybox/{name}": text for name, text in files.items()})


def test_methods_are_defined_only_where_they_are_allowed(tmp_path):
    messages = found(tmp_path, {"src/raybox/other.py": "def tell(file): ..."})
    assert messages == ["src/raybox/other.py:1: 'tell' has the banned word 'tell'"]


def test_classes_of_one_name_and_long_modules(tmp_path):
    same = "class Same: ..."
    long = {"src/c.py": "x = 1\n" * 501, "tests/d.py": same + "\n" * 501}
    messages = found(tmp_path, {"src/a.py": same, "src/b.py": same, **long})
    assert messages == [
        "src/c.py:501: 501 lines, 500 at most",
        "src/a.py:1: class Same is also in src/b.py:1",
    ]


IN_CIRCLES = {
    "top/__init__.py": "from top import a",  # no circle: a names modules of the package
    "top/a.py": "import numpy\n\ndef late():\n    from top.b import x\n    from top import c",
    "top/b.py": "from top import a\nfrom top.c import y",
    "top/c.py": "import top.d\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from top.a import z",
    "top/d.py": "from top.e import x",
    "top/e.py": "def late():\n    if late:\n        from top import c",
}


def test_circles_of_imports(tmp_path):
    """Those in functions count, those for type checkers do not."""
    circles = sorted(map(sorted, (circle[1:] for circle in words.circles(written(tmp_path, IN_CIRCLES)))))
    assert circles == [["top.a", "top.b"], ["top.c", "top.d", "top.e"]]


def test_modules_without_circles(tmp_path):
    broken = {"top/b.py": "x = 1", "top/d.py": ""}
    assert not list(words.circles(written(tmp_path, IN_CIRCLES | broken)))


def test_a_circle_is_printed(tmp_path):
    messages = found(tmp_path, {"src/one.py": "import two", "src/two.py": "import one"})
    assert messages == ["src: imports run in a circle: one -> two -> one"]


def test_packages_stay_within_their_budgets(tmp_path):
    files = {
        "top/x/a.py": "x = 1\n" * 6,
        "top/x/y/b.py": "x = 1\n" * 5,
        "top/c.py": "x = 1\n",
        "top/z/d.py": "z = 1\n",
    }
    messages = found(
        tmp_path,
        {f"src/{path}": text for path, text in files.items()} | {".ci/lines.txt": "x 10\nraybox 1\n"},
    )
    assert [message.partition(":")[2][:40] for message in messages] == [
        " x has 11 lines, 10 at most by .ci/lines",
        " z has 1 lines, 0 at most by .ci/lines.t",
    ]
