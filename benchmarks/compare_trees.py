"""The trees that `compare.py` compares: copies of their sources, and worker processes that run them.

A copy is named by a checksum of its sources, so that an edit during a run changes nothing, and compiled code
of one tree is never loaded by another. Copies and their compiled code stay for the next run for a day.
"""

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
DAY = 86_400.0


class Tree(NamedTuple):
    """A copy of the sources, in ``folder/src``; compiled code lies beside it."""

    name: str
    folder: Path


class Worker(NamedTuple):
    """A process that runs one tree."""

    name: str
    process: "subprocess.Popen[str]"


class WorkerError(RuntimeError):
    """A case failed in a worker; the text is the worker's."""


def snapshot(spec: str, cache: Path) -> Tree:
    """Copy the sources of a checkout or of a commit into the cache folder."""
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix="new-") as made:
        new = Path(made) / "src"
        if (Path(spec) / "src" / "raybox").is_dir():
            shutil.copytree(Path(spec) / "src" / "raybox", new / "raybox", ignore=_not_sources)
        else:
            _export(spec, Path(made))
        folder = cache / _checksum(new)
        folder.mkdir(exist_ok=True)
        if not (folder / "src").exists():
            new.rename(folder / "src")
    os.utime(folder)
    return Tree(spec, folder)


def _not_sources(_: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__"]


def _export(commit: str, folder: Path) -> None:
    """Unpack the sources of a commit of the repository that this file is in."""
    command = ["git", "-C", str(HERE.parent), "archive", "--format=tar", f"{commit}:src"]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        reason = done.stderr.decode().strip()
        raise SystemExit(f"{commit}: neither a folder with src/raybox nor a commit ({reason})")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder / "src", filter="data")


def _checksum(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def prune(cache: Path) -> None:
    """Remove the copies that no run has used for a day."""
    for folder in cache.iterdir():
        if time.time() - folder.stat().st_mtime > DAY:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def workers(trees: list[Tree]) -> Iterator[list[Worker]]:
    """Start a process for each tree; stop them all at the end."""
    started: list[Worker] = []
    try:
        for tree in trees:
            started.append(_start(tree))
        yield started
    finally:
        for worker in started:
            worker.process.kill()
            worker.process.communicate()


def _start(tree: Tree) -> Worker:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(tree.folder / "src"), str(HERE)]),
        "RAYBOX_CACHE_DIR": str(tree.folder / "numba"),
        "XDG_CACHE_HOME": str(tree.folder / "cache"),
        "PYTHONHASHSEED": "0",
    }
    command = [sys.executable, str(HERE / "compare_worker.py")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen(command, env=environment, text=True, **pipes)
    worker = Worker(tree.name, process)
    imported = Path(request(worker, "version"))
    if tree.folder not in imported.parents:
        process.kill()
        raise SystemExit(f"{tree.name}: the worker imports {imported} instead of its own sources")
    return worker


def request(worker: Worker, name: str, *arguments: Any) -> Any:
    """Return what a worker replies; raise `WorkerError` where its tree raised."""
    send(worker, name, *arguments)
    return receive(worker)


def send(worker: Worker, name: str, *arguments: Any) -> None:
    stdin = worker.process.stdin
    assert stdin is not None
    stdin.write(json.dumps([name, arguments]) + "\n")
    stdin.flush()


def receive(worker: Worker) -> Any:
    return value_of(reply(worker))


def reply(worker: Worker) -> dict[str, Any]:
    """Wait for a worker's next reply, a value or an error."""
    stdout = worker.process.stdout
    assert stdout is not None
    line = stdout.readline()
    if not line:
        return {"error": f"the process ended with status {worker.process.wait()}", "worker": worker.name}
    received: dict[str, Any] = json.loads(line)
    return received | {"worker": worker.name}


def value_of(received: dict[str, Any]) -> Any:
    """Return the value of a reply; raise its error."""
    if "error" in received:
        raise WorkerError(f"{received['worker']}: {received['error']}")
    return received["value"]
