"""The browser viewer: shows a scene, and lists what the ray of a click hits.

==============  =============================================================================
module          contents
==============  =============================================================================
``stage``       the scene shown: exact coordinates, and their map to the page's float32
``open_file``   reads a path, or the bytes of an upload, into a stage
``model``       state and results of clicks, without a browser
``html``        results as HTML, points as text
``appearance``  which boxes are drawn, their colours, the first camera position
``draw``        draws a stage and a result into the page's 3D scene
``server``      the server: address, connections it accepts, limits on uploads
``page``        `Viewer`: the controls and their effects
==============  =============================================================================
"""

from raybox.viewer.page import Viewer, view

__all__ = ["Viewer", "view"]
