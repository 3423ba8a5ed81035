"""Messages from a page, checked by a schema: exact fields, types and finite numbers."""

import json
import math
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from raybox.errors import InvalidInput

MAX_MESSAGE = 2**20  # bytes
MASK, UPLOAD_PART, PICTURE_PART = b"\1", b"\2", b"\3"
"""First bytes of binary messages."""


def _is_whole(value: object) -> bool:
    return type(value) is int and 0 <= value <= 2**53


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and abs(value) <= sys.float_info.max  # type: ignore[arg-type]


def _is_end(value: object) -> bool:
    return value is None or _is_number(value)


def _is_vector(value: object) -> bool:
    return isinstance(value, list) and len(value) == 3 and all(map(_is_number, value))


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 255


def _is_state(value: object) -> bool:
    return isinstance(value, dict) and value.get("version") == 1


Schema = Mapping[str, Callable[[object], bool]]
SCHEMA: Mapping[str, Schema] = {
    "pick": {"origin": _is_vector, "direction": _is_vector, "t_min": _is_end, "t_max": _is_end},
    "ray": {"row": _is_whole},
    "save": {"state": _is_state},
    "upload": {"name": _is_name, "size": _is_whole},
}
"""The fields of each kind of message, besides ``kind`` and ``seq``, and their checks."""


class Message(NamedTuple):
    """A message of a page that fits the schema; `seq` comes back in the answer."""

    kind: str
    seq: int
    fields: Mapping[str, Any]


def parse(text: str) -> Message:
    """Return a message; raise `InvalidInput` for text that does not fit the schema."""
    try:
        found = json.loads(text, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise _refusal("no JSON of finite numbers") from error
    kind = found.pop("kind", None) if isinstance(found, dict) else None
    if not isinstance(kind, str) or kind not in SCHEMA:
        raise _refusal(f"the kind {str(kind)[:40]!r}")
    schema = {"seq": _is_whole, **SCHEMA[kind]}
    for name in {**schema, **found}:
        if name not in schema or name not in found or not schema[name](found[name]):
            raise _refusal(f"{kind} with a wrong or missing field {name[:40]!r}")
    return Message(kind, found.pop("seq"), found)


def _finite(text: str) -> float:
    """Return the number in a text; raise `ValueError` for one that is not finite."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _refusal(found: str) -> InvalidInput:
    return InvalidInput(f"a message must fit the schema of the page; got {found}. Reload the page.")
