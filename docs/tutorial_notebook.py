"""Write docs/tutorial.ipynb and the pictures of docs/tutorial.md.

Run ``python docs/tutorial_notebook.py`` after every change of the page.
The tests run the page and the notebook, and compare the notebook with the page.
"""

import doctest
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

DOCS = Path(__file__).parent
PAGE, NOTEBOOK = DOCS / "tutorial.md", DOCS / "tutorial.ipynb"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(r"^!\[[^\]]*\]\((images/tutorial/[^)]*)\)\n", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:)[^)]*\)")
_DOWNLOAD = re.compile(r"^\{download\}.*\n", re.MULTILINE)


class Cell(NamedTuple):
    """A cell of the notebook: its text, whether it is code, and what the page shows as its output."""

    text: str
    is_code: bool = False
    output: str = ""


def cells(page: str) -> list[Cell]:
    """Return the page as cells; a cell of code ends where the page shows output."""
    made, end = [], 0
    for block in _BLOCK.finditer(page):
        if block[1] == "python":
            made += [_prose(page[end : block.start()]), *_code(block[2])]
            end = block.end()
    return [cell for cell in (*made, _prose(page[end:])) if cell.text]


def _prose(text: str) -> Cell:
    """Return Markdown without what leads out of the notebook: pictures, downloads, links to other pages."""
    return Cell(_LINK.sub(r"\1", _DOWNLOAD.sub("", _PICTURE.sub("", text))).strip())


def _code(block: str) -> list[Cell]:
    made, lines = [], ""
    for example in doctest.DocTestParser().get_examples(block):
        lines += example.source
        if example.want:
            made.append(Cell(lines.rstrip("\n"), is_code=True, output=example.want))
            lines = ""
    return [*made, Cell(lines.rstrip("\n"), is_code=True)]


def notebook(page: str) -> dict[str, Any]:
    """Return the notebook, in version 4.5 of the format, without outputs."""
    made = []
    for number, cell in enumerate(cells(page)):
        about: dict[str, Any] = {"id": f"cell-{number}", "metadata": {}}
        about |= {"source": cell.text.splitlines(keepends=True)}
        code = {"cell_type": "code", "execution_count": None, "outputs": []}
        made.append(about | (code if cell.is_code else {"cell_type": "markdown"}))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def text_of(page: str) -> str:
    """Return the notebook's file."""
    return json.dumps(notebook(page), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def run(page: str, folder: Path) -> dict[str, Any]:
    """Run the code of the page, save the figure before each picture in the folder, and return all names."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from PIL import Image

    names: dict[str, Any] = {}
    texts = _PICTURE.split(page)
    for text, picture in zip(texts[::2], [*texts[1::2], None], strict=True):
        for cell in cells(text):
            if cell.is_code:
                exec(cell.text, names)
        if picture:
            path = folder / picture
            path.parent.mkdir(parents=True, exist_ok=True)
            plt.gcf().savefig(path, dpi=200)
            plt.close("all")
            with Image.open(path) as drawn:
                colours = drawn.convert(
                    "RGB"
                )  # of 256 colours, a picture is a third as large, and looks the same
            colours.quantize(256, method=Image.Quantize.MAXCOVERAGE, kmeans=5).save(path, optimize=True)
    return names


if __name__ == "__main__":
    NOTEBOOK.write_text(text_of(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    run(PAGE.read_text(encoding="utf-8"), DOCS)
