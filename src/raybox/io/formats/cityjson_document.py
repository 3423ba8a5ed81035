"""The JSON of CityJSON and of CityJSONSeq: objects, vertices in world coordinates, templates.

A sequence (``.city.jsonl``) is a header with the transform, then features with vertices of their own. Of a
name that stands twice in a JSON object, the last value counts where it moves no geometry, such as among
attributes; a repeated id, or a repeated name that is read here, is an error.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from raybox.io.formats.common import Floats, file_error, quoted, reason

MALFORMED = (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError, OverflowError)
CHECK = "check it with a CityJSON validator"
_VERSIONS = ("1.0", "1.1", "2.0")
_READ = {
    *("type", "version", "transform", "scale", "translate", "CityObjects", "vertices", "parents", "geometry"),
    *("lod", "boundaries", "geometry-templates", "templates", "vertices-templates", "template"),
    "transformationMatrix",
}
"""The names whose values decide where surfaces are, or which of them are read."""
_REPEATED = "values whose name stands twice in one JSON object, all but the last"
_EPSG = re.compile(r"EPSG[:/](?:[^:/]*[:/])?(\d{4,6})")
_UNITS = {
    "degree": {4326, 4979, 4258, 4937, 4269, 4612, 6668, 6697},
    "US survey foot": {2263, 6539},
    "metre": {
        *(7415, 28992, 28991, 31370, 2056, 21781, 27700, 2154, 3067, 3006, 3301, 5514, 2180, 3414, 3857),
        *(*range(25828, 25839), *range(32601, 32661), *range(32701, 32761), *range(5554, 5557)),  # UTM
        *(*range(31466, 31470), *range(30161, 30180), *range(6669, 6688)),  # Gauss and Krüger; Japan
    },
}
"""Some codes of reference systems: the database of all has thousands."""

Json = dict[str, Any]


class CityObject(NamedTuple):
    """A city object, which vertices its numbers count from, and the appearance that has its materials."""

    item: Json
    first_vertex: int
    vertex_count: int
    appearance: Json


class City(NamedTuple):
    """The objects of a file, its vertices in world coordinates, its templates and their vertices."""

    path: Path
    objects: dict[str, CityObject]
    vertices: Floats
    templates: list[Json]
    template_vertices: Floats
    has_parts: bool
    """whether any object has a parent"""
    units: str | None
    skipped: Counter[str]
    appearance: Json
    """of templates, and of objects of a sequence that have none of their own"""


class _Repeating(dict[str, Any]):
    """A JSON object in which names stand twice: these."""

    names: list[str]


def read_city(path: Path) -> City:
    """Return the content of a document, or of a sequence."""
    content = path.read_bytes()
    try:
        return _city(path, content.decode(json.detect_encoding(content), "surrogatepass"))
    except UnicodeDecodeError as error:
        problem = f"is no text in UTF-8: byte {error.start} cannot be decoded"
        raise file_error(path, problem, "save it as UTF-8") from error
    except json.JSONDecodeError as error:
        problem, place = f"is not whole JSON: {error.msg}", f"line {error.lineno}, column {error.colno}"
        raise file_error(path, problem, "copy or download it again", place) from error
    except MALFORMED as error:
        raise file_error(path, f"is not laid out as CityJSON{reason(error)}", CHECK) from error


def _city(path: Path, text: str) -> City:
    documents, skipped = _documents(text)
    header = documents[0]
    _check_kind(header, path)
    blocks = [table(document["vertices"]) for document in documents]
    first_vertex = np.cumsum([0, *map(len, blocks)]).tolist()
    objects: dict[str, CityObject] = {}
    appearance: Json = header.get("appearance") or {}
    for document, first, block in zip(documents, first_vertex, blocks, strict=False):
        if document is not header and (own := {"transform", "geometry-templates"} & document.keys()):
            raise ValueError(f"a feature has {' and '.join(sorted(own))} of its own")
        for name, item in document["CityObjects"].items():
            if name in objects:
                raise ValueError(f"the city object {quoted(name)} stands twice")
            parents, attributes = item.get("parents") or [], item.get("attributes") or {}
            if not isinstance(parents, list) or not isinstance(attributes, dict):
                problem = "its parents are no list, or its attributes no JSON object"
                raise file_error(path, problem, CHECK, f"city object {name!r}")
            objects[name] = CityObject(item, first, len(block), document.get("appearance") or appearance)
    vertices = np.concatenate(blocks)
    if transform := header.get("transform"):
        vertices = vertices * numbers(transform["scale"], "scales", 3)
        vertices += numbers(transform["translate"], "translations", 3)
    templates = header.get("geometry-templates") or {}
    of_templates = (templates.get("templates", []), table(templates.get("vertices-templates", [])))
    has_parts = any(one.item.get("parents") for one in objects.values())
    units = _units(header.get("metadata"))
    return City(path, objects, vertices, *of_templates, has_parts, units, skipped, appearance)


def _units(metadata: Any) -> str | None:
    """Return the unit of the reference system; of a compound one, the first code is that of x and y."""
    text = str(metadata.get("referenceSystem")) if isinstance(metadata, dict) else ""
    code = int(found[1]) if (found := _EPSG.search(text)) else 0
    by_code = (unit for unit, codes in _UNITS.items() if code in codes)
    return "degree" if "CRS84" in text else next(by_code, None)


def _documents(text: str) -> tuple[list[Json], Counter[str]]:
    """Return the document of a text, or the header and the features, and the count of repeated names."""
    repeating: list[_Repeating] = []

    def as_object(pairs: list[tuple[str, Any]]) -> Json:
        found = dict(pairs)
        if len(found) < len(pairs):
            found = _Repeating(found)
            found.names = [*(Counter(name for name, _ in pairs) - Counter(found.keys())).elements()]
            repeating.append(found)
        return found

    documents: list[Json] = []
    decoder, text, end = json.JSONDecoder(object_pairs_hook=as_object), text.rstrip(), 0
    while end < len(text) or not documents:
        start = next((at for at in range(end, len(text)) if not text[at].isspace()), 0)
        document, end = decoder.raw_decode(text, start)
        if documents and not (isinstance(document, dict) and document.get("type") == "CityJSONFeature"):
            raise json.JSONDecodeError("Extra data", text, start)
        documents.append(document)
    lost = sum(_count_lost(document) for document in documents) if repeating else 0
    return documents, Counter({_REPEATED: lost} if lost else {})


def _count_lost(value: Any, is_read: bool = True, are_ids: bool = False) -> int:
    """Return how many values repeated names lose; raise ValueError if one of them is read.

    are_ids: the names are those of city objects, which all count.
    """
    if isinstance(value, list):
        return sum(_count_lost(one, is_read) for one in value)
    if not isinstance(value, dict):
        return 0
    lost = value.names if isinstance(value, _Repeating) else []
    count = len(lost)
    for name, one in value.items():
        counts = is_read and (are_ids or name in _READ)
        if counts and name in lost:
            raise ValueError(f"the name {quoted(name)} stands twice in one JSON object")
        count += _count_lost(one, counts, is_read and name == "CityObjects")
    return count


def _check_kind(document: Any, path: Path) -> None:
    """Raise `FileFormatError` unless a document is a CityJSON city of a known version."""
    kind = document.get("type") if isinstance(document, dict) else None
    if kind == "CityJSONFeature":
        problem = "begins with a CityJSONFeature, not with the header that has the transform (CityJSONSeq)"
        raise file_error(path, problem, "put the first line of the sequence before it")
    if kind != "CityJSON":
        problem = 'is JSON, but not a CityJSON city ("type": "CityJSON")'
        raise file_error(path, problem, "give a CityJSON file")
    version = str(document.get("version", _VERSIONS[-1]))
    if not version.startswith(_VERSIONS):
        problem = f"is CityJSON {quoted(version)}; supported are versions {', '.join(_VERSIONS)}"
        raise file_error(path, problem, "convert it, for instance with cjio")


def table(rows: list[list[float]]) -> Floats:
    """Return vertices; raise ValueError for an integer that float64 rounds."""
    if not set(map(len, rows)) <= {3}:
        raise ValueError("vertices are not rows of 3 numbers")
    found = numbers(list(chain.from_iterable(rows)), "vertices", 3 * len(rows)).reshape(-1, 3)
    for row in np.flatnonzero((np.abs(found) >= 2.0**53).any(axis=1)):
        for value, number in zip(rows[row], found[row].tolist(), strict=True):
            if value != number:
                raise ValueError(f"vertex {row} has the number {value}, which float64 rounds")
    return found


def numbers(values: list[Any], what: str, count: int) -> Floats:
    """Return JSON numbers as an array; raise ValueError unless there are `count`."""
    if len(values) != count or not set(map(type, values)) <= {int, float}:
        raise ValueError(f"{what}: these are not {count} numbers")
    return np.array(values, dtype=np.float64)


def ancestors(objects: dict[str, CityObject], name: str) -> Iterator[str]:
    """Yield the parents of an object that are there, then theirs; a group is no parent, nor is a circle."""
    passed = [name]
    for one in passed:  # grows meanwhile
        for parent in map(str, objects[one].item.get("parents") or []):
            is_there = parent in objects and objects[parent].item.get("type") != "CityObjectGroup"
            if is_there and parent not in passed:
                passed.append(parent)
                yield parent
