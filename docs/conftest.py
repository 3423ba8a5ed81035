"""Files that pages load by a name of their own, for their doctests."""

from pathlib import Path

import pytest

collect_ignore = ["conftest.py"]  # --doctest-modules would import it under the name of tests/conftest.py
DATA = Path(__file__).parents[2] / "shared" / "data"
FILES = {
    "house.ifc": DATA / "duplex_ifc" / "duplex_a_20110907.ifc",
    "city.city.json": DATA / "delft_cityjson" / "delft.city.json",
}


@pytest.fixture(autouse=True)
def files_of_pages(request, tmp_path, monkeypatch):
    """Change to a folder with the files that a page names, or skip the page without them."""
    if request.path.suffix != ".md":
        return
    text = request.path.read_text(encoding="utf-8")
    named = [name for name in FILES if f'rb.load("{name}"' in text]
    if not named:
        return
    for name in named:
        if not FILES[name].exists():
            pytest.skip(f"{name} is not here: {FILES[name]}")
        (tmp_path / name).symlink_to(FILES[name])
    monkeypatch.chdir(tmp_path)
