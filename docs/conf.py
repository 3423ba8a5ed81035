"""Sphinx: how the site in docs/ is built, with ``sphinx-build -W -b html docs site``.

Nothing is fetched, neither by the build nor by the pages.
"""

from pathlib import Path
from typing import Any

from docutils import nodes

import raybox
from raybox.cli.demo import live_page

project = "raybox"
author = "The raybox authors"
copyright = f"2026, {author}"
release = version = raybox.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_parser", "sphinx_copybutton"]
exclude_patterns = ["_build", "*.ipynb"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
default_role = "py:obj"

myst_heading_anchors = 3

autodoc_member_order = "bysource"
# Types stand in the docstrings' sections, with shapes.
autodoc_typehints = "none"
autosummary_generate = False
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = "raybox"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["raybox.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "logo": {"text": f"raybox {release}", "alt_text": "raybox"},
    "header_links_before_dropdown": 8,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
    "back_to_top_button": False,
}
# Pages without others below them need no list of pages.
alone = ["index", "tutorial"]
html_sidebars: dict[str, list[str]] = {page: [] for page in alone}


def setup(app: Any) -> None:
    """Join the building."""
    app.connect("doctree-read", trim_code)
    app.connect("build-finished", write_live_page)


def write_live_page(app: Any, error: Exception | None) -> None:
    """Write the page of `raybox demo` into the site, where a click on the building is a ray."""
    if error is None and app.builder.name == "html":
        Path(app.outdir, "_static", "demo.html").write_bytes(live_page())


def trim_code(app: Any, doctree: nodes.document) -> None:
    """Drop the empty last line of code blocks, which doctest needs and readers do not."""
    for block in doctree.findall(nodes.literal_block):
        if block.rawsource == block.astext():
            block.rawsource = block.rawsource.rstrip("\n")
            block[:] = [nodes.Text(block.rawsource)]
