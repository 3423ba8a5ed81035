"""What a query is: everything that scenes and files need of it, declared in one place.

A query is one file (or one folder) next to this one and one line of `raybox.queries.table`. How it records
hits in compiled code is declared by its hooks (`raybox.traversal.protocol`); the rest is NumPy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import (
    Any,
    Generic,
    NamedTuple,
    Never,
    Protocol,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
)

from raybox.errors import InvalidInput
from raybox.geometry import Cull, PrimitiveRows, RayRows, Rays
from raybox.hits import Hits
from raybox.hits.file_columns import FileColumns
from raybox.hits.hit_ids import Source
from raybox.traversal.job import Job
from raybox.traversal.protocol import Hooks
from raybox.validation import ArrayInput, MaskInput

Opt = TypeVar("Opt")  # what a query takes beside rays, as a NamedTuple; None for most
Opt_contra = TypeVar("Opt_contra", contravariant=True)
Res = TypeVar("Res")  # a NamedTuple of arrays: the results of one query, not yet public
Res_co = TypeVar("Res_co", covariant=True)
Public = TypeVar("Public")  # what users get


class RunOne(Protocol[Opt_contra, Res_co]):
    """Run a query on one geometry of several."""

    def __call__(self, job: Job, rays: RayRows, options: Opt_contra = ..., /) -> Res_co:
        """Return the results of one geometry; options: those that differ from geometry to geometry."""
        ...


class Request(NamedTuple):
    """Rays as kernels read them, and of each geometry of a scene the job and the first id."""

    jobs: tuple[Job, ...]
    starts: tuple[int, ...]
    rays: RayRows


class Target(NamedTuple):
    """What a query runs on, as far as its options depend on it."""

    rows: tuple[PrimitiveRows, ...]
    """of each geometry"""
    counts: tuple[int, ...]
    """the length of each geometry"""
    is_list: bool
    """whether the user made the scene of a list"""
    workers: int
    """for checks of many numbers; -1: all cores"""


GroupsInput: TypeAlias = ArrayInput | None
"""The groups of primitives, or of rays, as users pass them."""
ExcludeInput: TypeAlias = ArrayInput | Hits | tuple[ArrayInput, ArrayInput, ArrayInput] | None
"""A primitive for each ray."""
ExcludeObjectInput: TypeAlias = ArrayInput | Hits | None
"""An object for each ray."""


class RunOptions(TypedDict, total=False):
    """How a query is run: the arguments of the methods, with their defaults -1, False and None."""

    workers: int
    progress: bool
    where: MaskInput
    cull: Cull
    groups: GroupsInput
    exclude: ExcludeInput
    exclude_object: ExcludeObjectInput


class Query(NamedTuple, Generic[Opt, Res, Public]):
    """One query."""

    name: str
    """of the scene's method, of ``--query``, and of the column of a result that is one number a ray"""
    hooks: tuple[Hooks, ...]
    run: Callable[[Job, RayRows, Opt, int, bool], Res]
    """(job, rays, options, workers, whether progress is shown) -> results of one geometry"""
    merge_geometries: Callable[[Request, RunOne[Opt, Res], Opt], Res]
    """results of several geometries; the `RunOne` returns those of one"""
    present: Callable[[Res, tuple[int, ...], Source, Opt], Public]
    """(results, shape of the rays, source, options) -> what users get"""
    columns: FileColumns | None = None
    prepare: Callable[[Any, Rays, Target], Opt] | None = None
    """check options against rays and geometries, and return them as the other functions read them"""


def refuse_more(more: tuple[Never, ...], method: str) -> None:
    """Raise `InvalidInput` for origins and directions in place of rays."""
    if more:
        raise InvalidInput(
            f"{method} takes rays, and other arguments by name; got {1 + len(more)} without a name. "
            f"Of origins and directions: scene.{method}(raybox.Rays(origins, directions))."
        )


class RunsQueries(ABC):
    """The base of the classes that give a scene the methods of queries."""

    @abstractmethod
    def _run(
        self,
        query: Query[Opt, Res, Public],
        rays: Rays,
        options: Any = None,
        **how: Unpack[RunOptions],
    ) -> Public:
        """Return the public results of a query for all rays."""
