"""Put contacts that were found apart into one exact order: those of one ray at one reported time."""

from typing import Any

from raybox.compiler.decorators import exact_entry
from raybox.primitives.ray import get_ray
from raybox.primitives.table import tie


@exact_entry
def settle(rays: Any, rows: Any, ray_of: Any, runs: Any, order: Any) -> None:
    """Sort the contacts order[begin:end] of each run by exact time; those truly at once stay as they stand.

    runs: (R, 2), begin and end; ray_of: each run's ray; contact c is with row c of `rows`.
    """
    for k in range(runs.shape[0]):
        ray = get_ray(rays, ray_of[k])
        for i in range(runs[k, 0] + 1, runs[k, 1]):
            contact = order[i]
            place = i
            while place > runs[k, 0] and tie(rows, ray, contact, order[place - 1]) < 0:
                order[place] = order[place - 1]
                place -= 1
            order[place] = contact
