"""Inputs of commands: stdin, patterns, several files, and columns that are carried to the output."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import raybox as rb
from commands import raybox
from file_samples import BOXES, IDS, RAYS
from streaming import get, stopping_at


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Change to a folder with a scene, the same in two files, and rays, the same in three."""
    monkeypatch.chdir(tmp_path)
    rb.save("boxes.csv", BOXES, ids=IDS)
    rb.save("tile_1.csv", BOXES[:1], ids=IDS[:1])
    rb.save("tile_2.csv", BOXES[1:], ids=IDS[1:])
    rb.save("all.csv", RAYS)
    for number, rows in enumerate((slice(0, 2), slice(2, 3), slice(3, 4))):
        rb.save(f"rays_{number}.csv", RAYS[rows])
    return tmp_path


def cast(*arguments, **how):
    return raybox("cast", *arguments, "-o", "-", **how).stdout


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


# stdin


@pytest.mark.parametrize("ending", ["csv", "npz", "npy", "parquet"])
def test_rays_from_stdin_in_the_format_of_their_first_bytes(folder, ending):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    rb.save(f"r.{ending}", RAYS)
    assert cast("boxes.csv", "-", stdin=Path(f"r.{ending}").read_bytes()) == cast("boxes.csv", "all.csv")


def test_a_scene_from_stdin(folder):
    boxes = Path("boxes.csv").read_bytes()
    assert cast("-", "all.csv", stdin=boxes) == cast("boxes.csv", "all.csv")
    ray = "--origin", "-1,0.5,0.5", "--direction", "2,0,0"
    assert raybox("pick", "-", *ray, stdin=boxes).stdout == raybox("pick", "boxes.csv", *ray).stdout
    assert json.loads(raybox("pick", "-", *ray, "--json", stdin=boxes).stdout)["scene"] == "-"
    assert json.loads(raybox("info", "-", "--json", stdin=boxes).stdout)["count"] == 3


def test_the_format_option(folder):
    obj = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"
    ray = "--origin", "0.2,0.2,1", "--direction", "0,0,-1"
    assert "stdin.csv" in raybox("pick", "-", *ray, stdin=obj, code=2).stderr
    found = raybox("pick", "-", *ray, "--format", "obj", stdin=obj).stdout
    assert found.splitlines()[1].split()[:3] == ["0", "stdin", "1"]


def test_errors_of_stdin_name_no_temporary_folder(folder):
    error = raybox("cast", "boxes.csv", "-", "-o", "-", stdin=b"origin_x,y\n1,2\n", code=2).stderr
    assert error.startswith("raybox: stdin.csv, header: ")
    error = raybox("cast", "boxes.csv", "-", "-o", "-", stdin=b"", code=2).stderr
    assert error.startswith("raybox: stdin.csv: is empty")
    assert "can be read once" in raybox("cast", "-", "-", "-o", "-", stdin=b"", code=2).stderr


def test_a_pipe_in_a_process_of_its_own(folder):
    """No temporary file is left."""
    Path("tmp").mkdir()
    command = [sys.executable, "-m", "raybox", "cast", "boxes.csv", "-", "-o", "-", "--query", "count"]
    env = os.environ | {"TMPDIR": str(folder / "tmp")}
    done = subprocess.check_output(command, input=Path("all.csv").read_text(), env=env, text=True)
    assert [int(row["count"]) for row in rows_of(done)] == rb.Scene(BOXES).count(RAYS).tolist()
    assert [path.name for path in Path("tmp").iterdir() if path.name.startswith("raybox-")] == []


def test_a_cast_of_stdin_with_json_prints_json_only(folder):
    done = raybox("cast", "boxes.csv", "-", "-o", "o.csv", "--json", stdin=Path("all.csv").read_bytes())
    assert json.loads(done.stdout)["rays"] == "-"


# Several files


@pytest.mark.parametrize("query", ["nearest", "count", "all"])
def test_several_files_are_one(folder, query):
    wanted = cast("boxes.csv", "all.csv", "--query", query)
    names = sorted(str(path) for path in folder.glob("rays_*.csv"))
    assert cast("boxes.csv", "rays_*.csv", "--query", query) == wanted
    assert cast("boxes.csv", *names, "--query", query) == wanted
    assert cast("tile_*.csv", "all.csv", "--query", query) == wanted


def test_patterns_of_other_commands(folder):
    ray = "--origin", "-1,0.5,0.5", "--direction", "2,0,0"
    wanted = raybox("pick", "boxes.csv", *ray).stdout
    assert raybox("pick", "tile_*.csv", *ray).stdout == wanted
    assert raybox("pick", "tile_1.csv", "tile_2.csv", *ray).stdout == wanted
    lines = raybox("info", "tile_*.csv", "boxes.csv", "--json").stdout.splitlines()
    assert [json.loads(line)["count"] for line in lines] == [1, 2, 3]
    assert raybox("info", "tile_*.csv").stdout.count("lower bound") == 2


def test_a_scene_of_meshes_and_a_mixed_one(folder):
    Path("a.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    Path("b.obj").write_text("v 0 0 1\nv 1 0 1\nv 0 1 1\nf 1 2 3\n")
    ray = "--origin", "0.2,0.2,-1", "--direction", "0,0,1"
    hits = json.loads(raybox("pick", "?.obj", *ray, "--json").stdout)
    assert hits["scene"] == ["a.obj", "b.obj"]
    assert [(hit["index"], hit["t"]) for hit in hits["hits"]] == [(0, 1.0), (1, 2.0)]


def test_a_wrong_number_names_its_file_and_line(folder):
    text = Path("rays_1.csv").read_text().splitlines()
    Path("rays_1.csv").write_text("\n".join([text[0], text[1].replace(text[1].split(",")[0], "nan", 1)]))
    error = raybox("cast", "boxes.csv", "rays_*.csv", "-o", "-", code=2).stderr
    assert "rays_1.csv, line 2, column origin_x: nan" in error
    assert "--invalid miss" in error
    assert "invalid=" not in error


# Columns that are carried


def with_columns(path, **columns):
    """Write the rays with more columns, as text; return the columns."""
    rb.save("plain.csv", RAYS)
    head, *rows = Path("plain.csv").read_text().splitlines()
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow([*head.split(","), *columns])
    for row, *values in zip(rows, *columns.values(), strict=True):
        table.writerow([*row.split(","), *values])
    Path(path).write_text(out.getvalue())
    return columns


COLUMNS = {"id": ["007", "b, c", "", 'q"'], "time": ["1.50", "2", "3e2", "4"]}


@pytest.mark.parametrize("query", ["nearest", "occluded", "count", "all", "integrate"])
def test_carried_columns_stand_beside_the_results_of_their_ray(folder, query):
    with_columns("named.csv", **COLUMNS)
    plain = rows_of(cast("boxes.csv", "all.csv", "--query", query))
    rows = rows_of(cast("boxes.csv", "named.csv", "--query", query, "--carry", "all"))
    names = {"ray_id": "id", "time": "time"}
    assert rows == [row | {n: COLUMNS[own][int(row["ray"])] for n, own in names.items()} for row in plain]
    some = cast("boxes.csv", "named.csv", "--query", query, "--carry", "time")
    assert some.splitlines()[0].endswith(",time")


def test_carried_columns_of_parquet_keep_their_type(folder):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rb.save("plain.parquet", RAYS)
    table = parquet.read_table("plain.parquet")
    table = table.append_column("when", arrow.array([1, 2, None, 4], arrow.timestamp("us", "UTC")))
    table = table.append_column("name", arrow.array(["a", None, "c", "a"]).dictionary_encode())
    table = table.append_column("k", arrow.array([1, 2, None, 4], arrow.int64()))
    parquet.write_table(table, "rays.parquet", row_group_size=3)
    raybox("cast", "boxes.csv", "rays.parquet", "-o", "o.parquet", "--carry", "when,name,k", "--query", "all")
    found = parquet.read_table("o.parquet")
    for name in ("when", "name", "k"):
        assert found[name].type == (arrow.string() if name == "name" else table[name].type)
        wanted = table[name].cast(found[name].type).take(found["ray"])
        assert found[name].to_pylist() == wanted.to_pylist()
    text = rows_of(cast("boxes.csv", "rays.parquet", "--carry", "name,k"))
    assert [(row["name"], row["k"]) for row in text] == [("a", "1"), ("", "2"), ("c", ""), ("a", "4")]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("named.csv -o - --carry nome", "has no column 'nome' to carry; it has id, time"),
        ("named.csv -o o.npz --carry id", "write .csv or .parquet"),
        ("named.csv -o - --carry id --query deposit", "a row for each box"),
        ("rays.npy -o - --carry all", "no named columns"),
    ],
)
def test_columns_that_cannot_be_carried(folder, arguments, problem):
    with_columns("named.csv", **COLUMNS)
    rb.save("rays.npy", RAYS)
    assert problem in raybox("cast", "boxes.csv", *arguments.split(), code=2).stderr


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_resumed_cast_carries_the_same(folder, ending, monkeypatch):
    """The cast is stopped at some chunks; its output has the bytes of one that was not."""
    rb.save("many.csv", rb.Rays(np.tile(RAYS.origins, (10, 1)), np.tile(RAYS.directions, (10, 1))))
    head, *rows = Path("many.csv").read_text().splitlines()
    named = [f"{row},n{k}" for k, row in enumerate(rows)]
    for name, part in (("m_0.csv", named[:17]), ("m_1.csv", named[17:])):
        Path(name).write_text("\n".join([head + ",name", *part]) + "\n")
    scene, files = rb.Scene(BOXES), ["m_0.csv", "m_1.csv"]
    how = {"query": "all", "carry": ["name"], "chunk": 7}
    rb.stream.cast(scene, files, f"whole.{ending}", **how)
    for first in (7, 21, 28):
        with stopping_at(monkeypatch, first, KeyboardInterrupt()):
            rb.stream.cast(scene, files, f"out.{ending}", **how)
        assert not Path(f"out.{ending}").exists()
    assert rb.stream.cast(scene, files, f"out.{ending}", **how).resumed > 0
    assert Path(f"out.{ending}").read_bytes() == Path(f"whole.{ending}").read_bytes()
    table = get(Path(f"whole.{ending}"))
    assert table["name"].tolist() == [f"n{ray}" for ray in table["ray"]]
    assert len(set(table["ray"])) > 20
