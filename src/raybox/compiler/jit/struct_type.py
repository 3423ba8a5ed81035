"""Numba's types of structs: named tuples passed to compiled code by pointer.

Passed by value, each call would pass every number of every array, hundreds in a traversal, which takes a
quarter of the compile time. A struct is written to memory once, where Python calls compiled code; fields are
loaded where they are used.

Nothing writes to that memory during the call, and its loads are marked invariant, so that LLVM may reuse
loaded values. The origin of the pointer is hidden from LLVM, so that no load moves above the initial store.

Numba's types of arguments, from the text of their kinds (`raybox.compiler.kinds`).
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, lower_getattr_generic, models, register_model
from numba.np.numpy_support import from_dtype
from numpy import dtype

from raybox.compiler.struct_ref import STRUCTS


class StructRef(types.Type):
    """The type of a struct in memory.

    Nested named tuples are part of it.
    """

    def __init__(self, instance_class: type, members: tuple[Any, ...]) -> None:
        self.instance_class, self.types = instance_class, members
        self.fields: tuple[str, ...] = instance_class._fields  # type: ignore[attr-defined]
        super().__init__(f"struct {instance_class.__module__}.{instance_class.__qualname__}{members}")

    @property
    def mangling_args(self) -> tuple[str, tuple[Any, ...]]:
        """Short name for symbols, in which it is repeated a thousand times."""
        return f"{self.instance_class.__name__}.{hashlib.sha256(self.name.encode()).hexdigest()[:12]}", ()


def by_value(kind: Any) -> Any:
    """Return the type of the same tuple passed by value."""
    if not isinstance(kind, StructRef):
        return kind
    return types.BaseTuple.from_types([by_value(member) for member in kind.types], kind.instance_class)


@register_model(StructRef)
class _StructRefModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: StructRef) -> None:
        super().__init__(manager, kind, manager.lookup(by_value(kind)).get_value_type().as_pointer())


@infer_getattr
class _Attributes(AttributeTemplate):
    key = StructRef

    def generic_resolve(self, kind: StructRef, name: str) -> Any:
        return kind.types[kind.fields.index(name)] if name in kind.fields else None


@lower_getattr_generic(StructRef)
def load_field(context: Any, builder: Any, kind: StructRef, value: Any, name: str) -> Any:
    """Return a loaded field; of a nested struct, its address."""
    number = kind.fields.index(name)
    member, place = kind.types[number], cgutils.gep_inbounds(builder, value, 0, number)
    if isinstance(member, StructRef):
        return place
    if isinstance(member, types.Array) and member.layout == "C":
        return _load_array(context, builder, member, place)
    return _load(builder, place)


def _load_array(context: Any, builder: Any, kind: Any, place: Any) -> Any:
    """Return an array: address and shape are loaded, sizes and strides computed."""
    model = context.data_model_manager.lookup(kind)
    at = model.get_field_position
    size: Any = ir.IntType(64)(context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    array: Any = ir.Constant(model.get_value_type(), None)
    array = builder.insert_value(array, size, at("itemsize"))
    array = builder.insert_value(array, load_data(context, builder, kind, place), at("data"))
    stride, number = size, None
    for axis in reversed(range(kind.ndim)):
        long = _load(builder, cgutils.gep_inbounds(builder, place, 0, at("shape"), axis))
        array = builder.insert_value(array, long, [at("shape"), axis])
        array = builder.insert_value(array, stride, [at("strides"), axis])
        stride = builder.mul(stride, long) if axis else None
        number = long if number is None else builder.mul(number, long)
    return builder.insert_value(array, number, at("nitems"))


def load_data(context: Any, builder: Any, kind: Any, place: Any) -> Any:
    """Return the address of an array's first item.

    place: address of the array in a struct.
    """
    number = context.data_model_manager.lookup(kind).get_field_position("data")
    return _load(builder, cgutils.gep_inbounds(builder, place, 0, number))


def load_size(context: Any, builder: Any, kind: Any, place: Any) -> Any:
    """Return the number of items of an array.

    place: as for `load_data`.
    """
    number = context.data_model_manager.lookup(kind).get_field_position("shape")
    lengths = (cgutils.gep_inbounds(builder, place, 0, number, axis) for axis in range(kind.ndim))
    return reduce(builder.mul, [_load(builder, length) for length in lengths])


def _load(builder: Any, place: Any) -> Any:
    value = builder.load(place)
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value


_TOKEN = re.compile(r"([a-z]\d):(\d)(r?)|([\w.<>]*)\(|\)|[ifgbn]|,")
_NUMBERS = {
    "i": types.int64,
    "f": types.float64,
    "g": types.float32,
    "b": types.boolean,
    "n": types.none,
}


def types_of(kinds: str, classes: Mapping[str, type]) -> tuple[Any, ...]:
    """Return Numba's types of arguments. classes: the named tuples among them, by their names in `kinds`."""
    return tuple(_items(_TOKEN.finditer(kinds), classes, in_struct=False))


def _items(tokens: Iterator[re.Match[str]], classes: Mapping[str, type], *, in_struct: bool) -> Iterator[Any]:
    """Yield types up to the closing parenthesis. in_struct: named tuples are structs."""
    for token in tokens:
        if token[0] == ")":
            return
        if token[1]:
            yield types.Array(from_dtype(dtype(token[1])), int(token[2]), "C", readonly=bool(token[3]))
        elif token[0].endswith("("):
            yield _tuple_of(tokens, classes, classes.get(token[4]), in_struct)
        elif token[0] != ",":
            yield _NUMBERS[token[0]]


def _tuple_of(
    tokens: Iterator[re.Match[str]], classes: Mapping[str, type], named: type | None, in_struct: bool
) -> Any:
    is_struct = in_struct or named in STRUCTS
    members = tuple(_items(tokens, classes, in_struct=is_struct))
    if named and len(members) != len(fields := named._fields):  # type: ignore[attr-defined]
        raise TypeError(
            f"{named.__qualname__} has the {len(fields)} fields {', '.join(fields)}; got {len(members)}"
        )
    if named is None or not is_struct:
        return types.BaseTuple.from_types(members, named)
    return StructRef(named, members)
