"""What the module of a primitive has for compiled code: kernels, which Numba picks by the class of the rows.

`raybox.primitives.table` checks the modules against these protocols, and makes the functions of the same
names and types that compiled code calls.
"""

from typing import Protocol, TypeVar

from raybox.exact.double_double import Vector3
from raybox.primitives.box_lengths import CrossingRays, PairSpan
from raybox.primitives.box_simd import Numbers, Pairs
from raybox.validation import Floats

R_contra = TypeVar("R_contra", contravariant=True)  # the class of the rows
A_contra = TypeVar("A_contra", contravariant=True)  # the class of the ray: for instances, `InstanceRay`


class Primitive(Protocol[R_contra, A_contra]):
    """The kernels of every primitive; a ray's range is not empty."""

    def bounds(self, rows: R_contra, /) -> tuple[Floats, Floats]:
        """Return the bounds of the primitives, lower and upper, (M, 3) each: plain NumPy."""
        ...

    def intersect(self, rows: R_contra, ray: A_contra, i: int, /) -> tuple[bool, float]:
        """Return (hit, first contact rounded once) of primitive i."""
        ...

    def tie(self, rows: R_contra, ray: A_contra, i: int, j: int, /) -> int:
        """Compare first contacts with primitives i and j, both hit, exactly: -1, 0 or 1."""
        ...

    def span(self, rows: R_contra, ray: A_contra, i: int, /) -> tuple[float, float]:
        """Return where the whole line enters and leaves primitive i, which it hits."""
        ...

    def normal(self, rows: R_contra, ray: A_contra, i: int, /) -> Vector3:
        """Return the unit normal at the first contact."""
        ...

    def weights(self, rows: R_contra, ray: A_contra, i: int, /) -> tuple[float, float]:
        """Return the barycentric weights at the first contact."""
        ...


class VectorPrimitive(Protocol[R_contra]):
    """The kernels for many pairs at a time; exact: rows of rays, see `raybox.traversal.ray_setup`."""

    def prefetch_rows(self, rows: R_contra, i: int, /) -> None:
        """Prefetch the numbers of primitive i."""
        ...

    def classify(self, rows: R_contra, exact: Floats, pairs: Pairs, count: int, /) -> None:
        """Write the status of pairs, and bounds of their first contacts to `low` and `high`."""
        ...

    def first_contacts(self, rows: R_contra, exact: Floats, pairs: Pairs, count: int, /) -> None:
        """Write first contacts of hits, rounded once, to `low`, and the status: `HIT` or `UNDECIDED`."""
        ...

    def certain_order(self, rows: R_contra, exact: Floats, ray: int, i: int, j: int, /) -> int:
        """Return the order of first contacts with primitives i and j, both hit, or `UNKNOWN_ORDER`."""
        ...


class LongPrimitive(Protocol[R_contra]):
    """The kernel of primitives that rays are inside of."""

    def write_lengths(
        self, rows: R_contra, rays: CrossingRays, pairs: Numbers, span: PairSpan, lengths: Floats, /
    ) -> None:
        """Write how long rays are inside of primitives that they hit: see `raybox.primitives.box_lengths`."""
        ...
