"""Damage what a killed cast has left, and plant links in it; for `killed_casts.py`.

A cast that finds damage casts those parts again, to the same bytes, or is refused by one line that names the
way out. What links lead to never changes, and nothing is written outside the output and its folder.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from killed_cases import Case, Files, content, write_others
from killed_outcomes import Found, Outcome, Reference, Run, failure_of, forked, reference, was_resumed
from killed_processes import KILLED, REFUSED, Kill

Random = np.random.Generator
Damage = Callable[[Path, Path, Random], None]
"""(folder of the cast, that of a cast of other rays, random numbers)"""
_ATTEMPTS = 30
_PRECIOUS = b"a file of the user\n" * 100


class Site(NamedTuple):
    """A cast that was killed: its output, and the folder that it has left."""

    target: str
    folder: Path


def folder_of(target: str) -> Path | None:
    """Return the folder in which an output's parts are."""
    place = Path(target)
    return next((one for one in place.parent.glob(f"{place.name}.*") if one.is_dir() and one != place), None)


def stopped(run: Run, target: str, random: Random) -> Site | None:
    """Kill a cast where it has left some files; None if it never does."""
    for _ in range(_ATTEMPTS):
        ended = run(Kill(call=int(random.integers(60, 200))))
        folder = folder_of(target)
        if ended.outcome == KILLED and folder is not None and len(files_of(folder)) > 1:
            return Site(target, folder)
        clear(Path(target).parent)
    return None


def clear(folder: Path) -> None:
    """Remove all that is in a folder."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def files_of(folder: Path) -> list[Path]:
    """Return the files of a cast's folder."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


# Damages


def _chosen(folder: Path, random: Random) -> Path:
    """Return a file: a part, if there are any, four times of five."""
    found = files_of(folder)
    parts = [path for path in found if re.search(r"part-\d+", path.name)]
    some = parts if parts and random.random() < 0.8 else found
    return some[random.integers(len(some))]


def flip_bits(folder: Path, _other: Path, random: Random) -> None:
    path = _chosen(folder, random)
    data = bytearray(path.read_bytes()) or bytearray(1)
    for _ in range(int(random.choice([1, 1, 40]))):
        data[random.integers(len(data))] ^= 1 << int(random.integers(8))
    path.write_bytes(data)


def clear_bytes(folder: Path, _other: Path, random: Random) -> None:
    path = _chosen(folder, random)
    data = bytearray(path.read_bytes())
    begin = int(random.integers(len(data) + 1))
    data[begin : begin + 256] = bytes(len(data[begin : begin + 256]))
    path.write_bytes(data)


def cut_or_extend(folder: Path, _other: Path, random: Random) -> None:
    path = _chosen(folder, random)
    data = path.read_bytes()
    some = [data[: random.integers(len(data) + 1)], data + bytes(64), data + data, b""]
    path.write_bytes(some[random.integers(len(some))])


def swap(folder: Path, _other: Path, random: Random) -> None:
    first, second = (_chosen(folder, random) for _ in range(2))
    one, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(one)


def rename(folder: Path, _other: Path, random: Random) -> None:
    path = _chosen(folder, random)
    numbers = re.findall(r"\d+", path.name) or ["x"]
    name = path.name.replace(numbers[-1], f"{random.integers(40):0{len(numbers[-1])}}")
    path.rename(path.with_name(name))


def repeat(folder: Path, _other: Path, random: Random) -> None:
    path, to = _chosen(folder, random), _chosen(folder, random)
    to.write_bytes(path.read_bytes())


def remove(folder: Path, _other: Path, random: Random) -> None:
    _chosen(folder, random).unlink()


def take_foreign(folder: Path, other: Path, random: Random) -> None:
    """Put files of a cast of other rays in the place of those of this one."""
    for _ in range(int(random.integers(1, 4))):
        path = _chosen(other, random)
        place = folder / path.relative_to(other)
        place.parent.mkdir(exist_ok=True)
        shutil.copy(path, place)


def take_all_foreign(folder: Path, other: Path, _random: Random) -> None:
    clear(folder)
    shutil.copytree(other, folder, dirs_exist_ok=True)


def make_folder(folder: Path, _other: Path, random: Random) -> None:
    path = _chosen(folder, random)
    path.unlink()
    path.mkdir()


DAMAGES: tuple[Damage, ...] = (
    flip_bits,
    clear_bytes,
    cut_or_extend,
    swap,
    rename,
    repeat,
    remove,
    take_foreign,
    take_all_foreign,
    make_folder,
)


class DamagedCase(NamedTuple):
    """A case, and how what it has left is damaged."""

    case: Case
    damage: str

    def __str__(self) -> str:
        return f"{self.case}, {self.damage}"


def _foreign(case: Case, files: Files, folder: Path, random: Random) -> Path | None:
    """Return the folder of a killed cast of other rays."""
    others = Files(files.folder / "others")
    site = stopped(forked(case, others, case.target(folder)), case.target(folder), random)
    return None if site is None else site.folder


def damaged(count: int, files: Files, chosen: list[Case], seed: int) -> Found:
    """Yield the outcome of casts that find what is damaged."""
    write_others(files)
    random, references = np.random.default_rng(seed), dict[Case, Reference | str]()
    for number in range(count):
        case, damage = chosen[number % len(chosen)], DAMAGES[(number + number // 10) % len(DAMAGES)]
        with tempfile.TemporaryDirectory(dir=files.folder) as name:
            folder, whole, foreign = (Path(name) / part for part in ("cast", "whole", "foreign"))
            for one in (folder, whole, foreign):
                one.mkdir()
            if case not in references:
                references[case] = reference(case, files, forked, whole)
            wanted = references[case]
            if isinstance(wanted, str):
                yield case, Outcome(offered=False, failure=wanted)
                continue
            run = forked(case, files, case.target(folder))
            site = stopped(run, case.target(folder), random)
            other = _foreign(case, files, foreign, random) if "foreign" in damage.__name__ else folder
            if site is None or other is None:
                yield case, Outcome(offered=False, failure="no folder was left")
                continue
            damage(site.folder, other, random)
            yield DamagedCase(case, damage.__name__), _outcome(run, site, wanted)


def _outcome(run: Run, site: Site, wanted: Reference) -> Outcome:
    """Return what becomes of a cast that finds damage; a refused one starts again without the folder."""
    ended = run(None)
    if ended.outcome != REFUSED:
        return Outcome(1, was_resumed(ended), failure=failure_of(ended, site.target, wanted))
    problem = "" if len(ended.text.splitlines()) == 1 else f"a refusal of several lines: {ended.text}"
    if content(site.target) not in (None, wanted.content):  # it may have been complete before the damage
        problem = f"an output that is not whole, and the cast was refused: {ended.text}"
    clear(Path(site.target).parent)
    return Outcome(1, refused=True, failure=problem or failure_of(run(None), site.target, wanted))


# Links, and folders of others


class Victim(NamedTuple):
    """Files outside, which no cast may touch."""

    folder: Path

    @property
    def file(self) -> Path:
        """A file of the user."""
        return self.folder / "precious"

    def make(self) -> "Victim":
        """Write the file."""
        self.folder.mkdir()
        self.file.write_bytes(_PRECIOUS)
        return self

    def problem(self) -> str:
        """Return what has changed; an empty text if nothing has."""
        if sorted(path.name for path in self.folder.iterdir()) != ["precious"]:
            return "a file was made outside"
        return "" if self.file.read_bytes() == _PRECIOUS else "a file outside was written to"


Plant = Callable[[Path, Victim], None]


def _replace(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def symbolic_link(path: Path, victim: Victim) -> None:
    _replace(path)
    path.symlink_to(victim.file)


def hard_link(path: Path, victim: Victim) -> None:
    _replace(path)
    path.hardlink_to(victim.file)


def dangling_link(path: Path, victim: Victim) -> None:
    _replace(path)
    path.symlink_to(victim.folder / "new")


def link_to_folder(path: Path, victim: Victim) -> None:
    _replace(path)
    path.symlink_to(victim.folder)


def pipe(path: Path, _victim: Victim) -> None:
    _replace(path)
    os.mkfifo(path)


def foreign_owner(path: Path, _victim: Victim) -> None:
    os.chown(path, 12345, 12345)


def writable_by_all(path: Path, _victim: Victim) -> None:
    path.chmod(0o777 if path.is_dir() else 0o666)


def sticky(path: Path, _victim: Victim) -> None:
    path.chmod(0o1777 if path.is_dir() else 0o666)


PLANTS: tuple[Plant, ...] = (
    symbolic_link,
    hard_link,
    dangling_link,
    link_to_folder,
    pipe,
    writable_by_all,
    sticky,
    *((foreign_owner,) if hasattr(os, "geteuid") and os.geteuid() == 0 else ()),
)


class PlantedCase(NamedTuple):
    """A case, what is planted, and where: at the folder, the output, or a name in the folder."""

    case: Case
    plant: Plant
    place: str

    def __str__(self) -> str:
        return f"{self.case}, {self.plant.__name__} at the {self.place}"


def planted(files: Files, chosen: list[Case], seed: int) -> Found:
    """Yield the outcome of casts that find links in their folder, at each name in turn."""
    random, some = np.random.default_rng(seed), dict[tuple[str, bool, bool], Case]()
    for case in chosen:  # a case for each output, and one of sums
        some.setdefault((case.out, case.dataset, case.query == "deposit" and case.out == "npy"), case)
    for case in some.values():
        yield from _planted_in(case, files, random)


def _planted_in(case: Case, files: Files, random: Random) -> Found:
    with tempfile.TemporaryDirectory(dir=files.folder) as name:
        wanted = reference(case, files, forked, Path(name))
    if isinstance(wanted, str):
        yield case, Outcome(offered=False, failure=wanted)
        return
    at_output = hard_link, link_to_folder  # a symbolic link to a file is where the user wants the output
    for plant in PLANTS:
        for place in ("folder", *(("output",) if plant in at_output else ()), "file", "file"):
            one = PlantedCase(case, plant, place)
            with tempfile.TemporaryDirectory(dir=files.folder) as name:
                yield one, _plant_one(one, files, Path(name), random, wanted)


def _plant_one(one: PlantedCase, files: Files, folder: Path, random: Random, wanted: Reference) -> Outcome:
    place, victim = folder / "cast", Victim(folder / "outside").make()
    place.mkdir()
    target = one.case.target(place)
    run = forked(one.case, files, target)
    site = stopped(run, target, random)
    if site is None:
        return Outcome(offered=False, failure="no folder was left")
    path = {"folder": site.folder, "output": Path(target)}.get(one.place) or _any_name(site.folder, random)
    if one.plant is hard_link and path.is_dir():
        return Outcome(offered=False, failure="a folder has no hard links")
    one.plant(path, victim)
    ended = run(None)
    problem = victim.problem()
    if ended.outcome == REFUSED:
        several = len(ended.text.splitlines()) != 1
        return Outcome(1, refused=True, failure=problem or (ended.text if several else ""))
    return Outcome(1, was_resumed(ended), failure=problem or failure_of(ended, target, wanted))


def _any_name(folder: Path, random: Random) -> Path:
    """Return a name in a folder: of a file, or of a folder in it."""
    found = sorted(folder.rglob("*"))
    return found[random.integers(len(found))]
