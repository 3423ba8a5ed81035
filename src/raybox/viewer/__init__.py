"""The browser page: look at a scene, click, and see what the ray of that click meets.

============  ===============================================================================
module        does
============  ===============================================================================
``stage``     a scene as the page holds it: exact numbers, and where the page's float32 lie
``opening``   a path, or the bytes of an upload, in; a stage out
``model``     a click in, an answer out; knows no browser
``words``     an answer as HTML, points as text
``looks``     which boxes are worth drawing, in which colours
``draw``      a stage and an answer as things of the page's scene
``guard``     the server: where it listens, whom it answers, how much it takes
``page``      `Viewer`: the controls and what they do
============  ===============================================================================
"""

from raybox.viewer.page import Viewer, view

__all__ = ["Viewer", "view"]
