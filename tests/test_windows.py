"""Tests of files, scenes in parts, the code cache and the viewer, again under a simulation of Windows."""

import gc
import json
import os
import sys

import numpy as np
import pytest

import raybox as rb
from raybox.cli import main
from raybox.compiler.cores import cores
from raybox.store.lock import locked
from streaming import RAYS, SCENE
from test_cast_files import test_no_rays_and_two_dimensions  # noqa: F401  # reads and writes all formats
from test_cast_resume import (  # noqa: F401
    test_an_output_that_was_removed_or_replaced_is_written_again,
    test_another_command_is_refused,
    test_stopped_at_the_very_end,
    test_the_same_call_resumes,
    test_two_at_once,
)
from test_cluster import test_many_threads_in_one_process  # noqa: F401
from test_saved_scenes import (  # noqa: F401
    test_a_name_that_exists_or_ends_otherwise,
    test_a_scene_comes_back,
    test_nothing_is_left_of_a_save_that_fails,
)
from test_store import (  # noqa: F401
    path,
    test_a_file_renamed_to_another_key_is_not_loaded,
    test_stored_code_is_loaded_under_its_key_alone,
    test_temporary_files_of_processes_that_ended_are_removed,
    test_the_most_recently_used_files_stay,
)
from test_view_server import (  # noqa: F401
    port_of,
    test_a_taken_port_gives_the_next_one,
    test_it_listens_on_this_machine_only,
    viewer,
)
from test_view_uploads import test_a_scene_opens_from_bytes  # noqa: F401
from windows import cp1252, windows  # noqa: F401

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.usefixtures("windows"),
]
BOXES = rb.Boxes(np.arange(24.0).reshape(-1, 3), np.arange(24.0).reshape(-1, 3) + 0.5)


def test_the_simulation_refuses_files_in_use(tmp_path):
    """Open and mapped files can neither be removed nor replaced, others can."""
    np.save(tmp_path / "a.npy", np.arange(9.0))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    for act in (os.unlink, os.remove, lambda file: os.replace(file, tmp_path / "b.npy")):
        with pytest.raises(PermissionError):
            act(tmp_path / "a.npy")
    with pytest.raises(PermissionError):
        (tmp_path / "a.npy").unlink()
    del mapped
    gc.collect()
    with (tmp_path / "b.npy").open("w"), pytest.raises(PermissionError):
        os.replace(tmp_path / "a.npy", tmp_path / "b.npy")
    os.replace(tmp_path / "a.npy", tmp_path / "b.npy")
    (tmp_path / "b.npy").unlink()
    with pytest.raises(ImportError):
        import fcntl  # noqa: F401


def test_an_output_that_another_process_writes(tmp_path):
    rb.save(tmp_path / "rays.npz", RAYS)
    with (
        locked(tmp_path / "out.npy", tmp_path / "out.npy.raybox"),
        pytest.raises(rb.RayboxError, match="another process"),
    ):
        rb.stream.cast(SCENE, tmp_path / "rays.npz", tmp_path / "out.npy")
    rb.stream.cast(SCENE, tmp_path / "rays.npz", tmp_path / "out.npy")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["out.npy", "rays.npz"]


def test_cores_without_affinity():
    assert 1 <= cores() <= os.cpu_count()


def test_two_viewers_have_two_ports():
    with rb.view(BOXES, port=0) as one, rb.view(BOXES, port=port_of(one)) as other:
        assert port_of(other) > port_of(one)


PICK = ["--origin", "0.25,1.25,-1", "--direction", "0,0,1"]


@pytest.mark.parametrize("arguments", [["info"], ["pick", *PICK], ["pick", "--json", *PICK]])
def test_names_that_the_console_lacks_are_escaped(tmp_path, arguments):
    name = "Wände łódź \N{GRINNING FACE}"
    rb.save(tmp_path / f"{name}.csv", BOXES, ids=[name] * len(BOXES))
    with cp1252() as shown, pytest.raises(SystemExit) as ended:
        main([*arguments, str(tmp_path / f"{name}.csv")])
    text = shown.getvalue().decode("cp1252")
    assert ended.value.code == 0
    assert "\\u0142" in text
    if "--json" in arguments:
        assert json.loads(text)["hits"][0]["id"] == name


def test_errors_about_names_that_the_console_lacks(tmp_path):
    with cp1252() as shown, pytest.raises(SystemExit) as ended:
        main(["info", str(tmp_path / "łódź.csv")])
    assert ended.value.code == 2
    assert b"\\u0142" in shown.getvalue()
