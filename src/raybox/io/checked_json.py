"""JSON files that carry a checksum of their content: a damaged one is an error, whatever it holds."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from raybox.errors import FileFormatError
from raybox.io import own_files
from raybox.io.checksums import blake2b_of

_FILE = re.compile(rb'\{"checksum": "([0-9a-f]{32})", "content": (.*)\}', re.DOTALL)
_WITHOUT_CHECKSUM = b'{"format": 1,'


def folder_error(path: Path, problem: str) -> FileFormatError:
    """Return an error about a folder of a scene, or a file in it."""
    return FileFormatError(f"{path}: {problem}; write the folder again")


def unreadable(path: Path, error: OSError | MemoryError) -> FileFormatError:
    """Return the error for a file in a folder of a scene that the system does not read."""
    if isinstance(error, MemoryError):
        return FileFormatError(f"{path}: does not fit into memory; free some, and open the folder again")
    problem = f"cannot be read: {error.strerror or error}"
    return FileFormatError(f"{path}: {problem}; check its permissions, or write the folder again")


def write(path: Path, content: object) -> str:
    """Write a value; return its checksum."""
    text = json.dumps(content).encode()
    checksum = blake2b_of(text)
    with own_files.open_new(path) as file:
        file.write(b'{"checksum": "%s", "content": %s}' % (checksum.encode(), text))
    return checksum


class Checked(NamedTuple):
    """The value in a file, and its checksum."""

    content: Any
    checksum: str


def read(path: Path) -> Checked:
    """Return the value in a file; raise `FileFormatError` unless it is what was written."""
    try:
        if not path.is_file():
            raise folder_error(path, "is missing, or no regular file")
        data = path.read_bytes()
    except (OSError, MemoryError) as error:
        raise unreadable(path, error) from error
    if data.startswith(_WITHOUT_CHECKSUM):
        raise folder_error(path, "was written by another version of raybox, without checksums")
    parts = _FILE.fullmatch(data)
    if parts is None or blake2b_of(parts[2]) != parts[1].decode():
        raise folder_error(path, "is damaged: its checksum differs")
    return Checked(json.loads(parts[2]), parts[1].decode())
