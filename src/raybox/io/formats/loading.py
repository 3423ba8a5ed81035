"""``load`` and ``read``: a file in, geometry out."""

import os
from pathlib import Path

from raybox.errors import InvalidInput
from raybox.geometry import Boxes, Mesh, Rays
from raybox.io.formats.assembly import SERVES, build
from raybox.io.formats.common import Loaded, Parts, Want, broken
from raybox.io.formats.table import parse


def load(
    path: str | os.PathLike[str],
    *,
    kind: str | None = None,
    origin: tuple[float, ...] | None = None,
    boxes: bool = False,
    invalid: str = "raise",
) -> Boxes | Mesh | Rays:
    """Read the boxes, the mesh or the rays that a file holds; its ending tells the format.

    Parameters
    ----------
    path : str or path
        A scene: ``.npz .npy .csv .parquet`` tables of boxes, ``.ply .obj .stl .glb`` (a mesh), ``.ifc``,
        ``.city.json``, ``.vox`` (one box of each product, city object, voxel). Rays: tables too,
        and the points of ``.las .laz .ply .pcd`` with ``origin``. ``docs/files.md`` has the columns.
    kind : {"scene", "rays"}, optional
        What to read where a file could be both; needed for ``.npy``, whose columns have no names.
    origin : X, Y, Z, optional
        Where the rays to a set of points start: direction = point - origin, so that t = 1 is the point, and
        t_max = inf.
    boxes : bool
        Make one box of each part of a mesh file, in place of its triangles.
    invalid : {"raise", "miss"}
        What becomes of rays with NaN, as in :class:`raybox.Rays`.

    Returns
    -------
    Boxes, Mesh or Rays

    Raises
    ------
    FileFormatError
        The file is missing, unreadable, cut off, not what its name says, or holds wrong numbers; the text is
        one line with the file, the place in it and the way out.
    RayboxError
        The format needs a package that is not installed; the text gives the command.
    InvalidInput
        An argument is none of those above.

    Examples
    --------
    >>> import raybox as rb
    >>> from importlib.resources import files
    >>> duplex = rb.load(files("raybox") / "data" / "duplex_aabb.csv")
    >>> len(duplex), duplex.bounds[1].round(2).tolist()
    (286, [9.04, 4.38, 9.0])
    """
    return read(path, kind=kind, origin=origin, boxes=boxes, invalid=invalid).geometry


def read(
    path: str | os.PathLike[str],
    *,
    kind: str | None = None,
    origin: tuple[float, ...] | None = None,
    boxes: bool = False,
    invalid: str = "raise",
) -> Loaded:
    """Read a file like :func:`load`, with the ids and other text columns of its rows.

    Returns
    -------
    Loaded
        ``geometry``; ``ids``, a list of str or None; ``labels``, a dict of lists of str.

    Examples
    --------
    >>> from importlib.resources import files
    >>> duplex = read(files("raybox") / "data" / "duplex_aabb.csv")
    >>> duplex.ids[0], duplex.labels["ifc_class"][0]
    ('2OrWItJ6zAwBNp0OUxK$8W', 'IfcBeam')
    """
    want = Want("scene" if boxes and kind is None else kind, origin, boxes, invalid)
    check(want)
    file = Path(path)
    found = parse(file, want)
    if isinstance(found, Parts):
        return build(found, file, want)
    if want.kind == "rays":
        raise broken(file, "holds a scene, not rays", "give a file of rays here, or of points with an origin")
    return found


def contents(path: str | os.PathLike[str], *, kind: str | None = None, boxes: bool = False) -> Loaded | Parts:
    """Read a file like :func:`read`, but give points as they are, without an origin to see them from."""
    want = Want("scene" if boxes and kind is None else kind, None, boxes)
    check(want)
    found = parse(Path(path), want)
    if isinstance(found, Loaded) or (kind != "scene" and "points" in found.arrays):
        return found
    return build(found, Path(path), want)


def check(want: Want) -> Want:
    """Refuse what nobody can want."""
    if want.kind not in SERVES:
        raise InvalidInput(f'kind must be "scene", "rays" or None; got {want.kind!r}')
    if want.invalid not in ("raise", "miss"):
        raise InvalidInput(f'invalid must be "raise" or "miss"; got {want.invalid!r}')
    if want.origin is not None and want.kind == "scene":
        raise InvalidInput(
            "origin makes rays of points, so it does not go with a scene; leave one of the two out"
        )
    return want
