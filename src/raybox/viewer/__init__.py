"""The browser viewer: shows a scene, and lists what the ray of a click hits.

==============================  =============================================================
module                          contents
==============================  =============================================================
``stage``                       the scene shown, of files and geometries: objects numbered through
``messages frames``             what page and server send: the schema; scenes, rays and hits
``content``                     what has names, joined; a page as frames, a file, in a notebook
``server session``              the server; one open page
``viewer``                      `Viewer` and `view`
==============================  =============================================================
"""

from raybox.viewer.viewer import Viewer, view

__all__ = ["Viewer", "view"]
