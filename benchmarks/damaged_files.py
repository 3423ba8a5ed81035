"""Damage files in many ways, read them with `load` and `cast`, and count the outcomes.

    python benchmarks/damaged_files.py [--share 0.1] [parquet npy npz csv casts]

A campaign is a function of `CAMPAIGNS`: it yields an outcome for each damaged file. A file is refused by
both readers, or read without harm, or read with other numbers where the format cannot show that: each such
place is printed. Everything else is a failure: readers that disagree, rows that are lost or moved, an error
that is not one of raybox, a resumed output that differs. The exit status is 1 if there is any.
"""

import argparse
import io
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import raybox as rb
from raybox.casting import engine
from raybox.casting.cast_folder import SUFFIX, CastFolder
from raybox.errors import RayboxError

REFUSED, UNHARMED, VALUES = "refused", "read without harm", "other numbers"
CUT = "cut off between two lines, or within the last number"
RESUMED = "resumed, byte-identical"
FAILURES = DISAGREE, ROWS, FOREIGN, OUTPUT, UNLIKE_ARROW = (
    "FAILURE: load and cast disagree",
    "FAILURE: rows lost or moved",
    "FAILURE: an error of another family",
    "FAILURE: another output",
    "FAILURE: numbers that pyarrow does not read",
)


class Outcome(NamedTuple):
    """What became of a damaged file, and where it was damaged."""

    name: str
    place: str = ""
    detail: str = ""


class Damage(NamedTuple):
    """The bytes of a damaged file, and where they differ."""

    data: bytes
    place: str


def make_rays(count: int) -> rb.Rays:
    """Return rays with ranges, no two of which are equal."""
    rng = np.random.default_rng(count)
    origins, directions = rng.random((count, 3)) - 0.5, rng.normal(size=(count, 3))
    return rb.Rays(origins, directions, t_min=rng.random(count) * 0.1, t_max=rng.random(count) * 5 + 1)


RAYS = make_rays(36)
SCENE = rb.Scene(rb.Boxes.from_centers(np.random.default_rng(31).random((40, 3)), 0.3))


def saved(ending: str, rays: rb.Rays = RAYS) -> bytes:
    """Return the bytes of a file of rays."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"rays{ending}"
        rb.save(path, rays)
        return path.read_bytes()


# Damage


def flip(data: bytes, bit: int) -> Damage:
    """Flip one bit."""
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return Damage(bytes(changed), f"bit {bit % 8} of byte {bit // 8}")


def change_bytes(data: bytes, rng: np.random.Generator) -> Damage:
    """Flip, overwrite, remove, insert, repeat or cut off bytes."""
    at, size = int(rng.integers(len(data))), int(rng.integers(1, 9))
    some = rng.bytes(size)
    match int(rng.integers(6)):
        case 0:
            return flip(data, int(rng.integers(8 * len(data))))
        case 1:
            return Damage(data[:at] + some + data[at + size :], f"bytes {at} to {at + size} overwritten")
        case 2:
            return Damage(data[:at] + data[at + size :], f"bytes {at} to {at + size} removed")
        case 3:
            return Damage(data[:at] + some + data[at:], f"{size} bytes inserted at {at}")
        case 4:
            return Damage(data[:at] + bytes(size) + data[at + size :], f"bytes {at} to {at + size} zero")
    return Damage(data[:at], f"cut off at byte {at}")


def change_text(data: bytes, rng: np.random.Generator) -> Damage:
    """Overwrite, remove or insert a letter that means something in a table, or cut the text off."""
    at = int(rng.integers(len(data)))
    letter = bytes([b',;"\n\r .-+e05\x00\xff_'[int(rng.integers(15))]])
    match int(rng.integers(4)):
        case 0:
            return Damage(data[:at] + letter + data[at + 1 :], f"{letter!r} over byte {at}")
        case 1:
            return Damage(data[:at] + letter + data[at:], f"{letter!r} at byte {at}")
        case 2:
            return Damage(data[:at] + data[at + 1 :], f"byte {at} removed")
    return Damage(data[:at], f"cut off at byte {at}")


# Outcomes


class Read(NamedTuple):
    """The rays of a file as one table, None if it was refused; an error of another family."""

    table: np.ndarray | None
    foreign: str = ""


def as_table(rays: rb.Rays) -> np.ndarray:
    """Return rays as rows of numbers."""
    return np.column_stack([rays.origins, rays.directions, rays.t_min, rays.t_max])


def try_load(path: Path) -> Read:
    """Return what `load` reads."""
    try:
        rays = rb.load(path, kind="rays")
    except RayboxError:
        return Read(None)
    except Exception as error:
        return Read(None, f"load: {error!r}")
    return Read(as_table(rays.reshape(-1)))


def try_cast(path: Path) -> tuple[bytes | None, str]:
    """Return the output of `cast`, None if the file was refused, and an error of another family."""
    out = path.with_name("out.npy")
    try:
        rb.cast(SCENE, path, out, chunk=10, workers=1)
        return out.read_bytes(), ""
    except RayboxError:
        return None, ""
    except Exception as error:
        return None, f"cast: {error!r}"
    finally:
        out.unlink(missing_ok=True)
        shutil.rmtree(f"{out}{SUFFIX}", ignore_errors=True)


def wanted_output(table: np.ndarray, folder: Path) -> bytes:
    """Return the output for rays that `load` has read."""
    rays = rb.Rays(table[:, :3], table[:, 3:6], t_min=table[:, 6], t_max=table[:, 7])
    rb.save(folder / "wanted.npy", SCENE.nearest(rays))
    return (folder / "wanted.npy").read_bytes()


def read_outcome(path: Path, damage: Damage, wanted: np.ndarray) -> tuple[Outcome, Read]:
    """Read a damaged file with both readers, and compare them with each other and with the sound file."""
    path.write_bytes(damage.data)
    loaded = try_load(path)
    output, foreign = try_cast(path)
    if loaded.foreign or foreign:
        return Outcome(FOREIGN, damage.place, loaded.foreign or foreign), loaded
    if (loaded.table is None) != (output is None):
        by = "load" if loaded.table is None else "cast"
        return Outcome(DISAGREE, damage.place, f"refused by {by} only"), loaded
    if loaded.table is None:
        return Outcome(REFUSED), loaded
    if output != wanted_output(loaded.table, path.parent):
        return Outcome(DISAGREE, damage.place, "other results"), loaded
    if loaded.table.shape != wanted.shape:
        return Outcome(ROWS, damage.place, f"{len(loaded.table)} of {len(wanted)} rows"), loaded
    changed = int((loaded.table.view(np.uint64) != wanted.view(np.uint64)).sum())
    return (Outcome(VALUES, damage.place, f"{changed} numbers") if changed else Outcome(UNHARMED)), loaded


# Campaigns


def parquet_bits(count: int, folder: Path) -> Iterator[Outcome]:
    """Yield outcomes of Parquet files in which one bit is wrong; three row groups, in four encodings."""
    import pyarrow.parquet as pq

    table = pq.read_table(io.BytesIO(saved(".parquet")))
    ways: list[dict[str, Any]] = [
        {"compression": "none", "use_dictionary": False},
        {"compression": "none", "use_dictionary": False, "data_page_version": "2.0"},
        {"compression": "snappy", "use_dictionary": False},
        {"compression": "zstd"},
    ]
    rng, path, wanted = np.random.default_rng(1), folder / "rays.parquet", as_table(RAYS)
    for k in range(count):
        pq.write_table(table, path, row_group_size=12, **ways[k % len(ways)])
        data = path.read_bytes()
        outcome, read = read_outcome(path, flip(data, int(rng.integers(8 * len(data)))), wanted)
        if outcome.name == VALUES and not _is_read_by_arrow(path, read):
            outcome = outcome._replace(name=UNLIKE_ARROW)
        yield outcome._replace(place=outcome.place and f"{outcome.place} of {len(data)}")


def _is_read_by_arrow(path: Path, read: Read) -> bool:
    """Return whether pyarrow reads the same numbers from a damaged file."""
    import pyarrow.parquet as pq

    assert read.table is not None
    table = pq.read_table(path)
    defaults = {"t_min": 0.0, "t_max": np.inf}
    names = [f"{vector}_{axis}" for vector in ("origin", "direction") for axis in "xyz"]
    columns = [
        np.asarray(table[name]) if name in table.column_names else np.full(len(read.table), defaults[name])
        for name in [*names, *defaults]
    ]
    return np.array_equal(np.column_stack(columns), read.table)


def npy_bytes(count: int, folder: Path) -> Iterator[Outcome]:
    """Yield outcomes of `.npy` tables with wrong bytes, every second time in the header."""
    data, rng = saved(".npy"), np.random.default_rng(2)
    start = len(data) - 64 * len(RAYS)
    for k in range(count):
        damage = change_bytes(data[:start], rng) if k % 2 else change_bytes(data, rng)
        whole = damage._replace(data=damage.data + data[start:]) if k % 2 else damage
        yield read_outcome(folder / "rays.npy", whole, as_table(RAYS))[0]


def npz_bytes(count: int, folder: Path) -> Iterator[Outcome]:
    """Yield outcomes of `.npz` archives with wrong bytes; compressed every second time."""
    rng, packed = np.random.default_rng(3), io.BytesIO()
    np.savez_compressed(
        packed, origins=RAYS.origins, directions=RAYS.directions, t_min=RAYS.t_min, t_max=RAYS.t_max
    )
    archives = saved(".npz"), packed.getvalue()
    for k in range(count):
        yield read_outcome(folder / "rays.npz", change_bytes(archives[k % 2], rng), as_table(RAYS))[0]


def csv_letters(count: int, folder: Path) -> Iterator[Outcome]:
    """Yield outcomes of CSV files with a wrong letter, or cut off."""
    data, rng = saved(".csv"), np.random.default_rng(4)
    for _ in range(count):
        damage = change_text(data, rng)
        outcome = read_outcome(folder / "rays.csv", damage, as_table(RAYS))[0]
        is_cut = outcome.name == ROWS and data.startswith(damage.data)
        yield outcome._replace(name=CUT) if is_cut else outcome


def casts(count: int, folder: Path) -> Iterator[Outcome]:
    """Yield outcomes of resumed casts after damage in the output or in its folder."""
    rng, rays = np.random.default_rng(5), folder / "rays.npz"
    arrays = {name: np.array(getattr(RAYS, name)) for name in ("origins", "directions", "t_min", "t_max")}
    arrays["origins"][25] = np.nan
    np.savez(rays, **arrays)
    starts = [_unfinished(rays, folder, ending, stage) for ending in ENDINGS for stage in STAGES]
    for k in range(count):
        stored, wanted = starts[k % len(starts)]
        yield _resume(rays, stored, wanted, folder / "work", rng)


ENDINGS = (".npy", ".npz", ".csv", ".parquet", ".zarr")
STAGES: dict[str, tuple[Any, str] | None] = {
    "rays": None,
    "parts": (engine, "finish"),
    "output": (CastFolder, "remove"),
}
"""What a cast has completed when it is interrupted, and the function that is not called any more."""


def _cast(rays: Path, out: Path, invalid: str = "miss") -> Any:
    return rb.cast(SCENE, rays, out, chunk=10, workers=1, invalid=invalid)


def _content(path: Path) -> dict[str, bytes]:
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return {str(file.relative_to(path)): file.read_bytes() for file in files if file.is_file()}


def _unfinished(rays: Path, folder: Path, ending: str, stage: str) -> tuple[Path, dict[str, bytes]]:
    """Return a folder with an output that was interrupted, and the output of an uninterrupted call."""
    whole, place = folder / f"whole{ending}", folder / f"{stage}{ending}-stopped"
    if not whole.exists():
        _cast(rays, whole)
    place.mkdir()
    if (step := STAGES[stage]) is None:
        with suppress(RayboxError):
            _cast(rays, place / f"out{ending}", "raise")
    else:
        interrupt = mock.patch.object(*step, side_effect=KeyboardInterrupt)
        with interrupt, suppress(KeyboardInterrupt):
            _cast(rays, place / f"out{ending}")
    return place, _content(whole)


def _resume(
    rays: Path, stored: Path, wanted: dict[str, bytes], work: Path, rng: np.random.Generator
) -> Outcome:
    """Damage a file of an interrupted cast, and resume that."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(stored, work)
    out = next(work.glob("*.raybox")).with_suffix("")
    files = [path for path in work.rglob("*") if path.is_file()]
    victim = files[int(rng.integers(len(files)))]
    damage = change_bytes(data, rng) if (data := victim.read_bytes()) else Damage(rng.bytes(9), "9 bytes")
    if rng.random() < 0.1:
        victim.unlink()
        damage = damage._replace(place="removed")
    else:
        victim.write_bytes(damage.data)
    place = f"{out.suffix} {stored.name}: {victim.relative_to(work)}, {damage.place}"
    try:
        done = _cast(rays, out)
    except RayboxError:
        return Outcome(REFUSED)
    except Exception as error:
        return Outcome(FOREIGN, place, repr(error))
    if done.rays != len(RAYS) or _content(out) != wanted:
        return Outcome(OUTPUT, place, f"{done}")
    return Outcome(RESUMED)


CAMPAIGNS: dict[str, tuple[Callable[[int, Path], Iterator[Outcome]], int]] = {
    "parquet": (parquet_bits, 2000),
    "npy": (npy_bytes, 2500),
    "npz": (npz_bytes, 2500),
    "csv": (csv_letters, 2500),
    "casts": (casts, 300),
}


def run(name: str, share: float = 1.0) -> list[Outcome]:
    """Return the outcomes of a share of a campaign."""
    campaign, count = CAMPAIGNS[name]
    with tempfile.TemporaryDirectory() as folder:
        return list(campaign(max(1, round(share * count)), Path(folder)))


def report(name: str, outcomes: list[Outcome]) -> bool:
    """Print the counts, and the places of failures and of numbers that differ; return whether none failed."""
    print(f"{name}: {len(outcomes)} damaged files")
    for outcome, count in Counter(outcome.name for outcome in outcomes).most_common():
        print(f"  {count:6} {outcome}")
    for outcome in outcomes:
        if outcome.name in (*FAILURES, VALUES, CUT):
            print(f"         {outcome.name}: {outcome.place} ({outcome.detail})")
    return not any(outcome.name in FAILURES for outcome in outcomes)


def main() -> None:
    """Run campaigns, and end with 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[[], *CAMPAIGNS], help="campaigns; all by default")
    parser.add_argument("--share", type=float, default=1.0, help="the share of each campaign to run")
    options = parser.parse_args()
    results = [report(name, run(name, options.share)) for name in options.names or CAMPAIGNS]
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
