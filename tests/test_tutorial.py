"""The tutorial: its page is run by doctest, its notebook by Jupyter, its commands and pictures here."""

import importlib.util
import re
import shlex
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from click.testing import CliRunner

from needs import package
from raybox.cli import main

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "tutorial.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def maker():
    """Return the module that makes the notebook."""
    spec = importlib.util.spec_from_file_location("tutorial_notebook", DOCS / "tutorial_notebook.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shown(outputs):
    """Return the text that a notebook shows below a cell, without pictures and the bar of compilations."""
    texts = [
        output["text"] if output.output_type == "stream" else output["data"]["text/plain"]
        for output in outputs
        if not is_bar(output) and "image/png" not in output.get("data", {})
    ]
    return "".join(texts).strip()


def is_bar(output):
    return output.get("name") == "stderr" and "compiling kernels" in output["text"]


def test_the_notebook_is_made_from_the_page(maker):
    package("nbclient")
    import nbformat

    stored = (DOCS / "tutorial.ipynb").read_text(encoding="utf-8")
    assert stored == maker.text_of(PAGE), "run: python docs/tutorial_notebook.py"
    nbformat.validate(nbformat.reads(stored, as_version=4))
    code = "".join(cell.text for cell in maker.cells(PAGE) if cell.is_code)
    assert [line[4:] for line in re.findall(r"^(?:>>>|\.\.\.) .*", PAGE, re.MULTILINE)] == [
        line for cell in maker.cells(PAGE) if cell.is_code for line in cell.text.splitlines()
    ]
    assert code.count("scene.") > 4


def test_the_notebook_shows_what_the_page_shows(maker, tmp_path):
    client = package("nbclient")
    import nbformat

    notebook = nbformat.read(DOCS / "tutorial.ipynb", as_version=4)
    client.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    expected = [cell for cell in maker.cells(PAGE) if cell.is_code]
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    compared = 0
    for cell, wanted in zip(cells, expected, strict=True):
        assert shown(cell.outputs) == wanted.output.strip()
        compared += bool(wanted.output)
    assert compared > 8
    drawn = [output for cell in cells for output in cell.outputs if "image/png" in output.get("data", {})]
    assert len(drawn) == PAGE.count("](images/tutorial/")


@pytest.mark.long
def test_the_page_makes_its_pictures_and_its_commands_run(maker, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = maker.run(PAGE.replace("tempfile.mkdtemp()", "'.'"), tmp_path)
    pictures = sorted(Path("images/tutorial").iterdir())
    assert [str(path) for path in pictures] == sorted(re.findall(r"\((images/tutorial/.*?)\)", PAGE))
    for path in pictures:
        stored, now = plt.imread(DOCS / path), plt.imread(path)
        assert abs(np.subtract(stored.shape, now.shape)).max() < 10  # fonts differ
        assert len(np.unique(now.reshape(-1, now.shape[-1]), axis=0)) > 50
    (block,) = re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for command in block.splitlines():
        run = CliRunner().invoke(main, shlex.split(command)[1:], catch_exceptions=False)
        assert run.exit_code == 0, run.output
    assert names["hit"].ids.item() in run.stdout
    assert Path("again.csv").read_text() == Path("sweep.csv").read_text()
    assert Path("again.csv").read_text().count("\n") == 1 + names["lidar"].shape[0] * names["lidar"].shape[1]
    assert "<html" in Path("house.html").read_text()[:2000].lower()
