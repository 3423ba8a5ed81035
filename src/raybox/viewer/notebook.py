"""What a notebook shows of a viewer: the page itself, or a picture and a link."""

import base64
from html import escape
from io import BytesIO

import numpy as np

from raybox.geometry import Rays
from raybox.hits.image import write_png
from raybox.viewer.content import PageContent
from raybox.viewer.stage import Stage

MAX_OUTPUT = 2_500_000  # characters: Jupyter cuts outputs of 3 MB
MAX_FRAMES = 20 * MAX_OUTPUT  # bytes, whose page is larger in any case
_SANDBOX = "allow-scripts allow-downloads allow-modals"  # no access to the notebook
_SIZE = 960, 560


def embedded(content: PageContent, state: object, url: str) -> str:
    """Return HTML of the page with its scene, or of a picture and a link to `url` if it is too large."""
    if sum(map(len, content.frames)) <= MAX_FRAMES:
        page = escape(content.saved(state).decode(), quote=True)
        if len(page) <= MAX_OUTPUT:
            return _framed(f'sandbox="{_SANDBOX}" srcdoc="{page}"')
    picture = base64.b64encode(picture_of(content.stage)).decode()
    note = f"The scene is too large for the output of a notebook; the viewer shows it at {_link(url)}"
    return f'<img src="data:image/png;base64,{picture}" alt="{escape(content.stage.name)}"><p>{note}</p>'


def linked(url: str) -> str:
    """Return HTML of the page that a server shows."""
    source = f'src="{escape(url)}"'
    return f"{_framed(source)}<p>{_link(url)}</p>"


def picture_of(stage: Stage) -> bytes:
    """Return a PNG of what is visible at the start, each object in one colour; white without bounds."""
    lower, upper = np.nan_to_num(stage.scene.bounds, posinf=0.0, neginf=0.0)
    middle, radius = (lower + upper) / 2, float(np.linalg.norm(upper - lower)) / 2 or 1.0
    toward = [0.55, -0.73, 0.48] if stage.up == "z" else [0.55, 0.48, 0.73]
    up = [0, 0, 1] if stage.up == "z" else [0, 1, 0]
    eye = middle + 2.6 * radius * np.array(toward)
    rays = Rays.pinhole(eye, middle, up=up, fov=45, width=_SIZE[0], height=_SIZE[1])
    hits = stage.scene.nearest(rays, where=stage.where(None))
    light = np.where(hits.hit, 0.55 + 0.45 * np.abs(np.nan_to_num(hits.normals) @ [0.3, -0.5, 0.8]), 1.0)
    file = BytesIO()
    write_png(file, (hits.image("object") * light.clip(0, 1)[..., None]).astype(np.uint8))
    return file.getvalue()


def _framed(source: str) -> str:
    return f'<iframe {source} title="raybox" width="100%" height="560" style="border: 0"></iframe>'


def _link(url: str) -> str:
    safe = escape(url, quote=True)
    return f'<a href="{safe}" target="_blank" rel="noopener">{safe}</a>'
