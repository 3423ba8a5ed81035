"""Named tuples of many arrays, handed from function to function as one pointer.

To Numba such a tuple is a value like any other: each call hands on all its numbers, 275 of them in the walk
of a tree, and each function puts them together again. That was half of what LLVM was given to read, and a
quarter of the time of compiling `nearest` (measured). A tuple of a class that is `held` here is written to
memory once, where Python calls compiled code; what is needed of it is loaded where it is needed.

Nothing writes to that memory while the call lasts, and loads say so: LLVM keeps what it has loaded, whatever
else is written. It cannot tell where the pointer comes from, so no load moves before what was written there.
"""

import hashlib
from typing import Any, TypeVar

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)

C = TypeVar("C", bound=type)


class Held(types.Type):
    """The type of a named tuple in memory; those within it are part of it."""

    def __init__(self, instance_class: type, members: tuple[Any, ...]) -> None:
        self.instance_class, self.types = instance_class, members
        self.fields: tuple[str, ...] = instance_class._fields  # type: ignore[attr-defined]
        super().__init__(f"held {instance_class.__module__}.{instance_class.__qualname__}{members}")

    @property
    def mangling_args(self) -> tuple[str, tuple[Any, ...]]:
        """A short name: the whole one would be repeated a thousand times."""
        return f"{self.instance_class.__name__}.{hashlib.sha256(self.name.encode()).hexdigest()[:12]}", ()


def held(cls: C) -> C:
    """Have compiled code take named tuples of a class as `Held`."""
    typeof_impl.register(cls)(_typeof)
    return cls


def _typeof(value: Any, context: Any) -> Held:
    inner = (
        _typeof(item, context) if hasattr(item, "_fields") else typeof_impl(item, context) for item in value
    )
    return Held(type(value), tuple(inner))


def _plain(kind: Any) -> Any:
    """Return the type of the tuple itself."""
    if not isinstance(kind, Held):
        return kind
    return types.BaseTuple.from_types([_plain(member) for member in kind.types], kind.instance_class)


@register_model(Held)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Held) -> None:
        super().__init__(manager, kind, manager.lookup(_plain(kind)).get_value_type().as_pointer())


@infer_getattr
class _Attributes(AttributeTemplate):
    key = Held

    def generic_resolve(self, kind: Held, name: str) -> Any:
        return kind.types[kind.fields.index(name)] if name in kind.fields else None


@lower_getattr_generic(Held)
def load_field(context: Any, builder: Any, kind: Held, value: Any, name: str) -> Any:
    """Load an item; of one that is held, too, return where it is."""
    number = kind.fields.index(name)
    member, place = kind.types[number], cgutils.gep_inbounds(builder, value, 0, number)
    if isinstance(member, Held):
        return place
    if isinstance(member, types.Array) and member.layout == "C":
        return _load_array(context, builder, member, place)
    return _load(builder, place)


def _load_array(context: Any, builder: Any, kind: Any, place: Any) -> Any:
    """Load where an array is and its shape; the rest follows."""
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
    """Load the address of an array's first item. place: the array's in a held tuple."""
    number = context.data_model_manager.lookup(kind).get_field_position("data")
    return _load(builder, cgutils.gep_inbounds(builder, place, 0, number))


def load_size(context: Any, builder: Any, kind: Any, place: Any) -> Any:
    """Load how long an array of one dimension is."""
    number = context.data_model_manager.lookup(kind).get_field_position("shape")
    return _load(builder, cgutils.gep_inbounds(builder, place, 0, number, 0))


def _load(builder: Any, place: Any) -> Any:
    value = builder.load(place)
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value


@unbox(Held)
def _unbox(kind: Held, given: Any, c: Any) -> Any:
    native = c.unbox(_plain(kind), given)
    place = cgutils.alloca_once(c.builder, native.value.type)
    c.builder.store(native.value, place)
    unknown = ir.FunctionType(place.type, [place.type])
    pointer = c.builder.asm(unknown, "", "=r,0,~{memory}", [place], side_effect=True)
    return NativeValue(pointer, is_error=native.is_error, cleanup=native.cleanup)
