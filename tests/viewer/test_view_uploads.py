"""Uploads from pages: bounded in number, size and time; an abandoned one is harmless."""

import tempfile
import zlib

import pytest

import raybox as rb
from file_samples import sample, samples
from raybox.geometry.labels import with_properties
from raybox.geometry.property_sets import PropertySets
from raybox.viewer import session
from raybox.viewer import stage as stages
from view_client import Client
from waiting import wait_until

pytest.importorskip("websockets")

ROW = rb.Boxes([[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [6, 1, 1]])
TABLE = b"id,min_x,min_y,min_z,max_x,max_y,max_z\nalone,0,0,0,1,1,1\n"
IDS = ["near", "far"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the folder in which uploads make their own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def viewer(folder):
    with rb.view(ROW, port=0) as shown:
        yield shown


@pytest.fixture
def page(viewer):
    with Client(viewer) as client:
        yield client


def opened(page, seq):
    """Return the scene that an upload shows."""
    assert "reading" in page.receive("progress").header["text"]
    (scene,) = page.receive_scene()
    assert page.receive("state").header["seq"] == seq
    return scene


def test_property_sets_survive_an_upload(page, tmp_path):
    sets = ['{"Pset": {"IsExternal": true}}', ""]
    rb.save(tmp_path / "a.npz", with_properties(ROW, PropertySets(sets)))
    scene = opened(page, page.upload("a.npz", (tmp_path / "a.npz").read_bytes()))
    assert zlib.decompress(scene.arrays["properties"].tobytes()).decode().split("\n") == sets


def refusal(page, seq) -> str:
    answer = page.receive("error", "progress")
    while answer.kind == "progress":
        answer = page.receive("error", "progress")
    assert answer.header["seq"] == seq
    return answer.header["text"]


def test_a_file_is_shown_to_its_page_alone(viewer, page, folder):
    with Client(viewer) as other:
        scene = opened(page, page.upload("one.csv", TABLE))
        assert (scene.header["name"], scene.header["ids"]) == ("one.csv", ["alone"])
        assert page.pick([0.5, 0.5, 5], [0, 0, -1]).arrays["t"].tolist() == [4.0]
        assert other.pick([0, 0, 0], [1, 0, 0]).arrays["t"].tolist() == [2.0, 5.0]
    assert viewer._content.stage.name == "scene"
    with Client(viewer) as other:
        assert other.scene.header["name"] == "scene"
    assert not list(folder.iterdir())


RAYS = b"origin_x,origin_y,origin_z,direction_x,direction_y,direction_z\n0,0,0,2,0,0\n0,9,0,1,0,0\n"
SCAN = b"x,y,z,intensity\n-3,1,0,9\n4,-1,0.5,7\n"


def added(page, seq, text=""):
    """Return the frames of an upload that adds to the scene, by kind; it says a text."""
    assert "reading" in page.receive("progress").header["text"]
    assert page.receive("renumber").header["runs"] == [[0, 0, 2]]
    frames = {one.kind: one for one in page.receive_scene()}
    state = page.receive("state").header
    assert state["seq"] == seq
    assert text in state["text"]
    return frames


def test_rays_are_added_to_the_scene(viewer, page):
    """Those of a second file, too; those of the same name again replace the first."""
    with Client(viewer) as other:
        frames = added(page, page.upload("rays.csv", RAYS), "rays.csv: 2 rays added")
        assert frames["scene"].header["name"] == "scene"
        assert frames["table"].arrays["object"].tolist() == [0, -1]
        assert frames["table"].arrays["distance"].tolist() == [2.0, float("inf")]
        frames = added(page, page.upload("scan.csv", SCAN), "scan.csv: 2 rays from 0 0 0 to its points added")
        assert frames["rays"].header["total"] == 4
        assert frames["points"].arrays["ray"].tolist() == [2, 3]
        assert frames["points"].header["fields"] == ["intensity"]
        frames = added(page, page.upload("rays.csv", RAYS))
        assert frames["rays"].header["total"] == 4
        assert page.pick([0, 0, 0], [1, 0, 0]).arrays["t"].tolist() == [2.0, 5.0]
        assert [one.kind for one in other.scene_frames] == ["scene"]


def test_points_of_a_mesh_file_without_faces_are_added(page):
    ply = b"ply\nformat ascii 1.0\nelement vertex 2\n" + b"".join(
        b"property float %c\n" % axis for axis in b"xyz"
    )
    frames = added(page, page.upload("scan.ply", ply + b"end_header\n-3 1 0\n4 -1 0\n"))
    assert len(frames["points"].arrays["xyz"]) == 2


def test_rays_that_are_wrong_are_one_message(page):
    assert "rays.csv: holds" not in refusal(page, page.upload("rays.csv", RAYS.replace(b"0,9", b"0,nan")))
    assert "--origin X,Y,Z" in refusal(page, page.upload("scan.csv", b"x,y,z\n84900,447500,3\n"))


@pytest.mark.parametrize(
    ("name", "content", "text_part"),
    [
        ("bad.csv", b"\xff\xfe", "bad.csv"),
        ("x.exe", b"MZ", "x.exe: unsupported file extension '.exe'"),
        ("cut.npz", b"PK\3\4 cut off", "cut.npz"),
        ("e.ifc", b"", "e.ifc: is empty"),
        ("../../etc/passwd.csv", b"a,b\n1,2\n", "passwd.csv"),
        ("C:\\rays.csv", b"ox,oy,oz,dx,dy,dz\n0,0,0,1,0,0\n", "rays.csv"),
    ],
)
def test_a_bad_file_is_one_message_and_the_scene_stays(page, folder, name, content, text_part):
    text = refusal(page, page.upload(name, content))
    assert text_part in text
    assert "\n" not in text
    assert str(folder) not in text
    assert page.pick([0, 0, 0], [1, 0, 0]).arrays["t"].tolist() == [2.0, 5.0]
    assert not list(folder.iterdir())


def test_a_large_file_is_refused_before_it_is_sent(page, folder):
    seq = page.send("upload", name="big.csv", size=stages.MAX_BYTES + 1)
    assert "big.csv: 256 MiB exceed the limit of 256 MiB for uploads" in refusal(page, seq)
    assert not list(folder.iterdir())


def test_an_upload_may_not_send_more_than_it_announced(page, folder):
    seq = page.send("upload", name="one.csv", size=10)
    page.line.send(b"\2" + bytes(11))
    assert "one.csv: sent more bytes than announced" in refusal(page, seq)
    page.line.send(b"\2" + bytes(11))  # counts for nothing
    assert page.pick([0, 0, 0], [1, 0, 0]).kind == "hits"
    assert not list(folder.iterdir())


@pytest.mark.parametrize("how", ["closes", "begins another"])
def test_an_abandoned_upload_leaves_nothing(viewer, page, folder, how):
    with Client(viewer) as other:
        other.upload("half.csv", TABLE, sent=1)
        wait_until(lambda: len(viewer._uploads) == 1, "the upload has begun")
        if how == "begins another":
            opened(other, other.upload("one.csv", TABLE))
    wait_until(lambda: not viewer._uploads, "the upload has ended")
    wait_until(lambda: not list(folder.iterdir()), "its folder is removed")
    assert opened(page, page.upload("one.csv", TABLE)).header["ids"] == ["alone"]


def test_four_at_a_time(viewer, page):
    others = [Client(viewer) for _ in range(session.MAX_UPLOADS)]
    for k, one in enumerate(others):
        one.upload(f"{k}.csv", TABLE, sent=k % 2)
    wait_until(lambda: len(viewer._uploads) == 4, "four have begun")
    assert "too many uploads at a time" in refusal(page, page.upload("refused.csv", TABLE))
    opened(others[0], others[0].upload("own.csv", TABLE))  # in place of its other one
    assert opened(page, page.upload("one.csv", TABLE)).header["ids"] == ["alone"]
    for one in others:
        one.line.close()


@pytest.mark.parametrize("limit", ["session.SILENT_SECONDS", "session.TOTAL_SECONDS"])
@pytest.mark.parametrize("sent", [0, 1])
def test_an_upload_that_is_silent_or_slow_ends(viewer, page, folder, monkeypatch, limit, sent):
    with monkeypatch.context() as patch:
        patch.setattr(f"raybox.viewer.{limit}", 0.01)
        seq = page.upload("half.csv", TABLE, sent=sent)
        assert "half.csv: was silent or slow for too long" in refusal(page, seq)
        page.line.send(b"\2" + TABLE)  # counts for nothing
    assert not list(folder.iterdir())
    assert opened(page, page.upload("one.csv", TABLE)).header["ids"] == ["alone"]


def test_an_upload_is_read_from_its_bytes(tmp_path):
    for name in ("boxes.csv", "boxes.npz"):
        rb.save(tmp_path / name, ROW, ids=IDS)
        shown = stages.stage_of_bytes(f"C:\\fake\\..\\{name}", (tmp_path / name).read_bytes())
        assert (shown.name, len(shown.visible), shown.ids) == (name, 2, IDS)


def test_an_upload_is_bounded(monkeypatch):
    monkeypatch.setattr(stages, "MAX_BYTES", 2**20)
    with pytest.raises(rb.RayboxError, match=r"big\.csv: 2 MiB exceed the limit of 1 MiB"):
        stages.stage_of_bytes("big.csv", b"0" * 2**21)
    monkeypatch.setattr(stages, "MAX_ROWS", 2)
    with pytest.raises(rb.RayboxError, match="3 rows exceed the limit of 2"):
        stages.stage_of_bytes("row.csv", b"min_x,min_y,min_z,max_x,max_y,max_z\n" + b"0,0,0,1,1,1\n" * 3)


SCENES = [name for name, (_, options) in samples().items() if options.get("kind") == "scene"]


@pytest.mark.parametrize("name", SCENES)
def test_a_scene_opens_from_bytes(name):
    assert len(stages.stage_of_bytes(name, sample(name)[0]).scene) > 0


def test_scenes_of_every_format_open_from_bytes():
    formats = {name.rpartition(".")[2] for name in SCENES}
    assert formats >= {"npz", "npy", "csv", "parquet", "ply", "stl", "obj", "glb", "ifc", "json", "vox"}
