"""Values of records on disk, as JSON has them, and records of other values."""

import json

from raybox.io.manifest import MANIFEST
from raybox.store import record


def content_of(path):
    """Return the value of a record."""
    return json.loads(path.read_bytes())["value"]


def write_content(path, value, kind=MANIFEST):
    """Write a record of another value, with its right checksum."""
    path.write_bytes(record.encode(kind, value))
