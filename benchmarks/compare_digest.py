"""Checksums of results, by the bytes of every public array: two NaNs of different bits differ."""

import hashlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

Pairs = Iterator[tuple[str, Any]]


def digests(result: Any) -> dict[str, str]:
    """Return a checksum for each field of a result, by the field's name."""
    sums: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, value in _flat("", result):
            sums.setdefault(name, hashlib.blake2b(digest_size=16)).update(_bytes(value))
    return {name: checksum.hexdigest() for name, checksum in sums.items()}


def _flat(name: str, value: Any) -> Pairs:
    """Yield arrays and plain values with their names; rows of a list share their names."""
    if isinstance(value, np.ndarray | np.generic | bool | int | float | str | bytes | None):
        yield name or "array", value
    elif isinstance(value, Path):
        yield from _file(name, value)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(f"{name}.{key}".strip("."), item)
    elif hasattr(value, "_asdict"):
        yield from _flat(name, value._asdict())
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _flat(name, item)
    else:
        yield from _public(name, value)


def _public(name: str, value: Any) -> Pairs:
    """Yield every public attribute of an object that is an array or a plain value, and its pictures."""
    for field in sorted(dir(type(value))):
        if not field.startswith("_"):
            try:
                item = getattr(value, field)
            except ValueError:
                continue  # ids of a geometry that has none
            if not callable(item):
                yield from _flat(f"{name}.{field}".strip("."), item)
    if hasattr(value, "offsets") and hasattr(value, "lengths") and value.shape[:1] not in ((), (0,)):
        yield from _flat(f"{name}.ray", value[len(value) // 2])
    if hasattr(value, "image") and len(value.shape) == 2:
        for kind in ("depth", "index", "normal"):
            yield f"{name}.image.{kind}".strip("."), value.image(kind)


def _bytes(value: Any) -> Any:
    if isinstance(value, str | bytes | None):
        return repr(value).encode()
    array = np.ascontiguousarray(value)
    if array.dtype == object:
        return repr(array.tolist()).encode()
    return f"{array.dtype.str}{np.shape(value)}".encode() + array.tobytes()


def _file(name: str, path: Path) -> Pairs:
    """Yield the arrays of a file, without the bytes of its container."""
    if path.suffix == ".parquet":
        yield from _parquet(name, path)
    elif path.suffix == ".npy":
        yield name, np.load(path)
    elif path.suffix == ".npz":
        with np.load(path) as archive:
            for key in archive.files:
                yield f"{name}.{key}", archive[key]
    else:
        yield name, path.read_bytes()


def _parquet(name: str, path: Path) -> Pairs:
    from pyarrow import parquet

    table = parquet.read_table(path)
    yield f"{name}.columns", str([(field.name, str(field.type)) for field in table.schema])
    for column in table.column_names:
        chunks = table[column].combine_chunks()
        yield f"{name}.{column}", chunks.drop_null().to_numpy(zero_copy_only=False)
        yield f"{name}.{column}.missing", chunks.is_null().to_numpy(zero_copy_only=False)
