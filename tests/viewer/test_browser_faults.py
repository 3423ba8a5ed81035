"""What goes wrong around a page, in a real browser: one message, and the page remains usable."""

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

import raybox as rb
from browser import WIDE, Page
from view_client import Client

ROW = rb.Boxes(
    [[0, 0, 0], [2, 0, 0], [4, 0, 0]],
    [[1, 1, 1], [3, 1, 1], [5, 1, 1]],
    ids=["near", "middle", "far"],
    labels={"class": ["wall", "door", "wall"]},
)
TABLE = b"min_x,min_y,min_z,max_x,max_y,max_z,id\n0,0,0,1,1,1,alone\n"
ALONG = {"origin": [-5.0, 0.5, 0.5], "direction": [1.0, 0.0, 0.0]}


@pytest.fixture
def viewer():
    with rb.view(ROW, port=0) as made:
        yield made


@pytest.fixture
def page(browser, viewer):
    made = Page(browser, viewer.url, WIDE)
    yield made
    assert not made.foreign()
    made.close()


def choose_file(page: Page, name: str, content: bytes) -> None:
    page.tab.locator("[data-test=file]").set_input_files(
        {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    )


def messages(page: Page) -> list[str]:
    """Return the texts of all messages that are visible."""
    notices = page.tab.locator("[role=alert]:visible, [data-test=notice]:visible")
    return list(dict.fromkeys(notices.all_inner_texts()))


BAD_FILES = {
    "bad.csv": b"\xff\xfe",
    "x.exe": b"MZ",
    "cut.npz": b"PK\3\4",
    "<img src=x onerror=alert(1)>.csv": b"nothing",
}


def test_a_file_that_is_none_is_one_message(page):
    for name, content in BAD_FILES.items():
        choose_file(page, name, content)
        # Not the progress of the upload, which has the name, too.
        page.until("document.querySelector('[data-test=notice].error')?.innerText.includes(given)", name)
        assert len(messages(page)) == 1
        assert page.tab.locator("img").count() == 0, "a name is no markup"
        assert page.cast(ALONG) == [0, 1, 2]
        page.press("notice-close")
        assert not messages(page)
    choose_file(page, "one.csv", TABLE)
    page.until("raybox.actions.store.model.objects === 1")
    assert page.run("raybox.actions.store.model.ids") == ["alone"]
    assert page.find("title").inner_text() == "one.csv"


def test_an_abandoned_upload_is_harmless(viewer, page):
    with Client(viewer) as other:
        other.upload("large.csv", TABLE * 1000, parts=10, sent=2)
    choose_file(page, "one.csv", TABLE)
    page.until("raybox.actions.store.model.objects === 1")
    assert page.cast(ALONG) == [0]
    page.tab.evaluate(
        """() => {
            const file = new File([new Uint8Array(40 << 20)], "large.npz");
            window.upload = raybox.actions.caster.upload(file, () => {}).catch(() => {});
        }"""
    )
    page.open(viewer.url)  # while the file is sent
    assert page.run("raybox.actions.store.model.objects") == 3
    assert page.cast(ALONG) == [0, 1, 2]
    assert not messages(page)


def test_a_server_that_stops_and_starts_again(browser):
    with rb.view(ROW, port=0) as first:
        page = Page(browser, first.url)
        page.press("tree-hide")
        page.until("raybox.actions.store.visibility.shownCount === 1")
        port = int(first.url.rpartition(":")[2])
    page.notice("server")
    assert len(messages(page)) == 1
    camera = page.run("raybox.stage.camera()")
    page.find("view").select_option("top")
    page.settled()
    assert page.run("raybox.stage.camera()") != camera, "the page still turns"
    page.press("show-all")
    page.press("tree-hide")
    assert len(messages(page)) == 1
    with rb.view(ROW, port=port) as again:
        assert again.url.endswith(f":{port}")
        page.notice("Connected again")
        assert page.cast(ALONG) == [1]
        assert page.cast({"origin": [0.5, 0.5, 5.0], "direction": [0.0, 0.0, -1.0]}) == []
        page.close()


@pytest.mark.parametrize(
    ("name", "shows"), [("localhost", True), ("127.0.0.1", True), ("site.localhost", False)]
)
def test_only_pages_of_this_machine_may_frame_the_page(browser, viewer, tmp_path, name, shows):
    """A notebook is served at another port; a foreign site could steer the clicks of the page below it."""
    (tmp_path / "frame.html").write_text(f'<iframe src="{viewer.url}"></iframe>')
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as other, browser.new_context() as context:
        Thread(target=other.serve_forever, daemon=True).start()
        tab = context.new_page()
        refusals = []
        tab.on("console", lambda message: refusals.append(message.text))
        tab.goto(f"http://{name}:{other.server_port}/frame.html")
        assert tab.frames[1].evaluate("location.protocol") == ("http:" if shows else "chrome-error:")
        assert any("frame-ancestors" in text for text in refusals) == (not shows)
        other.shutdown()
