"""`MovingBoxes`: boxes with a displacement each."""

from typing import final

import numpy as np

from raybox import validation
from raybox.errors import InvalidInput
from raybox.geometry.boxes import Boxes
from raybox.geometry.rows import MovingBoxRows, in_space
from raybox.validation import ArrayInput, Floats


@final
class MovingBoxes:
    """Boxes that move by a displacement each while t goes from 0 to 1.

    Parameters
    ----------
    boxes : Boxes
        M, with finite bounds.
    displacement : array_like, shape (D,) or (M, D)
        A single displacement is used for all boxes.

    Raises
    ------
    InvalidInput
        If shapes do not fit, or a number is not finite.
    """

    def __init__(self, boxes: Boxes, displacement: ArrayInput) -> None:
        if not isinstance(boxes, Boxes):
            raise InvalidInput(
                f"boxes_moving must be raybox.Boxes; got {type(boxes).__name__}. "
                "Make some: Boxes(lower, upper)."
            )
        way_out = "Clip those boxes, or sweep the others against them"
        validation.require_finite(boxes.lower, "boxes_moving.lower", "box", way_out)
        validation.require_finite(boxes.upper, "boxes_moving.upper", "box", way_out)
        vectors = validation.floats(displacement, "displacement")
        if vectors.shape not in ((boxes.ndim_space,), boxes.lower.shape):
            raise InvalidInput(
                f"displacement must have shape (D,), one for all, or (M, D), one for each box: "
                f"({boxes.ndim_space},) or {boxes.lower.shape}; got {vectors.shape}."
            )
        self.boxes = boxes
        self.directions = np.array(np.broadcast_to(vectors, boxes.lower.shape), order="C")
        validation.require_finite(self.directions, "displacement", "box", "Drop those boxes")
        validation.freeze(self.directions)

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return MovingBoxes, (self.boxes, self.directions)

    @property
    def origins(self) -> Floats:
        """The boxes' centres."""
        return self.boxes.centers

    @property
    def ndim_space(self) -> int:
        """D, the dimensions of space: 2 or 3."""
        return self.boxes.ndim_space

    @property
    def shape(self) -> tuple[int, ...]:
        """(M,)."""
        return (len(self.boxes),)

    def _rows(self) -> MovingBoxRows:
        """Return the arrays for kernels."""
        return MovingBoxRows(*self.boxes._rows(), in_space(self.directions))
