"""The commands: output, files, exit codes, and modules that they must not import."""

import doctest
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

import raybox as rb
import real_data
from commands import cast, raybox
from file_samples import BOXES, IDS, RAYS, sample, samples
from needs import package
from processes import output_of, python
from raybox.casting.job import SUFFIXES
from raybox.cli import main
from raybox.io.formats.table import extensions
from raybox.scene.file_queries import columns_of, file_queries
from waiting import SECONDS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Change to a folder that contains a scene and rays."""
    monkeypatch.chdir(tmp_path)
    rb.save("boxes.csv", BOXES, ids=IDS)
    rb.save("rays.npz", RAYS)
    return tmp_path


# Documentation


def examples():
    """Yield the examples of docs/cli: the page, the command and its output; first the page with the files."""
    pages = sorted((DOCS / "cli").glob("*.md"), key=lambda page: page.stem != "index")
    for page in pages:
        for block in re.findall(r"^```console\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
            for command, printed in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
                yield page.name, shlex.split(command), printed


def test_documented_examples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    commands = []
    for page, (program, *arguments), printed in examples():
        if program == "cat":
            Path(arguments[0]).write_text(printed)
            continue
        stdout = raybox(*arguments).stdout
        same = doctest.OutputChecker().check_output(printed, stdout, doctest.ELLIPSIS)
        assert same, f"{arguments}\nin {page}:\n{printed}\nnow:\n{stdout}"
        commands.append(arguments[0])
    assert {"demo", "cast", "join", "pick", "explain", "view", "info"} == set(commands)


def test_every_command_has_help():
    listed = raybox("--help").stdout
    for command in main.commands:
        assert re.search(rf"^  {command} +\w", listed, re.MULTILINE)
        text = raybox(command, "--help").stdout
        assert "raybox" in text
        assert "\\b" not in text
    assert rb.__version__ in raybox("--version").stdout


def test_the_help_of_cast_lists_what_the_tables_hold():
    text = raybox("cast", "--help").stdout
    scene, rays = text.partition("SCENE  ")[2].split("RAYS   ")
    for kind, words in (("scene", scene), ("rays", rays.partition("\n\n")[0])):
        found = set(re.findall(r"\.[a-z]+", words.replace(".city.json", ".json")))
        assert found == set(extensions(kind).split())
    outputs = re.search(r"The file of results \(([^)]*)\)", " ".join(text.split()))[1]
    assert set(outputs.split()) == set(SUFFIXES)
    listed = re.findall(r"^  (\w+) +(?:row|ray|index|the same)\b(.*)$", text, re.MULTILINE)
    assert tuple(name for name, _ in listed) == file_queries()
    for query, columns in listed:
        names = list(columns_of(query).dtypes(3, []))[1:]
        found = re.findall(r"\w+", re.sub(r"\(.*?\)|[:;].*", "", columns))
        if query in ("nearest", "all") or columns_of(query).reads != "rays":  # of a mesh with objects
            assert found.pop(1) == "object"
        assert found == names or query == "segments"


def test_examples_in_help_are_lines_of_their_own():
    """As many as the docstring has; one paragraph of them could not be copied to a shell."""
    total = 0
    for command in main.commands.values():
        examples = re.findall(r"^ *(raybox \w.*)$", command.callback.__doc__, re.MULTILINE)
        text = raybox(command.name, "--help").stdout
        assert re.findall(r"^  (raybox \w.*)$", text, re.MULTILINE) == examples
        total += len(examples)
    assert total > 12


# Quick starts


def modules_after(*arguments):
    code = "import sys; from raybox.cli import main\n"
    code += "try: main(sys.argv[1:])\nfinally: print(*sys.modules, file=sys.stderr)"
    done = python("-c", code, *arguments)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def test_help_imports_neither_numpy_nor_numba():
    for arguments in (["--help"], ["--version"], ["cast", "--help"], ["demo", "--help"]):
        assert not {"numpy", "numba"} & modules_after(*arguments)


@pytest.mark.core
def test_one_ray_and_info_load_no_numba(folder):
    ray_and_box = ["--origin", "0,0,0", "--direction", "1,1,1", "--lower", "1,1,1", "--upper", "2,2,2"]
    assert "numba" not in modules_after("explain", *ray_and_box)
    assert "numba" not in modules_after("info", "boxes.csv")
    assert "numba" not in modules_after("pick", "boxes.csv", *ray_and_box[:4])


# pick


@pytest.mark.core
def test_pick(folder):
    lines = raybox("pick", "boxes.csv", "--origin", "-1,0.5,0.5", "--direction", "2,0,0").stdout.splitlines()
    assert lines[0].split() == ["index", "id", "t", "point", "face"]
    assert lines[1].split() == ["0", "first", "0.5", "0,0.5,0.5", "-x"]
    assert lines[2].split() == ["1", "second,", "of", "two", "1.75", "2.5,0.5,0.5", "-x"]
    inside = raybox("pick", "boxes.csv", "--origin", "0.5,0.5,0.5", "--direction", "0,0,-1").stdout
    assert inside.splitlines()[1].split() == ["0", "first", "0", "0.5,0.5,0.5", "inside"]


def test_pick_for_programs(folder):
    def pick(*ray):
        return json.loads(raybox("pick", "boxes.csv", *ray, "--json").stdout)

    found = pick("--from=-1,0.5,0.5", "--to", "1,0.5,0.5")
    assert (found["t_min"], found["t_max"], found["direction"]) == (0.0, 1.0, [2.0, 0.0, 0.0])
    assert found["hits"] == [{"index": 0, "id": "first", "t": 0.5, "point": [0.0, 0.5, 0.5], "face": "-x"}]
    found = pick("--origin=9,9,9", "--direction", "1,0,0")
    assert (found["t_max"], found["hits"], found["objects"]) == (None, [], [])
    assert len(pick("--from=-1,0.5,0.5", "--to", "0,0.5,0.5")["hits"]) == 1
    found = pick("--from=-1,0.5,0.5", "--to", "0,0.5,0.5", "--margin", "0.25")
    assert (found["t_min"], found["t_max"], found["hits"]) == (0.25, 0.75, [])


@pytest.mark.core
def test_pick_in_a_mesh(folder):
    Path("parts.obj").write_bytes(samples()["parts.obj"][0])
    ray = ["--origin", "0.5,0.5,9", "--direction", "0,0,-1"]
    header, *rows = (line.split() for line in raybox("pick", "parts.obj", *ray).stdout.splitlines())
    assert header == ["object", "id", "t_first", "t_last", "contacts", "point"]
    assert "right" in [row[1] for row in rows]
    assert "right" in raybox("pick", "parts.obj", "--boxes", *ray).stdout


# cast


def test_cast_runs_every_query(folder):
    scene, answers = rb.Scene(BOXES), {}
    command = "cast", "boxes.csv", "rays.npz", "-o", "out.npz", "--json", "--force", "--query"
    for query in ("nearest", "occluded", "count", "all"):
        output = json.loads(raybox(*command, query).stdout)
        assert (output["size"], output["cast"], output["query"], output["out"]) == (3, 4, query, "out.npz")
        assert {"met", "hit_count"} & set(output) == {"hit_count"}
        answers[query] = dict(np.load("out.npz"))
    contacts = scene.all(RAYS)
    for query, name, column in (
        ("nearest", "t", scene.nearest(RAYS).t),
        ("nearest", "index", scene.nearest(RAYS).index),
        ("occluded", "occluded", scene.occluded(RAYS)),
        ("count", "count", scene.count(RAYS)),
        ("all", "ray", contacts.ray),
        ("all", "index", contacts.index),
        ("all", "length", contacts.lengths),
    ):
        np.testing.assert_array_equal(answers[query][name], column)


def test_cast_from_points(folder):
    Path("points.pcd").write_bytes(samples()["binary.pcd"][0])
    assert len(cast("boxes.csv", "points.pcd", "--origin", "-3,0.5,0.5", "--query", "count")) == 40
    Path("holes.csv").write_text("x,y,z\n1,2,3\nnan,nan,nan\n")
    arguments = "cast", "boxes.csv", "holes.csv", "--origin", "0,0,0", "-o", "-"
    assert "holes.csv, line 3, column x: nan" in raybox(*arguments, code=2).stderr
    assert raybox(*arguments, "--invalid", "miss").stdout.splitlines()[2] == "1,-1,,inf,nan,nan,nan"


@pytest.mark.parametrize("rows", ["", "0,0,0,1,0,0\n"])
def test_cast_with_nothing_in_the_files(folder, rows):
    Path("one.csv").write_text("origin_x,origin_y,origin_z,direction_x,direction_y,direction_z\n" + rows)
    Path("none.csv").write_text("min_x,min_y,min_z,max_x,max_y,max_z\n")
    for query in ("nearest", "occluded", "count", "all"):
        for scene in ("none.csv", "boxes.csv"):
            raybox("cast", scene, "one.csv", "-o", "out.csv", "--query", query, "--force")


REAL = real_data.CITY, real_data.SHOP, real_data.SKULL, real_data.HOUSE


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_cast_into_real_scenes_agrees_with_brute_force(folder, path):
    """20,000 rays through the command; of 60, `rb.intersect` tests every box or triangle."""
    if path == real_data.HOUSE:
        package("ifcopenshell")
    geometry = rb.load(path)
    lower, upper = geometry.bounds
    rng = np.random.default_rng(11)
    origins = rng.normal((lower + upper) / 2, 0.7 * (upper - lower), (20_000, 3))
    rays = rb.Rays(origins, rng.uniform(lower, upper, (20_000, 3)) - origins)
    rb.save("rays.npy", rays)
    raybox("cast", path, "rays.npy", "-o", "hits.npz")
    hits = np.load("hits.npz")
    hit, index = hits["index"] >= 0, hits["index"]
    assert 0.2 < hit.mean() < 1.0
    for k in rng.choice(20_000, 60, replace=False):
        every = rb.intersect(rays[k], geometry)
        assert hits["t"][k] == every.t.min()
        assert index[k] == (every.t.argmin() if hit[k] else -1)
    if isinstance(geometry, rb.Mesh):
        assert hits["id"][hit].tolist() == geometry.ids[geometry.objects[index[hit]]].tolist()


# demo


def test_demo(folder):
    output = raybox("demo", "--out", "new/folder").stdout
    assert "26,348 triangles of 215 objects" in output
    assert 'BSI (2020) "Duplex Apartment Test Files", buildingSMART International, CC BY 4.0' in output
    assert re.search(r"camera, .* 256,000 rays, [\d,]+ hit", output)
    assert re.search(r"lidar, .* 65,536 rays, [\d,]+ hit", output)
    assert sorted(path.name for path in Path("new/folder").iterdir()) == ["demo.html", "depth.png"]
    page = Path("new/folder/demo.html").read_text()
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert len(page) > 300_000
    picture = imread("new/folder/depth.png")
    assert picture.shape == (400, 640, 3)
    background = (picture == picture[0, 0]).all(axis=-1).mean()
    assert 0.4 < background < 0.8
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 1000
    *_, info, pick, view = output.splitlines()
    assert [line.split()[:2] for line in (info, pick, view)] == [
        ["raybox", c] for c in ("info", "pick", "view")
    ]


def test_demo_needs_no_extra(folder):
    extras = "['pyarrow', 'trimesh', 'laspy', 'ifcopenshell', 'websockets']"
    code = f"import sys; sys.modules.update(dict.fromkeys({extras}))\n"
    code += "from raybox.cli import main; main(['demo'])"
    assert "a page for the browser: demo.html" in output_of("-c", code)
    assert Path("depth.png").is_file()
    assert Path("demo.html").is_file()


def test_demo_where_it_cannot_write(folder):
    Path("taken").write_text("a file")
    assert "Cannot create the folder taken" in raybox("demo", "--out", "taken", code=2).stderr


# info


@pytest.mark.core
@pytest.mark.parametrize("name", samples())
def test_info(folder, name):
    content, options = sample(name)
    Path(name).write_bytes(content)
    kind = ["--kind", options["kind"]] if "kind" in options else []
    facts = json.loads(raybox("info", name, "--json", *kind).stdout)
    wanted = {"scene": ("boxes", "triangles"), "rays": ("rays",)}.get(options.get("kind"), ("points",))
    assert facts["holds"] in wanted
    assert facts["bytes"] == len(content)
    assert facts["count"] > 0
    assert facts["dimension"] == 3
    assert "count" in raybox("info", name, *kind).stdout
    if name == "parts.obj":
        assert "left  right" in raybox("info", name, "--boxes").stdout


def test_info_of_labels(folder):
    output = raybox("info", Path(rb.__file__).parent / "data" / "duplex.npz").stdout
    assert "IfcWallStandardCase 56" in output
    assert "distinct ids 215" in " ".join(output.split())


# Ends


def one_line(done):
    """Return the error line of a command; check that nothing else was printed."""
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("raybox: ")
    return done.stderr


@pytest.mark.parametrize("name", samples())
def test_broken_files_end_as_one_line(folder, name):
    content, options = sample(name)
    path = Path("broken_" + name)
    path.write_bytes(content[: len(content) // 2] if not name.endswith(".obj") else content + b"f 1 2 99\n")
    if options.get("kind") == "scene":
        done = raybox("cast", path, "rays.npz", "-o", "out.csv", code=2)
    else:
        origin = ["--origin", "0,0,0"] if "origin" in options else []
        done = raybox("cast", "boxes.csv", path, "-o", "out.csv", *origin, code=2)
    assert one_line(done).startswith(f"raybox: {path}")
    assert not Path("out.csv").exists()
    assert one_line(raybox("info", path, "--kind", options.get("kind", "rays"), code=2))


def test_a_broken_file_in_a_process_of_its_own(folder):
    Path("cut.ply").write_bytes(samples()["ascii.ply"][0][:-9])
    done = python("-m", "raybox", "pick", "cut.ply", "--from", "0,0,0", "--to", "1,1,1")
    assert done.returncode == 2
    assert one_line(done).startswith("raybox: cut.ply, row 3 of face: ")


def test_no_memory(folder, monkeypatch):
    def swell(self, *_, **__):
        raise MemoryError

    monkeypatch.setattr(rb.Scene, "all", swell)
    done = raybox("cast", "boxes.csv", "rays.npz", "-o", "o.csv", "--query", "all", code=2)
    assert "cast needs more memory than there is; pass a smaller --chunk" in one_line(done)


def test_a_reader_that_closes_the_output(folder):
    rays = np.random.default_rng(1).normal(size=(2, 50_000, 3))
    rb.save("many.npz", rb.Rays(*rays))
    command = [sys.executable, "-m", "raybox", "cast", "boxes.csv", "many.npz", "-o", "-"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout.readline() == "ray,index,id,t,x,y,z\n"
    running.stdout.close()
    output = running.stderr.read()
    assert running.wait(timeout=SECONDS) == 0
    assert "Traceback" not in output
    assert "Broken" not in output


def test_layouts_and_bad_boxes(tmp_path, monkeypatch):
    """A layout is that of the rays, if there are any; bad boxes are left out, bad rays miss."""
    monkeypatch.chdir(tmp_path)
    Path("scene.txt").write_text("min_x min_y min_z max_x max_y max_z\n2 -1 -1 3 1 1\nnan 0 0 1 1 1\n")
    np.array([[2, 0, 0, 7], [np.nan, 0, 0, 7], [0, 2, 0, 7]], "<f4").tofile("scan.bin")
    scan = "cast", "scene.txt", "scan.bin", "-o", "-", "--origin", "0,0,0", "--layout", "x,y,z,i"
    assert "or pass --invalid skip" in raybox(*scan, code=2).stderr
    assert "or pass --invalid miss" in raybox(*scan, "--invalid", "skip", code=2).stderr
    Path("good.csv").write_text("min_x;min_y;min_z;max_x;max_y;max_z\n2;-1;-1;3;1;1\n")
    done = raybox("cast", "good.csv", *scan[2:], "--invalid", "miss")
    assert [line.split(",")[1] for line in done.stdout.splitlines()[1:]] == ["0", "-1", "-1"]
    facts = json.loads(raybox("info", "scan.bin", "--layout", "x,y,z,i", "--json").stdout)
    assert (facts["holds"], facts["count"], facts["not_finite"]) == ("points", 3, 1)
    picked = raybox("pick", "scene.txt", "--from", "0,0,0", "--to", "9,0,0", "--invalid", "skip")
    assert "lost: rows with missing numbers (1)" in picked.stderr
    Path("bare.txt").write_text("2 -1 -1 3 1 1\n")
    bare = "pick", "bare.txt", "--from", "0,0,0", "--to", "9,0,0", "--json"
    hits = json.loads(raybox(*bare, "--layout", "min_x,min_y,min_z,max_x,max_y,max_z").stdout)
    assert [hit["index"] for hit in hits["hits"]] == [0]
    raybox("view", "good.csv", *scan[2:3], *scan[5:], "--invalid", "miss", "--html", "view.html")
    assert Path("view.html").stat().st_size > 10_000
