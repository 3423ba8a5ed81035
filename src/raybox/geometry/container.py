"""What scenes need of a geometry."""

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Geometry(Protocol):
    """A frozen container of primitives: boxes, a mesh, planes, instances, or one that a user registered."""

    @property
    def ndim_space(self) -> int:
        """D, the dimensions of space: 2 or 3."""
        ...

    def rows(self) -> Any:
        """Return the primitives as the kernels read them: a NamedTuple of arrays."""
        ...

    def __len__(self) -> int: ...
