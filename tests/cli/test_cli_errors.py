"""Errors of commands: one line, in options of the command, that says what to do."""

import re

import numpy as np
import pytest
from click.testing import CliRunner

from raybox.cli import main

BOXES = "min_x,min_y,min_z,max_x,max_y,max_z\n2,-1,0,3,1,2\n"
RAYS = "origin_x,origin_y,origin_z,direction_x,direction_y,direction_z\n0,0,1,1,0,0\n"
TRIANGLE = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"
TEXTS = {
    "boxes.csv": BOXES,
    "rays.csv": RAYS,
    "flat.csv": "origin_x,origin_y,direction_x,direction_y\n0,0,1,0\n",
    "nan.csv": RAYS.replace("1,0,0\n", "nan,0,0\n"),
    "points.csv": "x,y,z\n1,2,3\n",
    "nan_boxes.csv": BOXES + "nan,0,0,1,1,1\n",
    "bare.txt": "1 2 3 4\n",
    "scan.bin": "0123456789",
    "empty_scene.csv": BOXES.splitlines()[0] + "\n",
    "mesh.obj": TRIANGLE,
    "no_zip.npz": "PK no archive",
    "keys.json": '{"type": "CityJSON"}',
    "city.json": '{"type": "CityJSON", "vertices": [[0, 0, 0], [1, 1, 1]], "CityObjects": {"a": '
    '{"type": "Building", "geometry": [{"type": "MultiSurface", "boundaries": [[[0, 1, 9]]]}]}}}',
    "text.npy": "hello",
    "town.json": '{"type": "CityJSON", "version": "2.0", "vertices": [[0, 0, 0], [1, 0, 0], [0, 1, 0]], '
    '"CityObjects": {"a": {"type": "Building", "attributes": {"name": "x"}, "geometry": '
    '[{"type": "MultiSurface", "lod": "1", "boundaries": [[[0, 1, 2]]]}]}}}',
}
LEAKS = re.compile(r"Traceback|Error:.*Error|[A-Z]\w+Error\b|\bb'|<U\d|invalid=|kind=|origin=|`|Errno|\w\.;")

RAY = "--origin 0,0.4,0.5 --direction 1,0,0"
CASES = {
    "info nan.csv": "nan.csv, line 2, column direction_x: nan is not a finite number; correct or remove",
    "info no_zip.npz": "no_zip.npz: its archive is damaged or cut off; copy or save it again",
    "info text.npy": "text.npy: does not begin like a NumPy table (npy), but with 'hello'; rename it",
    "info .": ".: is a folder, not a file; supported: .npz",
    "info --grid boxes.csv": "boxes.csv: unsupported file extension '.csv' of a grid; supported: .vox",
    "info wide.npy --kind scene": "for a scene, give a table whose width is one of 4, 6",
    "info uneven.npz": "Give one row of each for every box; correct the file",
    "info words.npy --kind scene": "words.npy: holds text, not real numbers; save it as float64",
    "cast boxes.csv flat.csv -o o.csv": "flat.csv: holds rays in 2D, while the scene is in 3D; add or drop",
    "cast boxes.csv rays.csv -o o": "o: cannot be written: has no file extension; supported: .npy",
    "cast boxes.csv rays.csv -o .": ".: cannot be written: is a folder, not a file; supported: .npy",
    "cast boxes.csv nan.csv -o o.csv": "correct or remove the row, or pass --invalid miss",
    "cast nan_boxes.csv rays.csv -o o.csv": "correct or remove the row, or pass --invalid skip",
    "info rays.csv --invalid skip": "holds rays, of which none are left out; pass --invalid miss",
    "info rays.csv --kind rays --invalid skip": "--invalid skip leaves out boxes, and rays keep their rows",
    "info bare.txt": "does not name the 4 columns of its rows; name them in the first line, or by --layout",
    "info scan.bin": "scan.bin: holds numbers without names (x,y,z,i of KITTI, x,y,z,i,ring of nuScenes)",
    "info scan.bin --layout x,y,z,i": "are no whole number of rows of 4 float32 (16 bytes); correct --layout",
    "info wide.npy --layout x,y": "wide.npy: has shape (3, 5), while --layout has 2 names; name each column",
    "info points.csv --layout x,y,z": "points.csv, header: names its columns; leave out --layout",
    "info points.csv --layout x,,z": "--layout must be names of columns, such as",
    "info mesh.obj --layout x,y,z": "--layout is for files of bare numbers (.bin .npy .csv",
    "info --grid wide.npy --layout x,y": "--layout is for objects, and --grid reads cells. Pass one of them.",
    "cast boxes.csv points.csv -o o.csv": "say where the rays start: pass --origin X,Y,Z",
    "cast boxes.csv points.csv -o o.csv --origin nan,0,0": "'nan,0,0' contains NaN; pass numbers",
    "cast boxes.csv points.csv -o o.csv --origin inf,0,0": "'inf,0,0' is not finite; pass numbers",
    "cast boxes.csv rays.csv -o o.csv --query segments": "--query segments needs --grid",
    "cast boxes.csv rays.csv -o o.csv --query deposit --carry x": "--carry is for rows of rays",
    "cast mesh.obj rays.csv -o o.csv --query deposit": "Pass --boxes, which reads each object of a mesh",
    "cast boxes.csv rays.csv -o o.csv --query integrate --values lost.npy": "lost.npy: cannot be read:",
    "cast boxes.csv rays.csv -o o.csv --query integrate --values text.npy": "text.npy: is no .npy file;",
    "cast boxes.csv rays.csv -o o.csv --query integrate --values words.npy": "words.npy: holds text, not",
    "cast boxes.csv rays.csv -o o.csv --query integrate --values cut.npy": "cut.npy: is cut off: 24 bytes",
    "cast boxes.csv rays.csv -o o.csv --query integrate --values nan.npy": "Replace them: np.nan_to_num(x).",
    "pick boxes.csv --origin 0,0 --direction 1,0": "is in 3D, the ray in 2D. Pass X,Y,Z for the ray.",
    "pick boxes.csv --origin 0,0,1 --direction 1,0": "--origin has 3 numbers, --direction has 2. Pass",
    "pick boxes.csv --from 0,0,1 --to 1,0": "--from has 3 numbers, --to has 2. Pass",
    "pick boxes.csv --from -1e308,0,1 --to 1e308,0,1": "--from and --to are too far apart for float64.",
    "pick boxes.csv --from 0,0,1 --to 1e309,0,1": "'1e309,0,1' is not finite",
    "pick boxes.csv --from 0,0,1 --to 1,0,1 --t-min 2": "--t-min must be at most --t-max; got 2 and 1.",
    "pick boxes.csv --from 0,0,1 --to 1,0,1 --t-min nan": "--t-min must be at most --t-max; got nan and 1.",
    "pick boxes.csv --from 0,0,1 --to 1,0,1 --margin 0.1 --t-max 2": "--margin goes with --from and --to",
    "pick boxes.csv --origin 0,0,1 --direction 1,0,1 --margin 1": "--margin goes with --from and --to",
    "pick boxes.csv --from 0,0,1 --to 1,0,1 --margin -1": "margin must be finite and not negative",
    "explain --origin 0,0 --direction 1,0 --lower 3,0 --upper 2,0": "got 3 and 2 on x. Swap them.",
    "explain --origin 0,0 --direction 1,0 --lower 3,0 --upper 4,0,0": "--lower has 2 numbers, --upper has 3.",
    "explain --origin 0,0 --direction 1,0 --lower 3,0,0 --upper 4,0,0": "2D and 3D. Add or drop a coordinate",
    "view boxes.csv --html lost/x.html": "lost/x.html: cannot be written: there is no folder lost; make it",
    "cast boxes.csv empty.zarr -o o.csv": "empty.zarr: holds no Zarr group; give the folder of a group",
    "info city.json": "city object 'a': its geometry is broken (vertex 9 does not exist: there are 2,",
    "info keys.json": "keys.json: is not laid out as CityJSON (it lacks 'vertices'); check it with",
    "view boxes.csv --html .": ".: cannot be written: it is a folder; pass the name of a file",
    "bench --boxes rays.csv": "rays.csv: holds rays, not a scene; give a file of a scene here",
    "bench --boxes empty_scene.csv": "--boxes empty_scene.csv: holds no boxes. Pass a file with some.",
    "pick boxes.csv": "Pass --origin and --direction, or --from and --to, as X,Y,Z. See raybox pick",
    "pick boxes.csv --origin 0,0,0": "Pass --origin and --direction, or --from and --to",
    "pick boxes.csv --from 0,0,0 --direction 1,0,0": "Pass --origin and --direction, or --from and --to",
    "pick boxes.csv --origin 0;0;0 --direction 1,0,0": "'0;0;0' is not a list of numbers separated by commas",
    "pick boxes.csv --origin 0,0,0,0 --direction 1,0,0": "'0,0,0,0' has 4 numbers; pass X,Y,Z (or X,Y in the",
    f"pick boxes.csv -q -v {RAY}": "Pass -q or -v, not both. See raybox pick --help.",
    f"pick boxes.csv --format csv {RAY}": "--format is for stdin (-)",
    f"pick lost_*.csv {RAY}": "No file matches lost_*.csv. Check the folder and the pattern.",
    f"pick mesh.obj boxes.csv {RAY}": "A scene of several files has boxes or triangles, not both.",
    "cast boxes.csv rays.csv -o out.txt": "out.txt: cannot be written: unsupported file extension '.txt'",
    "cast boxes.csv rays.csv -o no/out.csv": "there is no folder no; make the folder first",
    "cast boxes.csv rays.csv -o rays.csv": "is also an input",
    "cast boxes.csv rays.csv -o o.las": "cast writes no files of points; write a table",
    "cast boxes.csv boxes.csv -o o.csv": "boxes.csv: holds boxes, not rays; give a file of rays here",
    "cast rays.csv rays.csv -o o.csv": "rays.csv: holds rays, not a scene; give a file of a scene here",
    "cast boxes.csv rays.csv -o - --json": "-o - and --json both write to stdout.",
    "cast boxes.csv rays.csv -o o.csv --workers -3": "must be at least 1, or -1 for all cores; got -3.",
    "cast boxes.csv rays.csv -o o.csv --workers 0": "--workers must be a whole number of threads",
    "cast boxes.csv points.csv -o o.csv --origin 1,2": "pass an --origin of the same dimension",
    "cast boxes.csv points.csv -o o.csv --origin 1,2,3 --per hit": "--per is for query 'deposit'",
    "cast boxes.csv rays.csv -o o.npy --blocks 0:1 --finish": "--finish writes OUT of all blocks. Run it",
    **{
        f"cast boxes.csv rays.csv -o o.npy --blocks {blocks}": f"'{blocks}' is no range. Write FROM:TO"
        for blocks in ("3", "0-3", "3:3", "5:2", "a:x")
    },
    f"pick boxes.csv --lod 1 {RAY}": "--lod is for files of CityJSON (.json .jsonl); got it",
    f"pick town.json --all-objects {RAY}": "--all-objects is for files of IFC (.ifc); got it with town.json.",
    f"pick town.json --tessellation hybrid {RAY}": "--tessellation is for files of IFC (.ifc)",
    f"pick town.json --lod high {RAY}": "--lod must be a level of detail such as",
    f"pick town.json --lod 9 {RAY}": "has no city object with surfaces of level 9; pass --lod with one of",
    f"pick town.json --grid --lod 1 {RAY}": "--lod is for objects, and --grid reads cells.",
    f"pick boxes.csv --objects surfaces {RAY}": "--objects is for files of CityJSON (.json .jsonl)",
    f"pick town.json --objects walls {RAY}": "'walls' is not",
    f"pick town.json --grid --objects surfaces {RAY}": "--objects is for objects, and --grid reads cells",
    f"pick town.json --where colour=='red' {RAY}": "--where, column 1: there is no label 'colour'; there are",
    f"pick town.json --where \xa0 {RAY}": "--where: the expression is empty. Leave it out to hit all.",
    f"pick town.json --where name {RAY}": "'name' holds text, not a condition; compare it: name == ...",
    f"pick town.json --where id='a' {RAY}": "--where, column 3: not an expression of labels; equality is",
    "cast town.json rays.csv -o o.csv --labels colour": "no label 'colour'; labels of this scene: 'type'",
    "cast town.json rays.csv -o o.csv --labels name --query count": "'count' has no row for a hit.",
    "pick town.json --fro 1": "No such option '--fro'.",
    "cast town.json": "Missing argument 'RAYS...'. See raybox cast --help.",
    "throw": "No such command 'throw'. See raybox --help.",
    "--nothing": "No such option '--nothing'. See raybox --help.",
    "view": "Missing argument 'SCENE'. See raybox view --help.",
    "bench --boxes no-such": "--boxes no-such: neither a kind of boxes (uniform, clustered, mixed)",
    "bench --peer no-such": "--peer no-such: unknown peer. Known: raybox",
    "bench --size 0": "--size",
    "bench --threads 0": "--threads",
    "bench -o lost/x.json": "lost/x.json: cannot be written: there is no folder lost; make it first",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with files, most of which are wrong; it is the current one."""
    monkeypatch.chdir(tmp_path)
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "empty.zarr").mkdir()
    np.save("wide.npy", np.zeros((3, 5)))
    np.save("words.npy", np.array([["a"] * 6]))
    np.save("nan.npy", np.array([np.nan]))
    np.save("cut.npy", np.zeros(3))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "cut.npy").read_bytes()[:-8])
    np.savez("uneven.npz", lower=np.zeros((3, 3)), upper=np.ones((2, 3)))
    return tmp_path


@pytest.mark.parametrize("line", CASES)
def test_an_error_is_one_line_in_words_of_the_command(line, folder):
    before = sorted(folder.iterdir())
    done = CliRunner().invoke(main, line.split(" "), prog_name="raybox")
    assert done.exit_code == 2, done.output
    lines = [text for text in done.stderr.splitlines() if text and not text.startswith(("Usage:", "Try "))]
    assert CASES[line] in lines[-1]
    assert not LEAKS.search(lines[-1]), lines[-1]
    assert len(lines) == 1 or "compiling" in lines[0]
    assert lines[0].startswith("raybox: ")
    assert sorted(folder.iterdir()) == before


def test_advice_is_in_options_of_the_same_command(folder):
    assert "--invalid" not in CliRunner().invoke(main, ["bench", "--boxes", "nan_boxes.csv"]).stderr
    assert "or pass --invalid skip" in CliRunner().invoke(main, ["info", "nan_boxes.csv"]).stderr


def test_an_error_of_the_system_is_one_line(folder, monkeypatch):
    def fail(_path, **_options):
        raise OSError(28, "No space left on device", "stdin.csv")

    monkeypatch.setattr("raybox.io.formats.load_grid", fail)
    done = CliRunner().invoke(main, ["info", "--grid", "cells.npy"])
    assert done.exit_code == 2
    assert done.stderr.splitlines() == [
        "raybox: stdin.csv: No space left on device; check the path, its permissions and the room on the disk"
    ]
