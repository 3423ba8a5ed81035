"""The tables of docs/files/meshes.md say what readers do with what they do not know: they list the same."""

import re
from pathlib import Path

import pytest

from raybox.io.formats import glb, obj, ply

PAGE = (Path(__file__).parents[2] / "docs" / "files" / "meshes.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (.*) \| (.*) \|$", re.MULTILINE)


def rows(title):
    """Return the table of a format: what raybox does with each word in code."""
    _, _, rest = PAGE.partition(f"| in `{title}` | |\n")
    table, _, _ = rest.partition("\n\n")
    found = {}
    for what, outcome in ROW.findall(table):
        for code in re.findall(r"`([^`]+)`", what):
            found |= dict.fromkeys(code.split(), outcome)
    return found


def test_the_table_of_obj():
    listed = rows(".obj")
    others = {"vw", "vc", "t"}
    assert {word for word in listed if listed[word] == "ignored"} == obj.PASSED
    assert {word for word in listed if listed[word] == "counted"} == set(obj.COUNTED)
    assert {word for word in listed if listed[word] == "refused"} == set(obj.REFUSED)
    assert {word for word in listed if listed[word] == "counted by its word"} == others
    assert not others & {*obj.PASSED, *obj.COUNTED, *obj.REFUSED, *obj.NAMES, *obj.FACES, "v"}


def test_the_table_of_gltf():
    listed = rows(".glb .gltf")
    assert {word for word in listed if listed[word] == "read"} == glb.READ
    looks = {word.removesuffix("…") for word in listed if word.endswith("…")}
    assert looks == set(glb.LOOKS)
    refused = {word for word in listed if listed[word] == "refused"}
    assert refused == glb.REFUSED | glb.COMPRESSED
    assert not glb.PASSED & (glb.READ | glb.REFUSED | glb.COMPRESSED)


@pytest.mark.parametrize("kind", ["int64", "uint64", "float16"])
def test_the_table_of_ply(kind):
    assert rows(".ply")[kind] == "ignored"
    assert kind in ply.TYPES
