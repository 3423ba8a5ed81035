"""The browser viewer: shows a scene, and lists what the ray of a click hits.

==============================  =============================================================
module                          contents
==============================  =============================================================
``bounds stage``                the scene shown: geometries in 3D, objects numbered through
``open_file uploads``           paths and uploaded bytes, read into a stage
``frames label_columns``        a stage, rays and hits as frames for the page
``mesh_edges wire``             the edges that are drawn; the binary form of frames
``picks explanation``           what a ray hits, by object; why it hits or misses one
``content saved_page``          all frames of a page; the page as one file
``messages door server``        what the server lets in, and its thread
``session picture viewer``      one open page; `Viewer`
==============================  =============================================================
"""

from raybox.viewer.viewer import Viewer, view

__all__ = ["Viewer", "view"]
