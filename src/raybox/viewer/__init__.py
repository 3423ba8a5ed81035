"""The browser viewer: shows a scene, and lists what the ray of a click hits.

==============================  =============================================================
module                          contents
==============================  =============================================================
``stage``                       the scene shown: geometries in 3D, objects numbered through
``open_file uploads``           paths and uploaded bytes, read into a stage
``frames``                      a stage, rays and hits as frames for the page
``content``                     all frames of a page, and it as a file
``messages door server``        what the server lets in, and its thread
``session viewer``              one open page; `Viewer`
==============================  =============================================================
"""

from raybox.viewer.viewer import Viewer, view

__all__ = ["Viewer", "view"]
