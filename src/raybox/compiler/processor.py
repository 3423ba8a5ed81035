"""The level of this processor, which chooses a library of kernels."""

import platform
import sys
from typing import cast

import numpy as np  # noqa: F401  # loads what _features reads


def level() -> str:
    """Return the level of this processor: v4, v3, v2, baseline, or generic on aarch64."""
    machine = platform.machine().lower()
    if machine in {"aarch64", "arm64"}:
        return "generic"
    has = _features() if machine in {"x86_64", "amd64"} else {}
    for name, features in _LEVELS.items():
        if all(has.get(feature) for feature in features):
            return name
    return "baseline"


# NumPy has no names for all features of a level before 2.4, but one implies those in processors that exist.
_LEVELS = {"v4": ("AVX512_SKX",), "v3": ("AVX2", "FMA3", "F16C"), "v2": ("SSE42", "POPCNT")}


def _features() -> dict[str, bool]:
    loaded = sys.modules.get("numpy._core._multiarray_umath") or sys.modules["numpy.core._multiarray_umath"]
    return cast(dict[str, bool], loaded.__cpu_features__)
