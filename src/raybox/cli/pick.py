"""``raybox pick``: what one ray or segment meets, in order."""

from typing import TYPE_CHECKING, Any

import click

from raybox.cli.common import as_json, load_scene, number, table
from raybox.cli.rays import ray_of, ray_options

if TYPE_CHECKING:
    from raybox.geometry import Boxes, Mesh, Rays


@click.command(short_help="List what one ray or segment meets, in order.")
@click.argument("scene", type=click.Path())
@ray_options
@click.option("--boxes", is_flag=True, help="One box of each part of a mesh, in place of its triangles.")
@click.option("--json", "json_", is_flag=True, help="Print one JSON object.")
def pick(scene: str, boxes: bool, json_: bool, **options: Any) -> None:
    r"""List everything that one ray meets in SCENE, in order along the ray.

    \b
    raybox pick duplex.ifc --origin 2,-25,1.5 --direction 0,1,0
    raybox pick city.city.json --from 84900,447500,3 --to 84900,447700,3 --json
    """
    ray = ray_of(**options)
    geometry, ids = load_scene(scene, boxes)
    if ray.ndim_space != geometry.ndim_space:
        raise click.UsageError(f"{scene} is in {geometry.ndim_space}D, the ray in {ray.ndim_space}D.")
    rows = _met(ray, geometry, ids)
    if json_:
        ends = {"origin": ray.origins, "direction": ray.directions, "t_min": ray.t_min, "t_max": ray.t_max}
        click.echo(as_json({"scene": scene, **ends, "hits": rows}))
    elif not rows:
        click.echo("the ray meets nothing")
    else:
        shown = [{**row, "point": ",".join(map(number, row["point"]))} for row in rows]
        click.echo(table(list(rows[0]), [list(row.values()) for row in shown]))


def _met(ray: "Rays", geometry: "Boxes | Mesh", ids: list[str] | None) -> list[dict[str, Any]]:
    """Ask the scene, and put what it says into rows for people."""
    from raybox.scan import scan

    found = scan(ray, geometry)
    rows: list[dict[str, Any]] = []
    for index, t in zip(found.index.tolist(), found.t.tolist(), strict=True):
        row = {"index": index, "id": ids[index]} if ids else {"index": index}
        rows.append(row | {"t": t, "point": ray.at(t).tolist(), **_face(ray, geometry, index)})
    return rows


def _face(ray: "Rays", geometry: "Boxes | Mesh", index: int) -> dict[str, str]:
    """Name the face by which the ray enters a box: ``-x`` is the one at the box's lower x."""
    from raybox import rational
    from raybox.geometry import Boxes

    if not isinstance(geometry, Boxes):
        return {}
    direction = ray.directions.tolist()
    one = rational.Ray1(tuple(ray.origins.tolist()), tuple(direction), float(ray.t_min), float(ray.t_max))
    crossing = rational.box(one, tuple(geometry.lower[index].tolist()), tuple(geometry.upper[index].tolist()))
    if crossing is None or crossing.axis < 0:
        return {"face": "inside"}
    return {"face": ("-" if direction[crossing.axis] > 0 else "+") + "xyz"[crossing.axis]}
