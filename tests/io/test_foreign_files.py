"""Files that are none of raybox's are named, by their first bytes or their extension, with a way out."""

import gzip
import io
import zipfile

import pytest

from file_samples import sample, samples, stl
from raybox.io.formats import FORMATS, read
from raybox.io.formats.foreign_files import EXTENSIONS, FIRST_BYTES
from refusals import refused


def zipped():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.obj", "v 0 0 0\n")
    return file.getvalue()


STARTS = {
    b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n": "is a pointer of Git LFS, not",
    b"<!DOCTYPE html>\n<html></html>": "is a web page, not",
    b"\n\n  <!doctype HTML><p>": "is a web page, not",
    b"<html lang='en'>": "is a web page, not",
    b"\xef\xbb\xbf<!DOCTYPE html>": "is a web page, not",
    b"<?xml version='1.0'?><COLLADA/>": "is XML, not",
    gzip.compress(b"v 0 0 0\n", mtime=0): "is compressed by gzip, not",
    zipped(): "is a zip archive, not",
    b"BZh91AY&SY": "is compressed, not",
    b"\x28\xb5\x2f\xfd\x00": "is compressed, not",
    b"Kaydara FBX Binary  \0": "is FBX, not",
    b"%PDF-1.7": "is PDF, not",
    b"\x89PNG\r\n\x1a\n": "is an image, not",
}
FILES = [name for name, form in FORMATS.items() if not form.is_folder]


@pytest.mark.parametrize("ending", FILES)
@pytest.mark.parametrize(("content", "expected"), STARTS.items())
def test_first_bytes_that_are_none_of_ours(put, ending, content, expected):
    text = refused(put(f"a{ending}", content), origin=None)
    if ending == ".npz" and content[:2] == b"PK":  # numpy writes zip archives
        assert expected not in text
    else:
        assert f": {expected} {FORMATS[ending].name}; " in text


def test_every_start_is_tested():
    import re

    for start in FIRST_BYTES:
        assert any(re.match(start, content.removeprefix(b"\xef\xbb\xbf"), re.I) for content in STARTS), start


def test_the_header_of_a_binary_stl_may_begin_with_anything(put):
    whole = stl(text=False)
    for start in (*STARTS, b"ply\n", b"PAR1", b"glTF", b"{"):
        head = start.removeprefix(b"\xef\xbb\xbf")[:80].ljust(80, b"\0")
        assert len(read(put("a.stl", head + whole[80:])).geometry) == 4
    assert "is a web page" in refused(put("a.stl", b"<!DOCTYPE html>".ljust(80) + whole[80:-1]))


@pytest.mark.parametrize(
    "name", [n for n in samples() if FORMATS[n[n.rindex(".") :]].begins(samples()[n][0])]
)
def test_a_file_of_another_of_our_formats_is_named(put, name):
    content, own = sample(name)[0], name[name.rindex(".") :]
    for ending in FILES:
        form, others = FORMATS[ending], [e for e in FILES if FORMATS[e].begins(content)]
        if form.begins(content) or (ending == ".stl" and own == ".stl"):
            continue
        text = refused(put(f"a{ending}", content), origin=None)
        assert (
            f"is not {form.name} but looks like {' or '.join(others)}; rename it to end in {others[0]}"
            in text
        )


def test_empty_files_and_text_in_utf16(put):
    for ending in FILES:
        assert "is empty; copy or download it again" in refused(put(f"a{ending}", b""))
        assert "is empty" in refused(put(f"a{ending}", b"\xef\xbb\xbf"))
        if FORMATS[ending].magic:
            marked = "ply\nformat ascii 1.0\n".encode("utf-16")
            assert "is text in UTF-16; save it as text in UTF-8" in refused(put(f"a{ending}", marked))


NAMED = (
    ".fbx .3mf .dae .e57 .usd .usdz .shp .tif .bt .step .stp .igs .blend .3ds .off .wrl .x3d .pts .ptx .gpkg"
)
NAMED += " .geojson .dxf .dwg .rvt .skp .zip"


@pytest.mark.parametrize("ending", [*NAMED.split(), *EXTENSIONS])
def test_other_extensions_have_a_way_out(put, ending):
    for name in (f"a{ending}", f"a.b{ending.upper()}"):
        path = put(name, b"\0")
        text = refused(path)
        assert text == f": unsupported file extension {path.suffix!r}; {EXTENSIONS[ending]}"
    assert 10 < len(EXTENSIONS[ending]) < 100


def test_no_reader_has_an_extension_of_the_table(put):
    assert not EXTENSIONS.keys() & FORMATS.keys()
    assert "unsupported file extension '.xyzzy'; supported: .npz" in refused(put("a.xyzzy", b"0"))
    assert "has no file extension; supported: .npz" in refused(put("house", b"0"))
