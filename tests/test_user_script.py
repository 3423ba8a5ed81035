"""The script whose types mypy checks also runs."""

import inspect
import json
import pkgutil
import pydoc
import re
import sys
from pathlib import Path

import raybox as rb
import user_script
from needs import package
from processes import python

API = Path(__file__).parents[1] / "docs" / "api"
DIRECTIVE = re.compile(r"^\.\. (currentmodule|automodule|auto\w+):: ([\w.]+)", re.MULTILINE)

WRONG = """
import raybox as rb

boxes = rb.Boxes([0, 0], [1, 1])
rb.Scene(boxes, quality="fastest")
rb.Rays([0, 0], [1, 0], invalid="skip")
rb.Scene(boxes).deposit(rb.Rays([0, 0], [1, 0]), per="ray")
"""


def test_the_script_runs(tmp_path):
    boxes, rays = user_script.make()
    rb.save(tmp_path / "boxes.csv", boxes)
    rb.save(tmp_path / "rays.csv", rays)
    assert user_script.pick(tmp_path) == [0, 1]
    assert user_script.sweep_lengths(rb.Scene(boxes), rays) == {0: 3.0, 2: 2.0}
    assert user_script.of_files(tmp_path / "boxes.csv") == (2, 2)
    assert user_script.camera().shape == (3, 3)
    assert user_script.named(boxes, rays) == ["near", None, "far"]
    assert user_script.surfaces() == (2.0, 0)
    assert user_script.objects() == (["stone"], 2.0, 1)
    assert user_script.cast_a_file(rb.Scene(boxes), tmp_path / "rays.csv", tmp_path / "counts.csv") == 3


def test_the_script_sums_along_rays():
    package("scipy")
    boxes, rays = user_script.make()
    want = {"count": 3, "first": 2, "length": 5, "hits": 3, "lengths": 13, "occluded": 1}
    assert user_script.along_rays(rb.Scene(boxes), rays) == want


def test_pyright_finds_nothing_in_the_script_and_wrong_words_in_another(tmp_path):
    package("pyright")
    (tmp_path / "right.py").write_bytes(Path(user_script.__file__).read_bytes())
    (tmp_path / "wrong.py").write_text(WRONG)
    config = {"extraPaths": [str(Path(rb.__file__).parents[1])], "include": ["right.py", "wrong.py"]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    done = python("-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", tmp_path)
    found = json.loads(done.stdout[done.stdout.index("{") :])
    assert found["summary"]["filesAnalyzed"] == 2
    errors = [(Path(e["file"]).name, e["range"]["start"]["line"]) for e in found["generalDiagnostics"]]
    assert errors == [("wrong.py", line) for line in (4, 5, 6)]


def documented():
    """Return all objects that the pages of the API document, by name."""
    found = {}
    for page in sorted(API.glob("*.rst")):
        module = "raybox"
        for kind, name in DIRECTIVE.findall(page.read_text(encoding="utf-8")):
            if kind.endswith("module"):
                module = name
            else:
                path = name if name.startswith("raybox.") else f"{module}.{name}"
                home, _, last = path.rpartition(".")
                found[path] = getattr(pkgutil.resolve_name(home), last)
    return found


def functions_of(name, member):
    """Return a function, or the public methods and properties of a class and what makes it, by name."""
    if not inspect.isclass(member):
        return {name: member}
    names = [own for own in dir(member) if not own.startswith("_")]
    found = {f"{name}.{own}": inspect.getattr_static(member, own) for own in names}
    if not issubclass(member, tuple | Exception):
        found[name] = member.__init__
    for kind in ("fget", "func", "__func__"):  # of properties, cached ones, class methods
        found = {own: getattr(value, kind, value) for own, value in found.items()}
    return {own: value for own, value in found.items() if inspect.isfunction(value)}


def test_help_names_types_and_not_what_they_stand_for():
    count = 0
    for name, member in documented().items():
        for own, function in functions_of(name, member).items():
            signature = inspect.signature(function)
            notes = [one.annotation for one in signature.parameters.values()] + [signature.return_annotation]
            assert "Union[" not in str(signature), own
            assert max(len(inspect.formatannotation(note)) for note in notes) <= 60, own
            count += "ArrayInput" in str(signature)
    assert count > 30
    wanted = "pinhole(eye: 'ArrayInput', target: 'ArrayInput', *, up: 'ArrayInput', fov: 'float'"
    assert wanted in pydoc.render_doc(rb.Rays.pinhole, renderer=pydoc.plaintext)
