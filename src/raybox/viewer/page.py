"""`Viewer`: the page's controls and their effects."""

import math
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, final

import numpy as np

from raybox.compiler.float_environment import guard_class, in_default_environment
from raybox.compiler.fork import fork_safe_lock
from raybox.errors import RayboxError
from raybox.geometry import Rays
from raybox.scene.scene import Scene
from raybox.validation import ArrayInput, MaskInput
from raybox.viewer import appearance, draw, open_file, server
from raybox.viewer import html as markup
from raybox.viewer.html import point, written
from raybox.viewer.model import ClickResult, PageState, Picked
from raybox.viewer.stage import Solid, Stage, rays_in_3d, warm_up

if TYPE_CHECKING:
    import viser

E = TypeVar("E")

PICTURE_TIMEOUT = 120.0  # seconds for a browser without a GPU to draw a large scene


@final
@guard_class("url", "answer", "stage", "wait", "stop")
class Viewer:
    """A served browser page that shows a scene and casts the rays of clicks; made by `view`.

    One lock serializes all requests of pages; all open pages show the same.
    """

    def __init__(
        self, stage: Stage, rays: Rays | None, host: str, port: int, allowed_hosts: Iterable[str] = ()
    ) -> None:
        warm_up(type(stage.solid))
        self._state, self._lock = PageState(stage), fork_safe_lock()
        self._host, self._server = host, server.serve(host, port, allowed_hosts)
        draw.light(self._server.scene)
        self._build_controls()
        self._show(stage, rays)
        server.bound_uploads(self._server, self._show_message)
        self._server.scene.on_click()(self._clicked)

    # Public methods

    @property
    def url(self) -> str:
        """The address to open in a browser."""
        return server.url(self._host, self._server.get_port())

    @property
    def answer(self) -> ClickResult | None:
        """The result of the last click; None without one."""
        return self._state.result

    @property
    def stage(self) -> Stage:
        """The scene shown."""
        return self._state.stage

    def click(self, origin: ArrayInput, direction: ArrayInput) -> ClickResult:
        """Return and show the result of a ray in scene coordinates, as of a click."""
        with self._lock:
            result = self._state.click(origin, direction)
            self._show_result(result)
        return result

    def open(self, name: str, content: bytes) -> None:
        """Replace the scene by that of a file's bytes; an error changes nothing."""
        stage = open_file.stage_of_bytes(name, content)
        warm_up(type(stage.solid))
        with self._lock:
            self._state.open(stage)
            self._show(stage, None)

    def html(self) -> str:
        """Return the view as one HTML file, which needs no server and handles no clicks."""
        with self._lock:
            return str(self._server.get_scene_serializer().as_html())

    def save_html(self, path: str | os.PathLike[str]) -> None:
        """Write `html` to a file."""
        Path(path).write_text(self.html(), encoding="utf-8")

    def save_png(self, path: str | os.PathLike[str]) -> None:
        """Write the picture that an open page shows."""
        clients = list(self._server.get_clients().values())
        if not clients:
            raise RayboxError(f"no browser has the page open to draw the picture; open {self.url}")
        Path(path).write_bytes(_picture(clients[0]))

    def wait(self) -> None:
        """Serve until Ctrl-C."""
        while True:
            time.sleep(3600)

    def stop(self) -> None:
        """Stop the server."""
        server.stop(self._server)

    def _repr_html_(self) -> str:
        """Return the page in a frame, as a notebook shows it."""
        return markup.frame(self.url)

    def __enter__(self) -> "Viewer":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # The controls

    def _build_controls(self) -> None:
        gui = self._server.gui
        self._summary = gui.add_html("")
        self._upload = gui.add_upload_button("Open another file", icon=None)
        self._opacity = gui.add_slider("opacity", 0.05, 1.0, 0.05, 1.0)
        self._low = gui.add_slider("t from", 0.0, 1.0, 0.001, 0.0)
        self._high = gui.add_slider("t to", 0.0, 1.0, 0.001, 1.0, hint="at its right end: no limit")
        self._line_of_sight_box = gui.add_checkbox(
            "line of sight", False, hint="between the points of two clicks"
        )
        with gui.add_folder("The ray", expand_by_default=False):
            self._origin = gui.add_text("origin", "0, 0, 0")
            self._direction = gui.add_text("direction", "1, 0, 0")
            cast = gui.add_button("Cast this ray")
        save = gui.add_button_group("save as", ("HTML", "PNG"))
        forget = gui.add_button("Forget the click", color="gray")
        self._message = gui.add_html("")
        self._panel = gui.add_html(markup.panel(None))
        self._upload.on_upload(self._handler(self._uploaded))
        self._opacity.on_update(self._handler(self._opacity_changed))
        self._line_of_sight_box.on_update(self._handler(self._line_of_sight_toggled))
        for slider in (self._low, self._high):
            slider.on_update(self._handler(self._range_changed))
        cast.on_click(self._handler(self._ray_entered))
        save.on_click(self._handler(self._save_pressed))
        forget.on_click(self._handler(self._clicks_cleared))

    def _handler(self, act: Callable[[E], None]) -> Callable[[E], None]:
        """Return a handler that shows errors on the page and lets the server run on."""

        def handle(event: E) -> None:
            try:
                self._show_message("")
                act(event)
            except RayboxError as error:
                self._show_message(str(error))
            except Exception as error:
                self._show_message(f"that did not work: {type(error).__name__}")

        return handle

    def _clicked(self, event: "viser.SceneClickEvent") -> None:
        self._handler(self._picked)(event)

    def _picked(self, event: "viser.SceneClickEvent") -> None:
        page_frame = self._state.stage.page_frame
        self.click(page_frame.to_scene(event.ray_origin), event.ray_direction)

    def _uploaded(self, event: "viser.GuiEvent") -> None:
        file = event.target.value
        self._show_message(f"reading {file.name[-80:]} ...")
        self.open(file.name, file.content)
        self._show_message("")

    def _opacity_changed(self, _: object) -> None:
        self._drawn.opacity = None if self._opacity.value >= 1.0 else self._opacity.value

    def _line_of_sight_toggled(self, _: object) -> None:
        with self._lock:
            self._state.set_mode(bool(self._line_of_sight_box.value))
            self._show_result(None)

    def _range_changed(self, _: object) -> None:
        low, high = (float(slider.value) for slider in (self._low, self._high))
        with self._lock:
            self._show_result(self._state.limit(low, math.inf if high >= self._high.max else high))

    def _ray_entered(self, _: object) -> None:
        fields = ("origin", self._origin.value), ("direction", self._direction.value)
        self.click(*(point(name, text) for name, text in fields))

    def _clicks_cleared(self, _: object) -> None:
        with self._lock:
            self._state.forget()
            self._show_result(None)

    def _save_pressed(self, event: "viser.GuiEvent") -> None:
        kind = event.target.value.lower()
        content = self.html().encode() if kind == "html" else _picture(event.client)
        event.client.send_file_download(f"raybox.{kind}", content, save_immediately=True)

    # Display

    def _show_message(self, text: str) -> None:
        self._message.content = markup.message(text) if text else ""

    def _show_result(self, result: ClickResult | None) -> None:
        """Show a result: first as text, which the browser draws at once."""
        self._panel.content = markup.panel(result)
        if isinstance(result, Picked):
            self._origin.value = written(result.ray.origins)
            self._direction.value = written(result.ray.directions)
        with self._server.atomic():
            draw.draw_result(self._server.scene, self._state.stage, result)

    def _show(self, stage: Stage, rays: Rays | None) -> None:
        """Draw a stage, and rays in it, in place of the previous one."""
        scene, camera = self._server.scene, self._server.initial_camera
        with self._server.atomic():
            for name in ("/rays", "/answer", "/edges", "/scene"):
                scene.remove_by_name(name)
            self._drawn = draw.draw_stage(scene, stage)
            if rays is not None:
                draw.draw_rays(scene, draw.ray_segments(stage, rays))
        self._summary.content, self._panel.content = markup.summary(stage), markup.panel(None)
        low, high = map(stage.page_frame.to_page, stage.ends)
        camera.position, camera.look_at = appearance.camera_position(low, high), (low + high) / 2
        camera.fov = appearance.FOV
        self._opacity.value = 1.0 if self._drawn.opacity is None else self._drawn.opacity
        self._line_of_sight_box.value = False
        self._scale_sliders(8.0 * stage.radius)

    def _scale_sliders(self, reach: float) -> None:
        """Set the sliders' range from t = 0 to a round number near reach."""
        power = math.floor(math.log10(reach)) - 1 if 1e-290 < reach < 1e290 else 0
        top = math.ceil(min(reach, 1e290) / 10.0**power) * 10.0**power or 1.0
        for slider in (self._low, self._high):
            slider.max, slider.step, slider.precision = top, top / 1000, max(0, 2 - power)
        self._low.value, self._high.value = 0.0, top


def _picture(client: "viser.ClientHandle") -> bytes:
    """Return a browser's view as a PNG on white."""
    import imageio.v3 as iio

    camera = client.camera
    image = client.get_render(
        camera.image_height, camera.image_width, transport_format="png", timeout=PICTURE_TIMEOUT
    )
    share = image[..., 3:] / 255.0
    return bytes(
        iio.imwrite("<bytes>", np.uint8(image[..., :3] * share + 255 * (1 - share)), extension=".png")
    )


@in_default_environment
def view(
    scene: "str | os.PathLike[str] | Solid | Scene | Stage",
    rays: Rays | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    boxes: bool = False,
    where: MaskInput = None,
    allowed_hosts: Iterable[str] = (),
) -> Viewer:
    """Show a scene in the browser, where a click casts a ray through its pixel.

    Picking is exact, on the float64 numbers of the scene; only the drawing is in float32.

    Parameters
    ----------
    scene : path, Boxes, Grid, Mesh, Instances or Scene
        A path is read like `load`, with the file's ids and labels. Of a `Grid`, visible cells are drawn, or
        its outline.
    rays : Rays, optional
        The first 20,000 are drawn: hits red, up to the hit point; misses grey.
    host : str
        Address to serve at. Only this machine can reach the default; others can reach "0.0.0.0".
    port : int
        If it is in use, the next free one; 0 for any. `Viewer.url` contains it.
    boxes : bool
        Show one box of each object of a file, in place of its triangles.
    where : array_like of bool, or str, optional
        Show and hit only these rows, as for `Scene.nearest`; numbers are those of the whole scene.
    allowed_hosts : list of str
        Host names, besides IP addresses and localhost, under which browsers may request the page.

    Returns
    -------
    Viewer
        Serves on its own threads until `stop` or the end of the program. A notebook shows the page.

    Raises
    ------
    RayboxError
        If viser is not installed, or the server cannot listen at the address.
    FileFormatError
        As for `load`.

    Examples
    --------
    >>> import raybox as rb
    >>> boxes = rb.Boxes([[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [6, 1, 1]])
    >>> with rb.view(boxes, port=0) as viewer:
    ...     viewer.click([0, 0, 0], [1, 0, 0]).nearest
    0
    """
    stage = open_file.stage_of(scene, boxes=boxes, where=where)
    return Viewer(stage, None if rays is None else rays_in_3d(rays), host, port, allowed_hosts)
