"""Uploads from pages: bounded in number, size and time; an abandoned one is harmless."""

import tempfile

import pytest

import raybox as rb
from file_samples import samples
from raybox.viewer import open_file, uploads
from raybox.viewer.uploads import Uploads
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
    assert viewer.stage.name == "scene"
    with Client(viewer) as other:
        assert other.scene.header["name"] == "scene"
    assert not list(folder.iterdir())


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
    seq = page.send("upload", name="big.csv", size=open_file.MAX_BYTES + 1)
    assert "big.csv: 256 MiB exceed the limit of 256 MiB for uploads" in refusal(page, seq)
    assert not list(folder.iterdir())


def test_an_upload_may_not_send_more_than_it_announced(page, folder):
    seq = page.send("upload", name="one.csv", size=10)
    page.line.send(b"\2" + bytes(11))
    assert "one.csv: the upload sent more bytes than it announced" in refusal(page, seq)
    page.line.send(b"\2" + bytes(11))  # counts for nothing
    assert page.pick([0, 0, 0], [1, 0, 0]).kind == "hits"
    assert not list(folder.iterdir())


@pytest.mark.parametrize("how", ["closes", "cancels", "begins another"])
def test_an_abandoned_upload_leaves_nothing(viewer, page, folder, how):
    with Client(viewer) as other:
        other.upload("half.csv", TABLE, sent=1)
        wait_until(lambda: len(viewer._uploads.running) == 1, "the upload has begun")
        if how == "cancels":
            assert other.request("cancel").kind == "state"
        elif how == "begins another":
            opened(other, other.upload("one.csv", TABLE))
    wait_until(lambda: not viewer._uploads.running, "the upload has ended")
    wait_until(lambda: not list(folder.iterdir()), "its folder is removed")
    assert opened(page, page.upload("one.csv", TABLE)).header["ids"] == ["alone"]


def test_four_at_a_time_of_which_silent_ones_end(viewer, page, monkeypatch):
    """The clock is set by hand: nothing waits."""
    now = [1000.0]
    viewer._uploads.clock = lambda: now[0]
    others = [Client(viewer) for _ in range(uploads.MAX_UPLOADS)]
    silent = [one.upload(f"{k}.csv", TABLE, sent=k % 2) for k, one in enumerate(others)]
    wait_until(lambda: sum(one.received > 0 for one in viewer._uploads.running) == 2, "four are silent")
    assert "too many uploads at a time" in refusal(page, page.upload("refused.csv", TABLE, sent=0))
    now[0] += uploads.SILENT_SECONDS - 1
    others[1].line.send(b"\2" + TABLE[-10:])
    wait_until(lambda: max(one.last_part for one in viewer._uploads.running) == now[0], "one goes on")
    now[0] += 1
    assert opened(page, page.upload("one.csv", TABLE)).header["ids"] == ["alone"]
    assert [one.name for one in viewer._uploads.running] == ["1.csv"]
    others[0].line.send(b"\2" + TABLE[:10])
    assert "0.csv: the upload was silent for too long" in refusal(others[0], silent[0])
    now[0] += uploads.TOTAL_SECONDS
    others[1].line.send(b"\2" + TABLE[:1])
    opened(page, page.upload("one.csv", TABLE))
    assert not viewer._uploads.running
    for one in others:
        one.line.close()


def test_a_name_has_no_folders():
    running = Uploads()
    upload = running.begin("a/../..\\b/ONE.CSV", 1, seq=1)
    assert upload.name == "ONE.CSV"
    running.end(upload)
    running.end(upload)


def test_an_upload_is_read_from_its_bytes(tmp_path):
    for name in ("boxes.csv", "boxes.npz"):
        rb.save(tmp_path / name, ROW, ids=IDS)
        shown = open_file.stage_of_bytes(f"C:\\fake\\..\\{name}", (tmp_path / name).read_bytes())
        assert (shown.name, len(shown.visible), shown.ids) == (name, 2, IDS)


def test_an_upload_is_bounded(monkeypatch):
    monkeypatch.setattr(open_file, "MAX_BYTES", 2**20)
    with pytest.raises(rb.RayboxError, match=r"big\.csv: 2 MiB exceed the limit of 1 MiB"):
        open_file.stage_of_bytes("big.csv", b"0" * 2**21)
    monkeypatch.setattr(open_file, "MAX_ROWS", 2)
    with pytest.raises(rb.RayboxError, match="3 rows exceed the limit of 2"):
        open_file.stage_of_bytes("row.csv", b"min_x,min_y,min_z,max_x,max_y,max_z\n" + b"0,0,0,1,1,1\n" * 3)


def test_every_scene_format_opens_from_bytes():
    opened = set()
    for name, (content, options) in samples().items():
        if options.get("kind") == "scene":
            assert len(open_file.stage_of_bytes(name, content).scene) > 0
            opened.add(name.rpartition(".")[2])
    assert opened >= {"npz", "npy", "csv", "parquet", "ply", "stl", "obj", "glb", "ifc", "json", "vox"}
