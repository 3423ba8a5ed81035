"""What is compiled again after an edit, and what is loaded: by what an entry point is made of."""

import sys
import threading

import numpy as np
import pytest

from processes import output_of

pytestmark = pytest.mark.jit

ENGINE = """
from raybox.compiler.decorators import device, dispatch
from raybox.compiler.entry_points import entry
import constants
TABLE = {}
def crosses(shape, i):
    raise NotImplementedError
dispatch(crosses, lambda kind: TABLE[kind].crosses)
@device
def _step(i):
    return 1
@entry
def count(shape, n):
    total = 0
    for i in range(0, n, _step(0)):
        total += crosses(shape, i) * constants.WEIGHT
    return total
@entry
def double(n):
    return 2 * n
"""
DISK = """
from typing import NamedTuple
from raybox.compiler.decorators import device
from raybox.compiler.struct_ref import struct
from hits import HIT
@struct
class Disk(NamedTuple):
    near: int
    far: int
@device
def crosses(disk, i):
    return HIT
def make(answer):
    @device
    def crosses(disk, i):
        return answer
    return crosses
"""
COUNT = """
from raybox.compiler.jit import compile
made, compile_entry = [], compile.compile_entry
def counted(function, kinds, symbol):
    made.append(function.__name__)
    return compile_entry(function, kinds, symbol)
compile.compile_entry = counted
import engine, disk
engine.TABLE[disk.Disk] = disk
print(engine.count(disk.Disk(near=1, far=2), 10), engine.double(4), *made)
"""
SINGLE = np.float32(2)
BOTH, NONE, ONE = "10 8 count double\n", "10 8\n", "10 8 count\n"


@pytest.fixture
def engine(tmp_path):
    """A loop, and a primitive that a script registers for it, in modules of a user's own."""
    texts = {"engine": ENGINE, "disk": DISK, "hits": "HIT = 1\n", "constants": "WEIGHT = 1\n"}
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def count(folder, script=COUNT, *arguments):
    (folder / "script.py").write_text(script)
    return run([folder / "script.py", *arguments], folder / "cache")


def run(arguments, cache):
    return output_of(*arguments, RAYBOX_CACHE_DIR=str(cache), PYTHONDONTWRITEBYTECODE="1")


def test_what_is_edited_is_all_that_is_compiled_again(engine):
    assert [count(engine) for _ in range(2)] == [BOTH, NONE]
    (engine / "disk.py").write_text(DISK.replace("return HIT\n", "return 0\n"))
    assert [count(engine) for _ in range(2)] == ["0 8 count\n", "0 8\n"]
    (engine / "engine.py").write_text(ENGINE.replace("return 2 * n", "return n + n"))
    assert count(engine) == "0 8 double\n"
    (engine / "disk.py").write_text(DISK)
    assert count(engine) == NONE  # as stored at first


def test_constants_and_functions_that_are_called_are_part_of_an_entry_point(engine):
    edits = [
        ("hits", "HIT = 2\n", "20"),
        ("constants", "WEIGHT = 3\n", "60"),
        ("engine", ENGINE.replace("return 1", "return 5"), "12"),
    ]
    assert count(engine) == BOTH
    for name, text, answer in edits:
        (engine / f"{name}.py").write_text(text)
        assert count(engine) == f"{answer} 8 count\n", name


def test_comments_docstrings_and_lines_are_not_part_of_it(engine):
    assert count(engine) == BOTH
    (engine / "disk.py").write_text("\n\n# A comment.\n" + DISK)
    documented = ENGINE.replace("def count(shape, n):", 'def count(shape, n):\n    """Count."""')
    (engine / "engine.py").write_text(documented + "\ndef other():\n    return 3\n")
    (engine / "constants.py").write_text("WEIGHT, OTHER = 1, 2\n")
    assert count(engine) == NONE


def test_names_and_order_of_fields_are_part_of_it(engine):
    assert count(engine) == BOTH
    fields = "near: int\n    far: int\n"
    for swapped in ("far: int\n    near: int\n", "near: int\n    end: int\n"):
        (engine / "disk.py").write_text(DISK.replace(fields, swapped))
        script = COUNT.replace("far=2", "end=2") if "end" in swapped else COUNT
        assert count(engine, script) == ONE


def test_another_kernel_in_the_table_is_compiled(engine):
    """Also one in a file that neither the struct's file nor the loop's imports."""
    other = "from disk import *\n@device\ndef crosses(disk, i):\n    return 3\n"
    (engine / "other.py").write_text(other)
    both = COUNT.replace("disk\n", "disk, other\n", 1)
    script = both.replace("] = disk", "] = other")
    assert [count(engine, text) for text in (both, script)] == [BOTH, "30 8 count\n"]
    (engine / "other.py").write_text(other.replace("3", "4"))
    assert [count(engine, script) for _ in range(2)] == ["40 8 count\n", "40 8\n"]


def test_a_module_edited_after_its_import_does_not_matter(engine):
    """Code is identified by what was imported, not by the files as they are now."""
    edit = f"open({str(engine / 'disk.py')!r}, 'w').write(open({str(engine / 'edited')!r}).read())\n"
    (engine / "edited").write_text(DISK.replace("return HIT\n", "return 0\n"))
    assert count(engine, COUNT.replace("print", edit + "print")) == BOTH
    assert count(engine) == "0 8 count\n"


def test_closures_and_kernels_without_a_file_are_identified_too(engine):
    closure = COUNT.replace("= disk\n", "= type('', (), {'crosses': disk.make(int(sys.argv[1]))})\n")
    answers = [count(engine, "import sys" + closure, str(n)) for n in (1, 2, 1)]
    assert answers == ["10 8 count double\n", "20 8 count\n", "10 8\n"]
    prompt = f"import sys; sys.path.insert(0, {str(engine)!r})\n{ENGINE}\n{DISK}"
    prompt += "\nTABLE[Disk] = type('', (), {'crosses': crosses})\nprint(count(Disk(1, 2), 10))"
    assert [run(["-c", prompt], engine / "prompt") for _ in range(2)] == ["10\n", "10\n"]
    assert len(list((engine / "prompt").rglob("*.o"))) == 1


def test_what_has_no_identity_is_an_error_of_its_own():
    """Such code is compiled by each process: an address would identify nothing."""
    from raybox.compiler.jit.fingerprint import Unidentified, fingerprint

    def known(x, y=(1.5, {"a": [SINGLE, None]})):
        return x + y[0]

    def unknown(x, lock=threading.Lock()):  # noqa: B008
        return x if lock else 0

    assert fingerprint(known, []) == fingerprint(known, [])
    with pytest.raises(Unidentified, match="lock"):
        fingerprint(unknown, [])


def test_code_that_a_table_of_modules_supplies_is_identified(monkeypatch):
    """Vector code takes `TABLE[rows.__class__].plane_order` while it is compiled, without a dispatcher."""
    from raybox.compiler.jit.fingerprint import fingerprint
    from raybox.geometry import BoxRows, TriangleRows
    from raybox.primitives import box, table, triangle

    def prints(function):
        return [fingerprint(function, [rows]) for rows in (BoxRows, TriangleRows)]

    of_boxes, of_triangles = prints(table.plane_order)
    monkeypatch.setattr(box, "plane_order", box.entry_planes)
    assert prints(table.plane_order)[0] != of_boxes
    assert prints(table.plane_order)[1] == of_triangles
    have_planes = prints(table.has_planes)  # names its attribute by a text
    monkeypatch.setattr(triangle, "entry_planes", box.entry_planes, raising=False)
    changed = prints(table.has_planes)
    assert (changed[0], changed[1] != have_planes[1]) == (have_planes[0], True)


def test_damaged_code_is_compiled_again_and_replaced(engine):
    assert count(engine) == BOTH
    (path,) = (engine / "cache").rglob("engine.count.*.o")
    whole = path.read_bytes()
    middle = len(whole) // 2
    for content in (b"", whole[:-1], whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :]):
        path.write_bytes(content)
        assert [count(engine) for _ in range(2)] == [ONE, NONE]


def test_code_that_calls_a_missing_function_is_not_loaded():
    """It is an error of Python, before LLVM links anything."""
    from raybox.compiler.jit import objects

    objects._addresses(("PyTuple_Size", "NRT_Allocate"))
    with pytest.raises(RuntimeError, match=r"does not define no_such_name$"):
        objects._addresses(("PyTuple_Size", "no_such_name"))


FAR = """
import mmap
from unittest import mock
import numpy as np
import raybox as rb
from raybox.compiler import entry_points
find, taken = entry_points.find_code, []
def find_far(function, args):
    taken.append(mmap.mmap(-1, 3 << 30, prot=0, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    return find(function, args)
with mock.patch.object(entry_points, "find_code", find_far):
    scene = rb.Scene(rb.Boxes([[1, 0, 0], [3, 0, 0]], [[2, 1, 1], [4, 1, 1]]))
    rays = rb.Rays(np.full((40, 3), 0.5), [1, 0, 0])
    print(scene.nearest(rays).t_enter[0], scene.count(rays)[0], scene.all(rays).lengths[0], len(taken) > 5)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="mmap has no address space without memory there")
def test_code_is_loaded_where_gigabytes_lie_between_free_places():
    """The sections of an object must stay within the reach of its instructions."""
    assert output_of("-c", FAR).split() == ["0.5", "2", "1.0", "True"]
