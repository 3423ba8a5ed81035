"""The browser viewer: shows a scene, and lists what the ray of a click hits.

==============================  =============================================================
module                          contents
==============================  =============================================================
``stage``                       the scene shown: geometries in 3D, objects numbered through
``open_file uploads``           paths and uploaded bytes, read into a stage
``frames``                      a stage, rays and hits as frames for the page
``layers content``              what has names, joined; all frames of a page, and it as a file
``messages``                    the schema of what page and server send
``door server``                 what the server lets in, and its thread
``session viewer notebook``     one open page; `Viewer`; what notebooks show of it
==============================  =============================================================
"""

from raybox.viewer.viewer import Viewer, view

__all__ = ["Viewer", "view"]
