"""The page as one file with its scene: it opens from disk, and needs no server."""

import base64
import gzip
import html
import json
import re
import struct
from collections.abc import Sequence
from functools import cache
from importlib import resources

from raybox.viewer.door import content_policy

_TITLE = re.compile(rb"<title>.*?</title>", re.DOTALL)


@cache
def built_page() -> bytes:
    """Return the page that the package contains."""
    return (resources.files("raybox.viewer") / "page.html").read_bytes()


def saved_page(frames: Sequence[bytes], title: str, state: object = None) -> bytes:
    """Return the page with the frames of a scene and the state of a view (None: that at first)."""
    page = built_page()
    policy = content_policy(page, "'none'")
    page = _TITLE.sub(lambda _: f"<title>{html.escape(title)}</title>".encode(), page, count=1)
    page = page.replace(
        b"<head>", f'<head>\n<meta http-equiv="Content-Security-Policy" content="{policy}">'.encode(), 1
    )
    before, end, after = page.rpartition(b"</body>")
    scene = b'<script type="text/plain" id="raybox-scene">' + _compressed(frames) + b"</script>"
    text = json.dumps(state, allow_nan=False).replace("<", "\\u003c")  # no name ends the script
    return b"\n".join(
        [
            before + scene,
            f'<script type="application/json" id="raybox-state">{text}</script>'.encode(),
            end + after,
        ]
    )


def _compressed(frames: Sequence[bytes]) -> bytes:
    """Return frames, each after its length (uint64), as base64 of gzip."""
    content = b"".join(part for one in frames for part in (struct.pack("<Q", len(one)), one))
    return base64.b64encode(gzip.compress(content, 6, mtime=0))
