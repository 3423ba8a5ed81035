"""Messages between a page and the server, and their check: the one schema of both sides.

``page/schema.py`` writes the same types in TypeScript, ``page/src/schema.ts``. A field is JSON: int is a
whole number from 0 to 2**53, float a finite number, tuple an array of that length.
"""

# ruff: noqa: UP013  # one line for a message: the schema is read as a table

import json
import sys
import typing
from types import UnionType
from typing import Annotated, Any, Literal, TypeAlias, TypedDict, Union, cast, get_args, get_type_hints

from raybox.errors import InvalidInput

MAX_MESSAGE = 2**20  # bytes
MASK, UPLOAD_PART, PICTURE_PART, SELECTION = b"\1", b"\2", b"\3", b"\4"
"""First bytes of binary messages: bits of objects that rays may hit; parts of files, and of pictures; bits of
selected objects."""
Vector: TypeAlias = tuple[float, float, float]
Name: TypeAlias = Annotated[str, 255]  # of 1 to 255 characters


class RayFields(TypedDict):
    """A ray; None is an infinite end of its range."""

    origin: Vector
    direction: Vector
    t_min: float | None
    t_max: float | None


class PickRay(RayFields):
    """Casts a ray, and has its hits as answer; "picked" states that the user has, and has none."""

    kind: Literal["pick", "picked"]
    seq: int


# Of a page; `seq` comes back in the answer. A state has more fields, which are the page's own.
PickRow = TypedDict("PickRow", {"kind": Literal["ray"], "seq": int, "row": int})
SavedState = TypedDict("SavedState", {"version": Literal[1]})
SavePage = TypedDict("SavePage", {"kind": Literal["save"], "seq": int, "state": SavedState})
BeginUpload = TypedDict("BeginUpload", {"kind": Literal["upload"], "seq": int, "name": Name, "size": int})
Request: TypeAlias = PickRay | PickRow | SavePage | BeginUpload

# What Python sets of a view; objects to hide and to show are ranges: first, last, first, last, ...
Up = Literal["x", "y", "z"]
Camera = TypedDict(
    "Camera",
    {"eye": Vector, "target": Vector, "up": Up, "orthographic": bool, "height": float, "fov": float},
)
ByLabel = TypedDict("ByLabel", {"by": Literal["label"], "label": str})
ByOther = TypedDict("ByOther", {"by": Literal["file", "class", "height", "plain"]})
Colour: TypeAlias = ByLabel | ByOther
ViewFields = TypedDict(
    "ViewFields",
    {"camera": Camera, "colour": Colour, "selection": list[int], "hide": list[int], "show": list[int]},
    total=False,
)

# Headers of frames. A session is the same as long as a server runs; "renumber" precedes a scene that keeps
# the view: runs of objects as (number before, number, count). `seq` is 0 or None of what answers no request.
Begin = TypedDict("Begin", {"kind": Literal["begin"], "session": str, "version": str, "view": ViewFields})
Renumber = TypedDict("Renumber", {"kind": Literal["renumber"], "runs": list[tuple[int, int, int]]})
ChangeView = TypedDict("ChangeView", {"kind": Literal["view"], "view": ViewFields})
Progress = TypedDict("Progress", {"kind": Literal["progress"], "text": str, "fraction": float})
DrawPicture = TypedDict("DrawPicture", {"kind": Literal["picture"], "scale": float})
Failure = TypedDict("Failure", {"kind": Literal["error"], "text": str, "seq": int | None})
FileHeader = TypedDict("FileHeader", {"kind": Literal["file"], "seq": int, "name": str})
Uploaded = TypedDict("Uploaded", {"kind": Literal["state"], "seq": int, "text": str})
End = TypedDict("End", {"kind": Literal["end"], "text": str})


class HitsHeader(RayFields):
    """Heads the hits of a ray; `row` in the table of rays."""

    kind: Literal["hits"]
    seq: int
    row: int | None
    total: int


# A geometry's arrays have its number as prefix. A colour is "#rrggbb", or None for the page's own; `Colors`
# are those of runs of rows, and how many rows each has. A label without words has numbers.
Kind = Literal["boxes", "mesh", "instances", "grid", "planes"]
GeometryHeader = TypedDict(
    "GeometryHeader",
    {"type": Kind, "primitives": int, "firstObject": int, "objects": int, "color": str | None},
)
LabelHeader = TypedDict("LabelHeader", {"name": str, "words": list[str] | None})
Colors: TypeAlias = list[tuple[str | None, int]]


class SceneHeader(TypedDict):
    """Heads a scene; `follow` has the kinds of the frames that belong to it and come next."""

    kind: Literal["scene"]
    name: str
    credit: str
    unit: str
    up: Up
    follow: list[str]
    geometries: list[GeometryHeader]
    labels: list[LabelHeader]
    ids: list[str] | None


RaysHeader = TypedDict("RaysHeader", {"kind": Literal["rays"], "total": int, "colors": Colors})
TableHeader = TypedDict("TableHeader", {"kind": Literal["table"], "total": int})
PointsHeader = TypedDict("PointsHeader", {"kind": Literal["points"], "fields": list[str], "colors": Colors})
SceneFrame: TypeAlias = SceneHeader | RaysHeader | TableHeader | PointsHeader
AnswerFrame: TypeAlias = HitsHeader | FileHeader | Uploaded | Failure
ViewFrame: TypeAlias = Begin | Renumber | ChangeView | Progress | DrawPicture | End
FrameHeader: TypeAlias = SceneFrame | AnswerFrame | ViewFrame
FORMS = {kind: form for form in get_args(Request) for kind in get_args(get_type_hints(form)["kind"])}


def parse(text: str) -> Request:
    """Return a message of a page; raise `InvalidInput` for text that does not fit the schema."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _refusal("no JSON") from error
    kind = found.get("kind") if isinstance(found, dict) else None
    if not isinstance(kind, str) or kind not in FORMS:
        raise _refusal(f"the kind {str(kind)[:40]!r}")
    fields = get_type_hints(FORMS[kind], include_extras=True)
    for name in {**fields, **found}:
        if name not in fields or name not in found or not is_valid(found[name], fields[name]):
            raise _refusal(f"{kind} with a wrong or missing field {name[:40]!r}")
    return cast("Request", found)


def is_valid(value: object, form: Any) -> bool:
    """Return whether JSON has a type of the schema; a nested object may have more fields."""
    origin, args = typing.get_origin(form), get_args(form)
    if origin in (Union, UnionType):
        return any(is_valid(value, one) for one in args)
    if origin is Annotated:
        return is_valid(value, args[0]) and 0 < len(cast("str", value)) <= args[1]
    if origin is Literal:
        return type(value) is type(args[0]) and value in args
    if origin is tuple:
        return isinstance(value, list) and len(value) == len(args) and all(map(is_valid, value, args))
    if typing.is_typeddict(form):
        fields = get_type_hints(form, include_extras=True).items()
        return isinstance(value, dict) and all(is_valid(value.get(name), one) for name, one in fields)
    if form is int:
        return type(value) is int and 0 <= value <= 2**53
    if form is float:
        return type(value) in (int, float) and abs(cast("float", value)) <= sys.float_info.max
    return type(value) is form


def _refusal(found: str) -> InvalidInput:
    return InvalidInput(f"a message must fit the schema of the page; got {found}. Reload the page.")
