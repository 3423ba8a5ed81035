"""What a query is: everything that scenes, parts of scenes and files need of it, declared in one place.

A query is one file (or one folder) beside this one and one line of `raybox.queries.table`. How it records
hits in compiled code is declared by its hooks (`raybox.traversal.protocol`); the rest is NumPy.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from raybox.geometry import Cull, RayRows, Rays
from raybox.hits.hit_ids import Source
from raybox.queries.columns import ChunkResults
from raybox.traversal.job import Job
from raybox.traversal.protocol import Hooks
from raybox.validation import Floats, Ints

FileQuery = Literal["nearest", "occluded", "count", "all", "segments", "integrate", "deposit"]
"""A query whose results can be written to a file."""

Results = Any
"""A NamedTuple of arrays: the results of one query, not yet public."""

Options = Any
"""What a query takes beside rays, as a NamedTuple; None for most."""

Run = Callable[..., Results]
"""(job) -> the results of one geometry; options that differ from geometry to geometry follow by name"""


class RunQuery(Protocol):
    """Run a query on one geometry."""

    def __call__(self, job: Job, options: Options, workers: int, progress: bool) -> Results:
        """Return the results for all rays of a job."""
        ...


class Request(NamedTuple):
    """Rays for each geometry of a scene, laid out for the kernels, and the first id of each geometry."""

    jobs: tuple[Job, ...]
    starts: tuple[int, ...]


class Target(NamedTuple):
    """What a query runs on, as far as its options depend on it."""

    rows: tuple[Any, ...]
    """of each geometry; of a scene in parts, none, but of their class"""
    counts: tuple[int, ...]
    """the length of each geometry"""
    is_list: bool
    """whether the user made the scene of a list"""
    workers: int
    """for checks of many numbers; -1: all cores"""


class PartMerger(Protocol):
    """Results of a scene in parts, so far: parts are visited one by one, near ones first."""

    @property
    def limit(self) -> Floats:
        """For each ray, the time after which a part cannot change its result; NaN: no part can."""
        ...

    def visit(self, part: Any, which: Ints, how: dict[str, Any]) -> None:
        """Merge the results of one part for the rays `which`; how: arguments of its scene's query."""
        ...

    def results(self) -> tuple[Results, Any]:
        """Return the results, and the rows of the primitives that were hit."""
        ...


class Argument(Enum):
    """What a cast passes to a query beside rays."""

    PER_PRIMITIVE = "an array with a row for each primitive, or in the shape of a grid"
    PER_RAY = "an array with a row for each ray of the file, of which each chunk gets its own"
    OPTION = "any other value"


Rows = Literal["rays", "hits", "primitives"]
"""What the rows of an output are of: one for each ray, for each hit, or for each primitive of the scene."""


class FileColumns(NamedTuple):
    """The columns of a query's results in a file."""

    dtypes: Callable[..., dict[str, np.dtype[Any]]]
    """(dimension, ids, arguments by name) -> the columns and their dtypes"""
    chunks: Callable[..., Iterator[ChunkResults]]
    """(scene, rays, number of the first ray, workers, arguments by name) -> results, in the rays' order"""
    rows: Rows = "rays"
    """"primitives": a row for each primitive in each chunk; the output is the sum of all chunks"""
    arguments: Mapping[str, Argument] = MappingProxyType({})
    """the arguments of the scene's method that a cast may be given"""


class Query(NamedTuple):
    """One query."""

    name: str
    """of the scene's method, of ``--query``, and of the column of a result that is one number a ray"""
    hooks: tuple[Hooks, ...]
    run: RunQuery
    merge_geometries: Callable[[Request, Run, Options], Results]
    """results of several geometries; the `Run` returns those of one"""
    present: Callable[[Results, tuple[int, ...], Source, Options], Any]
    """(results, shape of the rays, source, options) -> what users get"""
    part_merger: Callable[[RayRows, Any, Options], PartMerger]
    """(rays, rows like those of the parts, options) -> results of a scene in parts, none visited yet"""
    columns: FileColumns | None = None
    defaults: Options = None
    """the options of a call that gives none"""
    prepare: Callable[[Options, Rays, Target], Options] | None = None
    """check options against rays and geometries, and return them as the other functions read them"""


class RunsQueries(Protocol):
    """A scene, whole or in parts."""

    def _run(
        self,
        query: Query,
        rays: Rays,
        options: Options = None,
        *,
        workers: int = -1,
        progress: bool = False,
        where: Any = None,
        cull: Cull = None,
    ) -> Any: ...
