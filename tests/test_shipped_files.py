"""The real files of the repository: small, credited, and unpacked whole by several processes at once."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import real_data

HELPER = Path(real_data.__file__)
ROOT = HELPER.parents[2]
SHA_256 = "b347a2c8aa8fff6db896a4417a9c50c22ac0ccd7c5cfc22b99b8d29336c606ed"


def relative_names(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_real_files_are_small_and_credited():
    files = [path for path in real_data.STORED.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 6_000_000
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    for folder in {path.parent for path in files}:
        source = (folder / "SOURCE.txt").read_text(encoding="utf-8")
        (licence,) = (one for one in ("CC BY 4.0", "CC BY 3.0", "MIT") if one in source)
        assert licence in notice.partition(f"    {folder.name}: ")[2].partition(": ")[0]
        names = {path.name.removesuffix(".xz") for path in folder.iterdir()} - {"SOURCE.txt"}
        assert all(name in source for name in names)


def test_processes_without_packages_unpack_whole_files_at_once(tmp_path):
    """Each of four processes finds all files; a file that is deleted comes back."""
    command = [sys.executable, "-I", "-S", str(HELPER)]

    def folders(count):
        env = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(tmp_path))
        running = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE) for _ in range(count)]
        return {process.communicate()[0].decode().strip() for process in running}

    (name,) = folders(4)
    folder = Path(name)
    assert folder.parent == tmp_path
    stored = {name.removesuffix(".xz") for name in relative_names(real_data.STORED)}
    assert relative_names(folder) == stored
    house = folder / "duplex_ifc" / real_data.HOUSE.name
    house.unlink()
    assert folders(1) == {name}
    assert hashlib.sha256(house.read_bytes()).hexdigest() == SHA_256
