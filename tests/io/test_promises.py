"""What files promise, and what raybox wrote itself, is compared with what is there."""

import errno
import os

import numpy as np
import pytest

import raybox as rb
from commands import raybox
from file_samples import pcd, samples
from raybox.casting import parquet_footer
from raybox.casting.caster import BlockCaster
from raybox.casting.part import PartFile
from streaming import BOXES, IDS, RAYS, SCENE, interrupted, pq
from streaming import content as bytes_of
from streaming import put as put_rays

HEAD = "origin_x,origin_y,direction_x,direction_y"
FLAT = rb.Scene(rb.Boxes([[1.0, -1.0]], [[2.0, 1.0]]))


def refusals(path, scene=SCENE):
    """Return the errors of both readers for a file that both must refuse."""
    texts = []
    for read in (
        lambda: rb.load(path, kind="rays"),
        lambda: rb.stream.cast(scene, path, path.with_name("out.npy")),
    ):
        with pytest.raises(rb.FileFormatError) as caught:
            read()
        texts.append(str(caught.value))
    assert not list(path.parent.glob("out*"))
    return texts


# Counts


@pytest.mark.parametrize("count", [0, 40])
def test_a_row_group_whose_count_is_damaged(tmp_path, count):
    path = tmp_path / "rays.parquet"
    rb.save(path, RAYS)
    pq.write_table(pq.read_table(path), path, row_group_size=40)
    footer = parquet_footer.footer_in(path.read_bytes())
    body = path.read_bytes()[len(parquet_footer.MAGIC) : -len(footer) - 8]
    fields = parquet_footer._parse(footer)
    fields[4][1].items[2][3] = parquet_footer.I64, count
    tail = parquet_footer.with_tail(parquet_footer._serialise(fields))
    path.write_bytes(parquet_footer.MAGIC + body + tail)
    for text in refusals(path):
        assert f"footer: promises 103 rows, its row groups {80 + count}" in text


@pytest.mark.parametrize("name", ["t_min", "t_max", "id"])
def test_an_optional_column_whose_name_is_damaged(tmp_path, name):
    path, content = tmp_path / "table.parquet", BOXES if name == "id" else RAYS
    rb.save(path, content, **({"ids": IDS} if name == "id" else {}))
    data, plain = path.read_bytes(), 0
    at = data.index(name.encode(), data.index(b"min_x" if name == "id" else b"origin_x"))
    for bit in range(8 * len(name)):
        changed = bytearray(data)
        changed[at + bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        if name == "id":
            with pytest.raises(rb.FileFormatError) as caught:
                rb.load(path)
            texts = [str(caught.value)]
        else:
            texts = refusals(path)
        plain += f"footer: its row groups hold a column {name}, its schema does not; copy" in texts[-1]
    assert plain >= 6 * len(name)  # others are no UTF-8


def test_other_columns_whose_names_are_nearly_those_of_rays(tmp_path):
    path = tmp_path / "rays.parquet"
    rb.save(path, RAYS)
    table = pq.read_table(path).rename_columns({"t_min": "t_mix", "t_max": "tmax"})
    for name in ("t_min", "t_max"):  # as the smallest text of a column, which the footer holds
        table = table.append_column(f"after {name}", [[name] + ["z"] * (len(RAYS) - 1)])
    pq.write_table(table.append_column("list", [[[1.0]] * len(RAYS)]), path)
    assert all(b"\x18\x05" + name in path.read_bytes() for name in (b"t_min", b"t_max"))
    assert (rb.load(path).t_min == 0).all()
    assert np.isinf(rb.load(path).t_max).all()
    assert rb.stream.cast(SCENE, path, tmp_path / "out.npy").rays == len(RAYS)


@pytest.mark.parametrize("shape", [(-103, 6), (103, -6), (-103, -6), (102, 6), (104, 6)])
def test_an_npy_header_with_another_count(tmp_path, shape):
    path = tmp_path / "rays.npy"
    with path.open("wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.write(np.column_stack([RAYS.origins, RAYS.directions]).tobytes())
    for text in refusals(path):
        assert "has a damaged header" in text or "bytes of numbers announced" in text


ENDED = [name for name in samples() if name.endswith((".ply", ".pcd", ".vox"))]
EXACT_SIZE = ["binary.stl", "rays.npy", "boxes.npy"]
FOLLOW = r"follow(s)? the end that the header announces; |has 4\d points, but its header announces 40; "


def cast_of(path, options):
    """Return the error that `cast` raises for a file of points, or its output."""
    out = path.with_name("out.npy")
    try:
        rb.stream.cast(SCENE, path, out, origin=options["origin"])
    except rb.FileFormatError as error:
        return str(error)
    return out.read_bytes()


def arrays_of(path, options):
    """Return the arrays of a file, as bytes."""
    found = rb.load(path, **options)
    names = ("lower", "upper", "vertices", "faces", "origins", "directions")
    return {name: getattr(found, name).tobytes() for name in names if hasattr(found, name)}


@pytest.mark.parametrize("name", ENDED)
def test_bytes_after_the_end(put, name):
    content, options = samples()[name]
    path, is_points = put(name, content), "origin" in options
    wanted, output = arrays_of(path, options), is_points and cast_of(path, options)
    assert wanted
    is_padded = name in ("binary.pcd", "binary_compressed.pcd")  # by PCL, with zeros
    for rest in (b"\n", b"\r\n \t\n", *[bytes(5000)] * is_padded):
        put(name, content + rest)
        assert arrays_of(path, options) == wanted
        assert not is_points or cast_of(path, options) == output
    for rest in (b"7", b"3 0 1 2\n", b"\0\0\1", content[-40:], *[b"\0"] * (not is_padded)):
        put(name, content + b"\n" + rest)
        with pytest.raises(rb.FileFormatError, match=FOLLOW) as caught:
            rb.load(path, **options)
        assert not is_points or cast_of(path, options) == str(caught.value)


def test_no_points_and_bytes_after_them(put):
    header, _, _ = pcd("binary").replace(b"WIDTH 40", b"WIDTH 0").partition(b"DATA binary\n")
    header = header.replace(b"POINTS 40", b"POINTS 0") + b"DATA binary\n"
    assert len(rb.load(put("none.pcd", header + b"\n"), origin=(0, 0, 0))) == 0
    with pytest.raises(rb.FileFormatError, match=FOLLOW):
        rb.load(put("none.pcd", header + bytes(9) + b"1"), origin=(0, 0, 0))


@pytest.mark.parametrize("name", EXACT_SIZE)
def test_bytes_after_a_file_of_exact_size(put, name):
    content, options = samples()[name]
    for rest in (content[-50:],) if name.endswith(".stl") else (b"\n", b"\0", content[-50:]):
        path = put(name, content + rest)
        with pytest.raises(rb.FileFormatError, match=rf"is too long: |{FOLLOW}"):
            rb.load(path, **options)
        if options["kind"] == "rays":
            refusals(path)


def test_an_archive_with_a_damaged_name(tmp_path):
    """Under another name, t_min would be ignored."""
    path = put_rays(tmp_path / "rays.npz", RAYS)
    data = path.read_bytes()
    at = data.rindex(b"t_min.npy")
    path.write_bytes(data[:at] + b"t_mim.npy" + data[at + 9 :])
    for text in refusals(path):
        assert "its archive is damaged or cut off; copy or save it again" in text


# CSV


@pytest.mark.parametrize("blanks", ["  ", "\t", " \r", ",,,"])
def test_lines_of_blanks(tmp_path, blanks):
    path = tmp_path / "rays.csv"
    for name, text in (("inside", "0,0,1,0\n\n{}\n0,0,1,0\n"), ("last", "0,0,1,0\n\n{}")):
        path.write_text(f"{HEAD}\n" + text.format(blanks), newline="")
        for error in refusals(path, FLAT):
            assert ", line 4" in error, name
            assert "holds blanks only; remove the line" in error or "a number is missing" in error


@pytest.mark.long
def test_wide_tables_take_linear_time(tmp_path):
    """In quadratic time this would take a quarter of an hour."""
    names = ",".join(f"column {k}" for k in range(300_000))
    for content, head in ((BOXES, "min_x"), (RAYS, "origin_x")):
        path = tmp_path / f"{head}.csv"
        rb.save(path, content)
        first, row, *_ = path.read_text().splitlines()
        path.write_text(f"{first},{names}\n{row}{',7' * 300_000}\n")
        assert len(rb.load(path)) == 1


# What raybox wrote itself


def test_a_part_with_another_byte_is_cast_again(tmp_path, monkeypatch):
    rays, out = interrupted(tmp_path, monkeypatch)
    path = tmp_path / "out.npy.raybox" / "parts" / "part-000000001.rows"
    data = bytearray(path.read_bytes())
    data[300] ^= 1
    path.write_bytes(data)
    rb.stream.cast(SCENE, rays, tmp_path / "whole.npy", chunk=20)
    assert rb.stream.cast(SCENE, rays, out, chunk=20).resumed == 40
    assert out.read_bytes() == (tmp_path / "whole.npy").read_bytes()


# Outputs that are inputs


def named(kind, path):
    """Return another name of a file: by a link, by another spelling, or the same."""
    if kind == "same":
        return path
    if kind == "spelling":
        return path.parent / "." / ".." / path.parent.name / path.name
    other = path.with_name(path.name.upper() if kind == "case" else f"other{path.suffix}")
    (os.symlink if kind == "symbolic link" else os.link)(path, other)  # "case": as if the system ignored it
    return other


@pytest.mark.parametrize("kind", ["same", "spelling", "hard link", "symbolic link", "case"])
@pytest.mark.parametrize("of", ["rays", "boxes", "weights", "values"])
def test_an_output_that_is_an_input(tmp_path, kind, of):
    """By the command, whatever --force says, and where the array is mapped."""
    boxes, rays = put_rays(tmp_path / "boxes.npz", BOXES), put_rays(tmp_path / "rays.npy", RAYS)
    np.save(array := tmp_path / "array.npy", np.arange(103 if of == "weights" else 40) + 0.5)
    path = {"rays": rays, "boxes": boxes}.get(of, array)
    before, out = path.read_bytes(), named(kind, path)
    query = {"weights": "deposit", "values": "integrate"}.get(of, "nearest")
    more = [f"--{of}", array] if path == array else []
    done = raybox("cast", boxes, rays, "-o", out, "--query", query, *more, "--force", code=2)
    assert f"{out} is also an input ({path}). Write the results to another file." in done.output
    if of != "boxes":  # which a scene in memory does not know
        mapped = np.load(array, mmap_mode="r")
        for some in (mapped, mapped[:], np.asarray(mapped)):
            with pytest.raises(rb.InvalidInput, match=r"out must not be an input, nor be inside of one; got"):
                rb.stream.cast(SCENE, rays, out, query=query, **({of: some} if more else {}))
    assert path.read_bytes() == before
    if more:  # in memory, it is no file
        rb.stream.cast(SCENE, rays, out, query=query, **{of: np.load(array)})


def test_a_page_that_is_an_input(tmp_path):
    boxes, rays = put_rays(tmp_path / "boxes.csv", BOXES), put_rays(tmp_path / "rays.npy", RAYS)
    os.link(boxes, page := tmp_path / "page.html")
    for others in ([], [rays]):
        done = raybox("view", boxes, *others, "--force", "--html", page, code=2)
        assert "is also an input" in done.output
    assert len(rb.load(boxes)) == len(BOXES)


@pytest.mark.parametrize("place", ["second file", "mapped scene", "rays in Zarr", "unfinished"])
def test_an_output_that_is_a_part_of_an_input(tmp_path, place):
    scene, rays, out = SCENE, [put_rays(tmp_path / f"{k}.npy", RAYS) for k in range(2)], tmp_path / "out.npy"
    if place == "second file":
        out = rays[1]
    elif place == "mapped scene":
        SCENE.save(tmp_path / "a.scene")
        scene, out = rb.Scene.open(tmp_path / "a.scene"), tmp_path / "a.scene" / "upper.npy"
    elif place == "rays in Zarr":
        rays = put_rays(tmp_path / "rays.zarr", RAYS)
        out = rays / "out.npy"
    else:
        (tmp_path / "out.npy.raybox").mkdir()
        rays = put_rays(tmp_path / "out.npy.raybox" / "results.npy", RAYS)
    before = bytes_of(tmp_path)
    with pytest.raises(rb.InvalidInput, match="out must not be an input, nor be inside of one"):
        rb.stream.cast(scene, rays, out)
    assert bytes_of(tmp_path) == before
    assert rb.stream.cast(scene, rays, tmp_path / "free.npy").rays in (103, 206)


# Errors of one family


@pytest.mark.parametrize("ending", ["npy", "csv", "parquet", "ply", "zarr"])
def test_a_missing_file(tmp_path, ending):
    path = tmp_path / f"none.{ending}"
    reads = [lambda: rb.stream.cast(SCENE, path, tmp_path / "out.npy")]
    reads += [lambda: rb.load(path)] if ending != "zarr" else []
    for read in reads:
        with pytest.raises(FileNotFoundError, match="No such file or directory; check the path") as caught:
            read()
        assert isinstance(caught.value, rb.FileFormatError)
        assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("method", "error", "kind", "words"),
    [
        ((PartFile, "write"), OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)), rb.FileFormatError,
         "Cannot allocate memory; free memory, or give a smaller"),
        ((BlockCaster, "_results"), MemoryError, MemoryError,
         "chunks of 50 rays do not fit into memory; give a smaller"),
    ],
)  # fmt: skip
def test_no_memory(tmp_path, monkeypatch, method, error, kind, words):
    """It is not a full disk."""
    rays = put_rays(tmp_path / "rays.npz", RAYS)

    def fail(*_):
        raise error

    monkeypatch.setattr(*method, fail)
    with pytest.raises(kind, match=words) as caught:
        rb.stream.cast(SCENE, rays, tmp_path / "out.npy", chunk=50)
    assert isinstance(caught.value, rb.RayboxError)
