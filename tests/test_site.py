"""The site: built by the README's command without a warning; complete, and without foreign resources."""

import inspect
import os
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import pytest

import raybox as rb
from needs import package

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SOURCES = sorted(path.relative_to(DOCS) for ending in ("md", "rst") for path in DOCS.rglob(f"*.{ending}"))
LOADS = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
LOADS |= {("object", "data"), ("embed", "src"), ("video", "src"), ("audio", "src"), ("image", "href")}
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Page(NamedTuple):
    ids: set[str]
    links: list[str]
    loads: list[str]
    text: list[str]


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.page = Page(set(), [], [], [])

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.page.ids.update(values[name] for name in ("id", "name") if values.get(name))
        for name, value in values.items():
            if (tag, name) in LOADS and value:
                self.page.loads.append(value)
        if tag in ("a", "form"):
            self.page.links.append(values.get("href") or values.get("action") or "")
        if "srcset" in values:
            self.page.loads.extend(part.split()[0] for part in values["srcset"].split(","))

    def handle_data(self, data):
        self.page.text.append(data)


def read(path):
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader.page


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site with the README's command; return its pages and folder."""
    package("sphinx")
    (command,) = re.findall(r"`sphinx-build (.*) docs site`", (ROOT / "README.md").read_text())
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", *shlex.split(command), "docs", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    pages = [path.relative_to(folder) for path in sorted(folder.rglob("*.html"))]
    return {page: read(folder / page) for page in pages if page.parts[0] != "_static"}, folder


def inside(page, link):
    """Return the file and fragment of a page's link; None for a link to another site."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    place = os.path.normpath(page.parent / unquote(parts.path)) if parts.path else page
    return Path(place), unquote(parts.fragment)


def test_the_page_of_the_demo_is_a_live_example(site):
    pages, folder = site
    assert "_static/demo.html" in pages[Path("index.html")].links
    page = (folder / "_static" / "demo.html").read_bytes()
    assert page.rstrip().endswith(b"<!-- raybox demo -->")
    assert len(page) > 500_000


def test_every_source_is_a_page_linked_from_the_start(site):
    pages, _ = site
    visited, todo = set(), [Path("index.html")]
    while todo:
        page = todo.pop()
        if page not in pages or page in visited:
            continue
        visited.add(page)
        todo += [found[0] for link in pages[page].links if (found := inside(page, link))]
    missing = {source.with_suffix(".html") for source in SOURCES} - visited
    assert not missing
    assert len(SOURCES) > 20


def test_every_link_and_picture_resolves(site):
    pages, folder = site
    broken, checked = [], 0
    for page, content in pages.items():
        for link in content.links + content.loads:
            found = inside(page, link)
            if found is None:
                continue
            target, fragment = found
            checked += 1
            if not (folder / target).is_file() and not (folder / target / "index.html").is_file():
                broken.append(f"{page}: {link}")
            elif fragment and target in pages and fragment not in pages[target].ids:
                broken.append(f"{page}: {link}: no such fragment")
    assert not broken
    assert checked > 1000


def test_no_resource_is_loaded_from_another_site(site):
    pages, folder = site
    foreign = [
        f"{page}: {load}"
        for page, content in pages.items()
        for load in content.loads
        if not load.startswith("data:") and inside(page, load) is None
    ]
    for path in [*folder.rglob("*.css"), *folder.rglob("*.html")]:
        for load in re.findall(r"(?:url\(|@import)\s*[\"']?([^\"')\s]+)", path.read_text(encoding="utf-8")):
            if re.match(r"(\w+:)?//", load):
                foreign.append(f"{path.name}: {load}")
    assert not foreign
    assert sum(len(content.loads) for content in pages.values()) > 100


def test_every_public_name_is_in_the_api(site):
    pages, _ = site
    documented = set().union(*(content.ids for page, content in pages.items() if page.parts[0] == "api"))
    names = [name for name in rb.__all__ if name not in ("__version__", "cluster", "stream", "textbook")]
    inside = [f"textbook.{name}" for name in rb.textbook.__all__]
    inside += ["cast", "casting.cast_blocks", "casting.finish", "casting.Summary"]
    wanted = {f"raybox.{name}" for name in [*names, *inside]}
    wanted |= {
        f"raybox.{name}.{member}"
        for name in names
        if inspect.isclass(getattr(rb, name)) and not issubclass(getattr(rb, name), Exception)
        for base in getattr(rb, name).__mro__  # queries are methods of bases
        if base.__module__.startswith("raybox")
        for member in vars(base)
        if not member.startswith("_")
    }
    assert wanted - documented == set()
    assert len(wanted) > 70


def test_the_textbook_draws_the_five_rays_and_the_slabs(site):
    pages, _ = site
    drawn = {Path(load).stem for load in pages[Path("textbook.html")].loads}
    assert drawn >= {"five_rays", "slabs_hit", "slabs_miss", "slabs_3d", "slabs_inside", "slabs_corner"}


def test_every_example_shows_its_code(site):
    pages, _ = site
    shown = "".join(pages[Path("examples.html")].text)
    for script in (ROOT / "examples").glob("*.py"):
        if script.stem != "common":
            assert script.read_text().strip() in shown, script.name


def test_every_block_of_python_is_run():
    """Doctest runs blocks with prompts; test_plot runs those that save a first picture."""
    blocks = 0
    for source in SOURCES:
        for language, code in FENCE.findall((DOCS / source).read_text()):
            if language in ("python", "py", "pycon"):
                blocks += 1
                run = ">>> " in code or (source == Path("index.md") and "savefig" in code)
                assert run, f"{source}:\n{code}"
    assert blocks > 40


def test_the_site_is_not_in_the_repository():
    assert "/site/" in (ROOT / ".gitignore").read_text().split()
