"""Labels of objects as the page reads them: classes, numbers or text."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox.viewer.stage import Columns

NAMES = ("name", "Name", "label", "title")
"""Labels that name objects, the first that a scene has."""
CLASSES = ("ifc_class", "type", "class", "category", "label", "kind", "material", "color")
LEVELS = ("storey", "level", "floor", "layer")
_MAX_WORDS = 2_000  # distinct, of a label that is a class
_CLASS_WORDS = 24  # distinct, that make a class of any label


class EncodedLabel(NamedTuple):
    """A label: its entry in the header of a scene, and the array of codes or numbers, if it has one."""

    entry: dict[str, object]
    values: NDArray[Any] | None


def label_columns(labels: Columns) -> list[EncodedLabel]:
    """Return the labels of all objects as numbers, classes or text; those without any value are none."""
    columns = (_column(name, values) for name, values in labels.items())
    return [one for one in columns if one.entry.get("words", [""])]


def roles(columns: list[EncodedLabel]) -> dict[str, str | None]:
    """Return which labels name objects, class them and give their storey; None without."""
    texts = [str(one.entry["name"]) for one in columns if one.entry["kind"] != "number"]
    words = {str(one.entry["name"]): len(one.entry.get("words", ())) for one in columns}  # type: ignore[arg-type]
    small = [name for name, count in words.items() if 1 < count <= _CLASS_WORDS]
    classes = _first((*CLASSES, *small), [name for name, count in words.items() if count])
    names = _first(NAMES, [name for name in texts if name != classes])
    return {"names": names, "classes": classes, "levels": _first(LEVELS, texts)}


def _first(wanted: tuple[str, ...], present: list[str]) -> str | None:
    return next((name for name in wanted if name in present), None)


def _column(name: str, values: NDArray[Any]) -> EncodedLabel:
    if values.dtype.kind in "fiu":
        return _numbers(name, values)
    listed = values.tolist()
    present = [value for value in listed if value is not None and value == value]
    if present and all(isinstance(value, int | float) and not isinstance(value, bool) for value in present):
        return _numbers(name, np.array([np.nan if value is None else value for value in listed], np.float64))
    texts = [None if value is None or value != value else str(value) for value in listed]
    words = sorted({text for text in texts if text is not None})
    if name in LEVELS or len(words) <= min(_MAX_WORDS, max(_CLASS_WORDS, len(texts) // 4)):
        return _classes(name, texts, words)
    return EncodedLabel({"name": name, "kind": "text", "values": texts}, None)


def _numbers(name: str, values: NDArray[Any]) -> EncodedLabel:
    return EncodedLabel({"name": name, "kind": "number"}, values.astype(np.float64))


def _classes(name: str, texts: list[str | None], words: list[str]) -> EncodedLabel:
    dtype, missing = (np.uint16, 2**16 - 1) if len(words) < 2**16 - 1 else (np.uint32, 2**32 - 1)
    codes: dict[str | None, int] = {word: code for code, word in enumerate(words)} | {None: missing}
    column = np.fromiter((codes[text] for text in texts), dtype, len(texts))
    return EncodedLabel({"name": name, "kind": "class", "words": words}, column)
