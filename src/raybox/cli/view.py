"""``raybox view``: a scene in the browser, where a click is a ray."""

from typing import Any

import click

from raybox.cli.common import (
    Vector,
    announce_compiling,
    check_scene_options,
    load_rays,
    load_scene,
    scene_options,
    vector,
)

INVALID = ("raise", "miss")


@click.command(short_help="Show a scene in the browser; a click lists what its ray hits.")
@click.argument("scene", type=click.Path())
@click.argument("rays", type=click.Path(), required=False)
@click.option(
    "--origin", type=vector, metavar="X,Y,Z", help="Makes rays from here to each point, if RAYS holds points."
)
@scene_options
@click.option(
    "--invalid", type=click.Choice(INVALID), default="raise", help="What rays with NaN do. [default: raise]"
)
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
def view(scene: str, rays: str | None, origin: Vector | None, **options: Any) -> None:
    r"""Show SCENE, and RAYS if given, on a page that this machine serves to itself.

    Click: a ray goes from the eye through the pixel; the page highlights the box that it hits first, and
    lists all that it hits. Ctrl-C ends.

    \b
    raybox view duplex.ifc --open
    raybox view city.city.json scan.laz --origin 84900,447500,3
    raybox view --grid model.vox
    """
    from raybox.viewer import view as serve

    loaded_rays = load_rays(rays, origin, options["invalid"]) if rays else None
    announce_compiling()
    check_scene_options(options["boxes"], options["grid"])
    served = {name: options[name] for name in ("host", "port", "boxes")}
    shown = load_scene(scene, boxes=False, grid=True)[0] if options["grid"] else scene
    viewer = serve(shown, loaded_rays, allowed_hosts=options["allow_host"], **served)
    with viewer:
        if options["html"]:
            viewer.save_html(options["html"])
            click.echo(f"raybox: wrote {options['html']}", err=True)
            return
        click.echo(viewer.url)
        if options["open_"]:
            click.launch(viewer.url)
        viewer.wait()
