"""Run the core tests without a name that raybox's own linking needs, and store the results of all cases.

Arguments: the name as `module:attribute`, and the file for the results.
"""

import sys
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

TESTS = Path(__file__).parents[1]
NAMES = ("nearest and all",)  # Numba alone takes four minutes for the other queries, packets and geometries


def main(missing: str, output: str) -> int:
    module, name = missing.split(":")
    delattr(import_module(module), name)
    sys.path[:0] = [str(folder) for folder in TESTS.iterdir() if folder.is_dir()]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        from core_cases import every_result

        np.savez(output, **every_result(NAMES))
    # Numba also warns that it stores little of what is not optimized.
    print(*(warning.message for warning in caught if issubclass(warning.category, RuntimeWarning)), sep="\n")
    options = ["-q", "-W", "error:raybox:RuntimeWarning", "-p", "no:cacheprovider", "-o", "addopts="]
    return pytest.main(
        [*options, *(f"{TESTS / 'test_core.py'}::test_results_are_exact[{name}]" for name in NAMES)]
    )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
