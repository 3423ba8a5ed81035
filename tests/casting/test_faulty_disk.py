"""A share of benchmarks/faulty_disk.py: calls of the system fail, or the disk is full."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "faulty_disk.py"
NEEDS_COMPILER = shutil.which("cc") is None or sys.platform != "linux"

pytestmark = pytest.mark.skipif(NEEDS_COMPILER, reason="compiles a library that Linux loads first")


def counts(every, *ways):
    """Return the last row of the table: faults, right at once, refused, then right, failures."""
    words = [sys.executable, SCRIPT, "--every", str(every), *ways]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [int(number.replace(",", "")) for number in done.stdout.splitlines()[-1].split("|")[3:-1]]


@pytest.mark.long
def test_each_call_of_some_outputs_fails():
    ways = "`.npy`", "`.npy` by blocks", "`.zarr`", "dataset of Parquet", "sums"
    faults, right, refused, then_right, failures = counts(9, *ways)
    assert faults > 200
    assert right > 50
    assert refused == then_right > 50
    assert failures == 0
