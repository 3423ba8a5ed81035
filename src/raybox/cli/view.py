"""``raybox view``: a scene in the browser, where a click is a ray."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raybox.cli.common import Vector
from raybox.cli.inputs import check_format, format_option, input_files
from raybox.cli.notices import notice, print_versions
from raybox.cli.outputs import check_new, check_no_input, force_option
from raybox.cli.scenes import (
    SceneOptions,
    load_scan,
    load_scene,
    origin_option,
    scene_options,
    size_of,
)

if TYPE_CHECKING:
    from raybox.io.formats.scans import Scan
    from raybox.viewer.stage import Stage


@click.command(short_help="Show a scene in the browser; a click lists what its ray hits.")
@click.argument("scene", type=click.Path())
@click.argument("rays", type=click.Path(), required=False)
@origin_option
@scene_options
@click.option("--host", default="127.0.0.1", show_default=True, help="0.0.0.0 lets other machines in.")
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="Host name of the page, if not an IP address. Repeatable.",
)
@click.option("--port", type=int, default=8080, show_default=True, help="The next free one, if it is taken.")
@click.option("--open", "open_", is_flag=True, help="Open the page in the browser.")
@click.option("--html", type=click.Path(), help="Write the view to this file, and end.")
@format_option
@force_option
def view(scene: str, rays: str | None, origin: Vector | None, reading: SceneOptions, **options: Any) -> None:
    r"""Show SCENE, and RAYS if given, on a page that this machine serves to itself.

    Click: a ray goes from the eye through the pixel; the page highlights the object that it hits first, with
    its id and labels, and lists all that it hits. Ctrl-C ends. --html writes the same page as a file, which
    casts rays too.

    SCENE may be a pattern in quotes, such as 'tiles_*.csv': its files are one scene. SCENE or RAYS may be -,
    stdin. With --where, the page shows the objects that fit at the start; it can show the others.

    \b
    raybox view duplex.ifc --open
    raybox view duplex.ifc --boxes --where "ifc_class != 'IfcSlab'"
    raybox view city.city.json scan.laz --origin 84900,447500,3
    raybox view --grid model.vox
    """
    from raybox.io.formats.saving import atomic_file
    from raybox.viewer.content import make_content
    from raybox.viewer.viewer import Viewer

    check_format(options["format_"], scene, *([rays] if rays else []))
    if options["html"]:
        check_new(options["html"], force=options["force"])
    scenes = input_files([scene], options["format_"], [rays or ""])
    if options["html"]:
        check_no_input(options["html"], [*scenes, *([rays] if rays else [])])
    scan = _scan(rays, origin, reading, options["format_"]) if rays else None
    reading = reading.next_to_rays() if rays else reading
    print_versions()
    content = make_content(_stage(scenes, reading), scan)
    if options["html"]:
        with atomic_file(Path(options["html"])) as file:
            file.write(content.saved())
        notice(f"wrote {options['html']}")
        return
    with Viewer(content, options["host"], options["port"], options["allow_host"]) as viewer:
        click.echo(viewer.url)
        if options["open_"]:
            click.launch(viewer.url)
        viewer.wait()


def _stage(files: list[str], reading: SceneOptions) -> "Stage":
    """Return the scene of files as a page shows it; raise, before it is read, if it is too large.

    Spaces and openings of IFC are read in any case; without --all-objects they are hidden at the start.
    """
    from raybox.io.formats import announced
    from raybox.viewer.stage import check_rows, make_stage

    for file in files:
        if not (reading.boxes or reading.grid):
            check_rows(Path(file), announced(Path(file)).rows)
    is_ifc = all(Path(file).suffix.lower() == ".ifc" for file in files)
    content = load_scene(files, reading._replace(all_objects=is_ifc or reading.all_objects))
    check_rows(Path(files[0]), size_of(content))
    name = Path(files[0]).name if len(files) == 1 else "scene"
    return make_stage(content, name, where=reading.where, hides_spaces=not reading.all_objects)


def _scan(rays: str, origin: Vector | None, reading: SceneOptions, form: str | None) -> "Scan":
    """Return the rays of one file; raise for several."""
    files = input_files([rays], form)
    if len(files) > 1:
        raise click.UsageError(f"{rays} matches {len(files)} files; the view shows the rays of one.")
    return load_scan(files[0], origin, reading)
