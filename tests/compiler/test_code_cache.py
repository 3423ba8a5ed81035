"""Compiled code on disk: damaged, foreign and stale files, several processes at once, folders of others."""

import importlib.util
import os
import pickle
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace

import pytest
from numba import types
from numba.core.registry import cpu_target

from raybox.compiler import code_files, code_origin
from raybox.compiler.code_files import cache_folder, load, prune, save
from raybox.traversal import packet_box, protocol
from raybox.traversal.certain_hits import CertainHits, record_hits

KEY, OTHER_KEY = b"k" * 32, b"o" * 32


@pytest.fixture
def path(tmp_path):
    """Where to store code, in a cache folder that does not exist yet."""
    prune.cache_clear()
    code_files._mark_used.cache_clear()
    return tmp_path / "raybox" / ("0" * 32) / "module.loop.nbc"


def _dumped(value="code"):
    return pickle.dumps(value)


def test_stored_code_is_loaded_under_its_key_alone(path):
    assert load(path, KEY) is None
    save(path, KEY, _dumped())
    assert load(path, KEY) == "code"
    assert load(path, OTHER_KEY) is None
    save(path, OTHER_KEY, _dumped("new"))
    assert (load(path, KEY), load(path, OTHER_KEY)) == (None, "new")
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_damaged_files_are_never_unpickled(path, monkeypatch):
    save(path, KEY, _dumped())
    whole, unpickled = path.read_bytes(), []
    monkeypatch.setattr(code_files.pickle, "loads", unpickled.append)
    damaged = [whole[:size] for size in range(len(whole))] + [whole + b"x", b"garbage" * 100]
    for place in range(len(whole)):
        for bit in (1, 128):
            damaged.append(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
    for content in damaged:
        path.write_bytes(content)
        assert load(path, KEY) is None
    assert len(damaged) > 300
    assert not unpickled


def test_a_file_renamed_to_another_key_is_not_loaded(path):
    other = path.with_name("module.other.nbc")
    save(other, OTHER_KEY, _dumped())
    other.rename(path)
    assert load(path, KEY) is None
    # The checksum belongs to the key too: a header copied from another file does not make a payload valid.
    save(other, OTHER_KEY, _dumped())
    path.write_bytes(other.read_bytes().replace(OTHER_KEY, KEY))
    assert load(path, KEY) is None


class Raising:
    """An object whose pickle raises an exception when it is loaded."""

    def __init__(self, error):
        self.error = error

    def __reduce__(self):
        return _raise, (self.error,)


def _raise(error):
    raise error("while unpickling")


@pytest.mark.parametrize("error", [KeyError, ImportError, AttributeError, SyntaxError, RecursionError])
def test_pickles_of_classes_that_are_gone_are_not_loaded(path, error):
    save(path, KEY, _dumped(Raising(error)))
    assert load(path, KEY) is None


def test_two_processes_that_store_code_at_once_leave_whole_files(path, monkeypatch):
    """The second process stores its code between the first one's writing and renaming."""
    replace, interruptions = os.replace, []

    def interrupted(new, old):
        monkeypatch.setattr(os, "replace", replace)
        interruptions.append(new)
        assert load(path, KEY) is None
        save(path, KEY, _dumped("second"))
        assert load(path, KEY) == "second"
        replace(new, old)

    monkeypatch.setattr(os, "replace", interrupted)
    save(path, KEY, _dumped("first"))
    assert len(interruptions) == 1
    assert load(path, KEY) == "first"
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_code_that_cannot_be_written_is_not_stored(path):
    path.parent.parent.write_text("no folder")
    save(path, KEY, _dumped())
    assert load(path, KEY) is None
    path.parent.parent.unlink()
    path.mkdir(parents=True)
    path.parent.parent.chmod(0o700)
    path.parent.chmod(0o700)
    save(path, KEY, _dumped())
    assert load(path, KEY) is None
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.skipif(os.name == "nt", reason="folders have no owner and mode")
@pytest.mark.parametrize("level", [0, 1])
def test_folders_that_others_can_write_are_not_used(path, level, monkeypatch):
    save(path, KEY, _dumped())
    folder = path.parents[level]
    assert folder.stat().st_mode & 0o777 == 0o700
    for mode in (0o720, 0o702):
        folder.chmod(mode)
        assert load(path, KEY) is None
        save(path.with_name("new.nbc"), KEY, _dumped())
        assert not path.with_name("new.nbc").exists()
    folder.chmod(0o755)
    assert load(path, KEY) == "code"
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert load(path, KEY) is None
    save(path.with_name("new.nbc"), KEY, _dumped())
    assert not path.with_name("new.nbc").exists()


def test_the_most_recently_used_versions_stay(path):
    root = path.parent.parent
    root.mkdir(mode=0o700)
    old = [root / f"{number:032x}" for number in range(1, 13)]
    for age, folder in enumerate(old):
        folder.mkdir(mode=0o700)
        (folder / "loop.nbc").write_bytes(b"")
        os.utime(folder, (1e9 - age, 1e9 - age))
    (root / "notes").mkdir()
    save(old[11] / "used.nbc", KEY, _dumped())  # the oldest is used again
    for folder in old[:7] + old[11:]:
        assert folder.exists()
    assert len(list(root.iterdir())) == 1 + code_files.VERSIONS
    os.utime(old[6], (1, 1))
    code_files._mark_used.cache_clear()
    os.utime(old[11], (0, 0))
    assert load(old[11] / "used.nbc", KEY) == "code"
    save(path, KEY, _dumped())
    assert [folder.exists() for folder in [path.parent, old[5], old[6], old[11]]] == [True, True, False, True]
    assert (root / "notes").exists()


def test_temporary_files_of_processes_that_ended_are_removed(path):
    path.parent.mkdir(parents=True)
    path.parent.chmod(0o700)
    path.parent.parent.chmod(0o700)
    left, current = (path.with_name(f"loop.nbc.{name}.tmp") for name in ("left", "current"))
    for file in (left, current):
        file.write_bytes(b"")
    os.utime(left, (1e9, 1e9))
    save(path, KEY, _dumped())
    assert sorted(path.parent.iterdir()) == sorted([current, path])


def test_the_cache_folder_follows_the_platform(monkeypatch, tmp_path):
    monkeypatch.setattr(code_files, "config", SimpleNamespace(CACHE_DIR=str(tmp_path)))
    assert cache_folder() == tmp_path / "raybox"
    monkeypatch.setattr(code_files.config, "CACHE_DIR", "")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    folders = {"win32": "local", "darwin": "Library/Caches", "linux": "xdg"}
    for platform, folder in folders.items():
        monkeypatch.setattr(sys, "platform", platform)
        assert cache_folder() == tmp_path / folder / "raybox"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == tmp_path / ".cache" / "raybox"

    def without_home():
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", without_home)
    assert cache_folder() is None


def test_an_edit_of_any_source_changes_the_stamp(tmp_path, monkeypatch):
    package = Path(code_origin.__file__).parent.parent
    files = {path.relative_to(package): path.read_bytes() for path in package.rglob("*.py")}
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / ".#box.py").symlink_to("locked by an editor")
    stamp = code_origin.source_stamp.__wrapped__
    before = stamp()
    monkeypatch.setattr(code_origin, "_PACKAGE", tmp_path)
    stamps = {stamp()}
    assert stamps == {before}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content + b"#")
        stamps.add(stamp())
        (tmp_path / name).write_bytes(content)
    assert len(stamps) == len(files) + 1
    monkeypatch.setattr(code_origin, "_PACKAGE", tmp_path / "no sources")
    assert stamp() == ""


def test_field_names_and_their_order_identify_code():
    outer = namedtuple("Outer", "shape, scale")

    def origin(fields):
        inner = namedtuple("Inner", fields)
        kind = types.NamedTuple((types.float64, types.float64), inner)
        kinds = (types.int64, types.Tuple((types.NamedTuple((kind, types.float64), outer), types.int64)))
        return code_origin.find_origin(code_files.reduce, kinds).text

    assert origin("t_min, t_max") == origin("t_min, t_max")
    assert len({origin(fields) for fields in ("t_min, t_max", "t_max, t_min", "t_min, far")}) == 3


def test_two_definitions_of_a_kernel_identify_code(monkeypatch):
    shape = namedtuple("Shape", "near")
    kind = types.NamedTuple((types.int64,), shape)

    def kernel():
        return 1

    first = kernel

    def kernel():
        return 2

    texts = set()
    for function in (first, kernel):
        function.__module__ = "raybox.compiler.shape"
        table = {shape: SimpleNamespace(py_func=function)}
        monkeypatch.setattr(
            code_origin,
            "DISPATCHERS",
            [(code_files.reduce, table.get), (code_files.reduce, {}.__getitem__)],
        )
        texts.add(code_origin.find_origin(code_files.reduce, (kind,)).text)
    assert len(texts) == 2


HOOKS = """
from raybox.traversal.certain_hits import CertainHits
def intersect_box(b, at):
    return at.stop, at.result
def store_rays(b, recorder, workspace, given, packet):
    pass
class Certain(CertainHits):
    pass
def make():
    class Local(CertainHits):
        pass
    return Local
"""


def test_hooks_of_traversals_identify_code(tmp_path, monkeypatch):
    """Vector code and classes of hits, also in a file that the recorder's file does not import."""
    recorder = namedtuple("Recorder", "hits")
    recorder.__module__ = "raybox.compiler.recorder"
    kind = types.NamedTuple((types.int64,), recorder)
    monkeypatch.setattr(code_origin, "_START", float("inf"))

    def origin(name, source, **hooks):
        path = tmp_path / f"{name}.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location(name, path)
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        chosen = {hook: eval(expression, vars(module)) for hook, expression in hooks.items()}
        box = chosen.get("box", packet_box.add_undecided)
        packet_hooks = protocol.PacketHooks(recorder, box, None, None, store_rays=chosen.get("rays"))
        lists = record_hits(chosen.get("hits", CertainHits))
        stream_hooks = protocol.StreamHooks(recorder, None, None, intersect_lists=lists)
        monkeypatch.setitem(protocol.PACKET, recorder, packet_hooks)
        monkeypatch.setitem(protocol.STREAM, recorder, stream_hooks)
        found = code_origin.find_origin(code_files.reduce, (kind,))
        code_origin._read.cache_clear()
        del sys.modules[name]
        return found

    try:
        boxes = origin("hooks", HOOKS, box="intersect_box")
        assert str(tmp_path / "hooks.py") in boxes.text
        assert origin("hooks", HOOKS, box="intersect_box") == boxes
        assert origin("hooks", HOOKS + "\n", box="intersect_box").contents != boxes.contents
        assert origin("others", HOOKS, box="intersect_box").text != boxes.text
        assert origin("hooks", HOOKS, box="intersect_box", rays="store_rays").text != boxes.text
        rays = origin("hooks", HOOKS, rays="store_rays")
        assert origin("hooks", HOOKS + "\n", rays="store_rays").contents != rays.contents
        hits = origin("hooks", HOOKS, hits="Certain")
        assert origin("hooks", HOOKS + "\n", hits="Certain").contents != hits.contents
        assert origin("hooks", HOOKS, hits="make()") is None
    finally:
        code_origin._read.cache_clear()


ENGINE = """
from raybox.compiler.decorators import dispatch, entry
TABLE = {}
def crosses(shape, i):
    raise NotImplementedError
dispatch(crosses, lambda kind: TABLE[kind].crosses)
@entry
def count(shape, n):
    total = 0
    for i in range(n):
        total += crosses(shape, i)
    return total
"""
DISK = """
from typing import NamedTuple
from raybox.compiler.decorators import device
from hits import HIT
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
import engine, disk
engine.TABLE[disk.Disk] = disk
print(engine.count(disk.Disk(near=1, far=2), 10), sum(engine.count.dispatcher.stats.cache_hits.values()))
"""


@pytest.fixture
def engine(tmp_path):
    """A loop, and a primitive that a script registers for it, in modules of a user's own."""
    for name, text in {"engine": ENGINE, "disk": DISK, "hits": "HIT = 1\n"}.items():
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def _count(folder, script=COUNT, *arguments):
    (folder / "script.py").write_text(script)
    return _run([str(folder / "script.py"), *arguments], folder / "cache")


def test_a_primitive_edited_from_hit_to_miss_is_compiled_anew(engine):
    assert [_count(engine) for _ in range(2)] == ["10 0\n", "10 1\n"]
    (engine / "disk.py").write_text(DISK.replace("return HIT\n", "return 0\n"))
    assert [_count(engine) for _ in range(2)] == ["0 0\n", "0 1\n"]
    assert len(list(engine.rglob("engine.*.nbc"))) == 1


def test_a_module_that_a_primitive_imports_is_part_of_it(engine):
    assert _count(engine) == "10 0\n"
    (engine / "hits.py").write_text("HIT = 2\n")
    assert _count(engine) == "20 0\n"


def test_another_kernel_in_the_table_is_compiled_anew(engine):
    """Also one in a file that neither the struct's file nor the loop's imports."""
    other = "from disk import *\n@device\ndef crosses(disk, i):\n    return 3\n"
    (engine / "other.py").write_text(other)
    both = COUNT.replace("disk\n", "disk, other\n", 1)
    script = both.replace("] = disk", "] = other")
    assert [_count(engine, text) for text in (both, script)] == ["10 0\n", "30 0\n"]
    (engine / "other.py").write_text(other.replace("3", "4"))
    assert [_count(engine, script) for _ in range(2)] == ["40 0\n", "40 1\n"]


def test_a_module_edited_after_its_import_is_not_stored(engine):
    edit = "import pathlib; pathlib.Path(disk.__file__).write_text(pathlib.Path('edited').read_text())\n"
    (engine / "edited").write_text(DISK.replace("return HIT\n", "return 0\n"))
    edit = edit.replace("'edited'", repr(str(engine / "edited")))
    script = COUNT.replace("print", edit + "print")
    assert _count(engine, script) == "10 0\n"
    assert _count(engine) == "0 0\n"


def test_kernels_without_a_file_are_not_stored(engine):
    closure = COUNT.replace("= disk\n", "= type('', (), {'crosses': disk.make(int(sys.argv[1]))})\n")
    assert [_count(engine, "import sys" + closure, str(n)) for n in (1, 2)] == ["10 0\n", "20 0\n"]
    prompt = f"import sys; sys.path.insert(0, {str(engine)!r})\n{ENGINE}\n{DISK}"
    prompt += "\nTABLE[Disk] = type('', (), {'crosses': crosses})\nprint(count(Disk(1, 2), 10))"
    assert _run(["-c", prompt], engine / "cache") == "10\n"
    assert not [path for path in engine.rglob("*.nbc") if "raybox.compiler.probe" not in path.name]


DAMAGE = """
import pathlib, pickle, sys
from raybox.compiler import code_files
from raybox.compiler.decorators import entry
shape = disk.Disk(near=1, far=2)
(path,) = pathlib.Path(sys.argv[1]).rglob("engine.*.nbc")
def count():
    loop = entry(engine.count.__wrapped__)
    return loop(shape, 10), sum(loop.dispatcher.stats.cache_hits.values())
def pickled(value):
    start = len(code_files._FORMAT)
    payload = pickle.dumps(value)
    return code_files._header(whole[start:start + 32], payload) + payload
whole = path.read_bytes()
assert count() == (10, 1)
places = range(0, len(whole), len(whole) // 12)
damaged = [whole[:k] + bytes([whole[k] ^ 255]) + whole[k + 1 :] for k in places]
damaged += [b"", whole[:100], whole[:-1], b"garbage", pickled(5), pickled((None,) * 6)]
for content in damaged:
    path.write_bytes(content)
    assert count() == (10, 0), content[:99]
    assert count() == (10, 1), content[:99]
print(len(damaged))
"""


def test_damaged_and_foreign_code_is_compiled_anew_and_replaced(engine):
    *_, damaged = _count(engine, COUNT + DAMAGE, str(engine)).split()
    assert int(damaged) > 15


def test_processes_that_compile_at_once_all_return_the_right_count(engine):
    (engine / "script.py").write_text(COUNT)
    command = [sys.executable, str(engine / "script.py")]
    where = os.environ | {"NUMBA_CACHE_DIR": str(engine / "cache")}
    running = [subprocess.Popen(command, env=where, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert {process.communicate()[0].split()[0] for process in running} == {"10"}
    assert len([path for path in (engine / "cache").rglob("engine.*") if path.is_file()]) == 1
    assert _count(engine) == "10 1\n"


LOAD = """
import sys
import numpy as np
from numba.core.runtime import rtsys
import raybox as rb
from raybox.traversal import ray_groups
scene = rb.Scene(rb.Boxes([[0, 0, 0], [2, 2, 2]], [[1, 1, 1], [3, 3, 3]]))
print(scene.nearest(rb.Rays(np.full((40, 3), -1.0), np.ones((40, 3)))).t.sum())
loads = sum(ray_groups.traverse_groups.dispatcher.stats.cache_hits.values())
print(loads, "numba.np.arrayobj" in sys.modules, rtsys._init)
print(rb.intersect(rb.Rays([[1e-300, 0, 0]] * 2000, [1, 0, 0]), rb.Boxes([1, 0, 0], [2, 1, 1])).index.sum())
"""


def test_loading_code_does_not_import_the_compiler(tmp_path):
    """Except the integers of any length: they allocate arrays, for which Numba has to be initialized."""
    printed = [_run(["-c", LOAD], tmp_path) for _ in range(2)]
    assert printed == ["40.0\n0 True True\n0\n", "40.0\n1 False False\n0\n"]


def test_code_that_calls_a_missing_function_is_not_loaded():
    """LLVM would end the process."""
    assert code_files._define(("PyTuple_Size", "NRT_Allocate"), cpu_target.target_context)
    assert not code_files._define(("PyTuple_Size", "no_such_name"), cpu_target.target_context)
    lost = code_files.MachineCode("lost", b"", (), ("no_such_name",))
    assert code_files.rebuild(cpu_target.target_context, (lost, None, None, None, (), ())) is None


def _run(arguments, cache):
    where = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run(
        [sys.executable, *arguments], env=where, check=True, capture_output=True, text=True
    ).stdout
