"""Write the types of messages in TypeScript: python page/schema.py > page/src/schema.ts."""

import typing
from types import NoneType, UnionType

from raybox.viewer import messages

NAMES = {int: "number", float: "number", str: "string", bool: "boolean", NoneType: "null"}
LINE = 120  # characters
HEADING = (
    "/** Messages of page and server. Written by page/schema.py from raybox.viewer.messages; do not edit. */"
)


def text_of(form: object) -> str:
    """Return a type in TypeScript; types with fields stand for themselves by name."""
    origin, args = typing.get_origin(form), typing.get_args(form)
    if origin in (typing.Union, UnionType):
        return " | ".join(map(text_of, args))
    if origin is typing.Literal:
        return " | ".join(f'"{one}"' if isinstance(one, str) else str(one) for one in args)
    if origin is typing.Annotated:
        return text_of(args[0])
    if origin is tuple:
        return f"[{', '.join(map(text_of, args))}]"
    if origin is list:
        return f"{text_of(args[0])}[]"
    return NAMES.get(form) or form.__name__


def interface(form: type) -> str:
    """Return an interface with the fields of a type: one line, if it is short."""
    fields = [
        f"{name}{'' if name in form.__required_keys__ else '?'}: {text_of(one)}"
        for name, one in typing.get_type_hints(form).items()
    ]
    head = f"export interface {form.__name__} {{"
    line = f"{head} {'; '.join(fields)} }}"
    return line if len(line) <= LINE else "\n".join([head, *(f"  {one};" for one in fields), "}"])


def schema() -> str:
    """Return the text of ``page/src/schema.ts``."""
    forms = [one for one in vars(messages).values() if typing.is_typeddict(one)]
    names = ("Request", "Colors", "SceneFrame", "AnswerFrame", "ViewFrame", "FrameHeader")
    unions = {name: getattr(messages, name) for name in names}
    lines = [f"export type {name} = {text_of(one)};" for name, one in unions.items()]
    first = {"MASK": messages.MASK, "UPLOAD_PART": messages.UPLOAD_PART}
    first |= {"PICTURE_PART": messages.PICTURE_PART, "SELECTION": messages.SELECTION}
    numbers = [f"export const {name} = {value[0]};" for name, value in first.items()]
    parts = HEADING, "\n".join(map(interface, forms)), "\n".join(lines), "\n".join(numbers)
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    print(schema(), end="")
