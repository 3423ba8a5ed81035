"""Damage folders of scenes in many ways, and count what raybox makes of them.

Saved scenes are damaged and opened with check=True by another process, which compares the results of two
queries with those of the scene that was saved. Prints a count for each damage and outcome:

    refused    a `RayboxError` of one line that names the folder
    same       the results of the scene: the damage hides nothing that is read
    unclear    a `RayboxError` of another text
    foreign    an exception that is none of raybox
    wrong      other results, and no error
    crash      the process ended, or did not answer within a minute

Run: `python benchmarks/damaged_scenes.py [FOLDERS] [SEED]` (250 and 1). Exits with 1 unless all folders are
refused or give the same results.
"""

import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import raybox as rb

FINE = {"refused", "same"}
SECONDS = 60.0
_BOXES, _RAYS = 600, 400
Random = np.random.Generator


def boxes(seed: int) -> rb.Boxes:
    """Return boxes in the unit cube."""
    lower = np.random.default_rng(seed).random((_BOXES, 3))
    return rb.Boxes(lower, lower + 0.05)


def mesh(seed: int) -> rb.Mesh:
    """Return triangles in the unit cube, three vertices each."""
    rng = np.random.default_rng(seed)
    corners = rng.random((_BOXES, 1, 3)) + 0.1 * rng.random((_BOXES, 3, 3))
    return rb.Mesh(corners.reshape(-1, 3), np.arange(3 * _BOXES).reshape(-1, 3))


def rays() -> rb.Rays:
    """Return rays through the unit cube."""
    rng = np.random.default_rng(0)
    origins, goals = rng.random((_RAYS, 3)) * 3 - 1, rng.random((_RAYS, 3))
    return rb.Rays(origins, goals - origins)


def several(seed: int) -> list[Any]:
    """Return a geometry of each kind in the unit cube."""
    rng = np.random.default_rng(seed)
    edges = np.linspace(0, 1, 12)
    grid = rb.Grid(edges, edges, edges, occupied=rng.random((11, 11, 11)) < 0.1, ids=range(1331))
    copies = rb.Instances(mesh(seed)[:50], [np.eye(3, 4) + rng.random((3, 4)) / 4 for _ in range(9)])
    return [boxes(seed)[:100], copies, rb.Planes(rng.normal(size=(2, 3)), [0.5, 0.5]), grid]


def results(scene: Any) -> tuple[bytes, ...]:
    """Return the results of two queries."""
    hits = scene.nearest(rays(), workers=1)
    counts = scene.count(rays(), workers=1)
    return hits.index.tobytes(), hits.t.tobytes(), counts.tobytes()


# Damages to a folder. `other` is one of the same layout.


def _files(folder: Path, pattern: str = "*") -> list[Path]:
    return sorted(path for path in folder.rglob(pattern) if path.is_file())


def _choose(random: Random, items: list[Any]) -> Any:
    return items[random.integers(len(items))]


def flip_bits(folder: Path, other: Path, random: Random) -> None:
    path = _choose(random, _files(folder))
    data = np.frombuffer(path.read_bytes(), np.uint8).copy()
    for _ in range(_choose(random, [1, 1, 40])):
        data[random.integers(len(data))] ^= 1 << random.integers(8)
    path.write_bytes(data.tobytes())


def clear_bytes(folder: Path, other: Path, random: Random) -> None:
    path = _choose(random, _files(folder, "*.npy"))
    data, begin = bytearray(path.read_bytes()), int(random.integers(path.stat().st_size))
    data[begin : begin + 512] = bytes(len(data[begin : begin + 512]))
    path.write_bytes(data)


def cut_or_extend(folder: Path, other: Path, random: Random) -> None:
    path = _choose(random, _files(folder))
    data = path.read_bytes()
    path.write_bytes(_choose(random, [data[: random.integers(len(data))], data + bytes(64), b""]))


def swap_files(folder: Path, other: Path, random: Random) -> None:
    first, second = (_choose(random, _files(folder)) for _ in range(2))
    data = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(data)


def swap_like_files(folder: Path, other: Path, random: Random) -> None:
    path = _choose(random, _files(folder))
    like = _choose(random, _files(folder, path.name))
    data = path.read_bytes()
    path.write_bytes(like.read_bytes())
    like.write_bytes(data)


def delete(folder: Path, other: Path, random: Random) -> None:
    path = _choose(random, sorted(folder.rglob("*")))
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def edit_manifest(folder: Path, other: Path, random: Random) -> None:
    path = _choose(random, _files(folder, "*.json"))
    text = path.read_text()
    digits = [k for k, character in enumerate(text) if character.isdigit()]
    place = _choose(random, digits)
    edited = text[:place] + str((int(text[place]) + random.integers(1, 10)) % 10) + text[place + 1 :]
    path.write_text(_choose(random, [edited, "{}", "[" * 100_000, text.replace("boxes", "mesh") + " "]))


def change_shape(folder: Path, other: Path, random: Random) -> None:
    path = _choose(random, _files(folder, "*.npy"))
    array = np.load(path)
    changed = [array[:-1], np.concatenate([array, array[-1:]]), array.reshape(-1), array.T]
    np.save(path, _choose(random, [*changed, array.astype(np.float32), array.astype(">f8")]))


def copy_from_other(folder: Path, other: Path, random: Random) -> None:
    path = _choose(random, sorted(other.rglob("*")))
    place = folder / path.relative_to(other)
    if path.is_dir():
        shutil.rmtree(place)
        shutil.copytree(path, place)
    else:
        shutil.copyfile(path, place)


def replace_by_link(folder: Path, other: Path, random: Random) -> None:
    path = _choose(random, _files(folder))
    goal = _choose(random, [path, folder / "nothing", "/dev/zero", folder, *_files(other, path.name)])
    path.unlink()
    path.symlink_to(goal)


def replace_by_foreign(folder: Path, other: Path, random: Random) -> None:
    path = _choose(random, _files(folder))
    make = _choose(random, ["pipe", "folder", "new file", "text"])
    if make == "new file":
        (path.parent / f"foreign-{path.name}").write_bytes(b"\0" * 100)
        return
    path.unlink()
    if make == "pipe":
        os.mkfifo(path)
    elif make == "folder":
        path.mkdir()
    else:
        path.write_text("version https://git-lfs.github.com/spec/v1\n")


Damage = Callable[[Path, Path, Random], None]
DAMAGES: tuple[Damage, ...] = (
    flip_bits,
    clear_bytes,
    cut_or_extend,
    swap_files,
    swap_like_files,
    delete,
    edit_manifest,
    change_shape,
    copy_from_other,
    replace_by_link,
    replace_by_foreign,
)


def outcome(folder: Path, wanted: tuple[bytes, ...]) -> str:
    """Return what becomes of a folder, and the error."""
    try:
        scene = rb.Scene.open(folder, check=True)
        return "same" if results(scene) == wanted else "wrong"
    except rb.RayboxError as error:
        is_clear = str(error).startswith(str(folder)) and "\n" not in str(error)
        return "refused" if is_clear else f"unclear {error}"
    except Exception as error:
        return f"foreign {type(error).__name__}: {error}"


def _serve(connection: Any) -> None:
    """Read folders that a connection names, and send back what becomes of them."""
    while True:
        connection.send(outcome(*connection.recv()))


class Reader:
    """A process that reads folders, started again where it ends."""

    def __init__(self) -> None:
        self._process: Any = None

    def outcome(self, *case: Any) -> str:
        """Return what becomes of a folder in the other process."""
        if self._process is None:
            self._start()
        self._connection.send(case)
        try:
            if self._connection.poll(SECONDS):
                return str(self._connection.recv())
        except EOFError:
            pass
        self.close()
        return "crash"

    def _start(self) -> None:
        context = get_context("spawn")
        self._connection, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there,), daemon=True)
        self._process.start()
        there.close()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None


def campaign(place: Path, folders: int, seed: int, read: Callable[..., str]) -> Iterator[tuple[str, str]]:
    """Yield the name of each damage and what becomes of the folder."""
    cases = []
    for make in (boxes, mesh, several):
        one, other = (place / f"{make.__name__}-{number}.scene" for number in (1, 2))
        rb.Scene(make(1), workers=1).save(one)
        rb.Scene(make(2), workers=1).save(other)
        cases.append((one, other, results(rb.Scene(make(1)))))
    for number in range(folders):
        random = np.random.default_rng([seed, number])
        whole, other, wanted = cases[number // len(DAMAGES) % len(cases)]
        damage, damaged = DAMAGES[number % len(DAMAGES)], place / "damaged"
        shutil.copytree(whole, damaged)
        damage(damaged, other, random)
        yield damage.__name__, read(damaged, wanted)
        shutil.rmtree(damaged)


def main(folders: int = 250, seed: int = 1) -> int:
    """Print the counts of a campaign; return the exit status."""
    counts, reader = Counter[tuple[str, str]](), Reader()
    with tempfile.TemporaryDirectory() as place:
        for damage, found in campaign(Path(place), folders, seed, reader.outcome):
            kind, _, text = found.partition(" ")
            counts[damage, kind] += 1
            if kind not in FINE:
                print(f"{damage}: {kind} {text[:150]}")
    reader.close()
    for (damage, kind), number in sorted(counts.items()):
        print(f"{damage:20} {kind:8} {number:5}")
    total = Counter[str]()
    for (_, kind), number in counts.items():
        total[kind] += number
    print(folders, "folders:", ", ".join(f"{number} {kind}" for kind, number in total.most_common()))
    return int(not set(total) <= FINE)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
