"""Mark some cases of a test as the core's."""

from collections.abc import Iterable

import pytest


def with_core(values: Iterable[object], *chosen: object) -> list[object]:
    """Return the parameters of a test, those that are chosen marked `core`."""
    return [pytest.param(value, marks=pytest.mark.core) if value in chosen else value for value in values]
