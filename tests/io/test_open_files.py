"""Open files are read as files with a path are; their errors give their own names."""

import gzip
import io
import zipfile

import numpy as np
import pytest

import raybox as rb
from file_samples import samples
from raybox.errors import SkippedWarning
from raybox.io.formats import read

TEXTUAL = [name for name in samples() if not name.endswith((".ifc", ".las", ".laz"))]


@pytest.mark.parametrize("name", TEXTUAL)
def test_every_format_is_read_from_memory_and_compressed(tmp_path, name):
    """With a format, in any spelling, or by the file's own name."""
    content, how = samples()[name]
    (tmp_path / name).write_bytes(content)
    wanted, suffix = rb.load(tmp_path / name, **how), name[name.rindex(".") :]
    with (tmp_path / name).open("rb") as file:
        loaded = [rb.load(file, **how)]
    bare, packed = name.removesuffix(suffix), gzip.compress(content, mtime=0)
    forms = [(content, name, suffix), (content, bare, suffix[1:].upper())]
    if suffix != ".gltf":  # its buffers are in other files
        forms += [(packed, f"{name}.gz", None), (packed, name, f"{suffix}.gz")]
        for end in (".gz", ".GZ"):
            (tmp_path / f"{name}{end}").write_bytes(packed)
            loaded.append(rb.load(tmp_path / f"{name}{end}", **how))
    for given, own, form in forms:
        file = io.BytesIO(given)
        file.name = own
        loaded.append(rb.load(file, format=form, **how))
    assert all(found.equals(wanted) for found in loaded)
    assert len(rb.load(io.BytesIO(content), format=suffix, **how)) == len(wanted)


def test_members_of_an_archive_have_names_and_positions_count(tmp_path):
    """A file is read from where it stands; it stays open."""
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("inner/boxes.csv", "minx,miny,maxx,maxy\n0,0,1,1\n")
    with zipfile.ZipFile(tmp_path / "all.zip") as archive, archive.open("inner/boxes.csv") as file:
        assert len(rb.load(file)) == 1
        assert not file.closed
    file = io.BytesIO(b"junk" + b"minx,miny,maxx,maxy\n0,0,1,1\n")
    file.seek(4)
    assert read(file, format=".csv").geometry.upper.tolist() == [[1, 1]]


def test_errors_and_warnings_give_the_name_of_the_file(tmp_path):
    file = io.BytesIO(b"minx,miny,maxx,maxy\n0,0,1,x\n")
    with pytest.raises(rb.FileFormatError, match=r"^file, line 2, column maxy: 'x' is not a number"):
        rb.load(file, format=".csv")
    file = io.BytesIO(b"minx,miny,maxx,maxy\n0,0,1,x\n")
    file.name = "mine.csv"
    with pytest.raises(rb.FileFormatError, match=r"^mine.csv, line 2, column maxy"):
        rb.load(file)
    text = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\nf 1 2\n"
    with pytest.warns(SkippedWarning, match=r"^file: left out: .* \(1\)") as caught:
        rb.load(io.BytesIO(text), format="obj")
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("source", "form", "text"),
    [
        (io.BytesIO(b"x"), None, "an open file needs format, one of .npz .npy .csv"),
        (io.BytesIO(b"x"), ".dxf", "got '.dxf' for 'file'"),
        (io.BytesIO(b"x"), ".zarr", "got '.zarr' for 'file'"),
        (io.StringIO("x"), ".csv", "an open file must be binary: open"),
        (7, None, "path must be a path or an open file; got int"),
        ("a.csv", ".csv", "format is for open files: the extension of a path gives its format"),
    ],
)
def test_wrong_sources_are_refused(source, form, text):
    with pytest.raises(rb.InvalidInput, match=text):
        rb.load(source, format=form)


def test_nothing_stays_on_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    content = io.BytesIO()
    np.save(content, np.zeros((2, 3)))
    for data in (content.getvalue(), b"junk"):
        try:
            rb.load(io.BytesIO(data), format=".npy", origin=(0, 0, 0))
        except rb.FileFormatError:
            assert data == b"junk"
        assert not list(tmp_path.iterdir())
