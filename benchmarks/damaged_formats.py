"""Read thousands of damaged files of points, meshes and voxels, and count what comes of them.

    python benchmarks/damaged_formats.py [--mutants 2500] [--seed 29] [--only VOX PLY]

Each file format (and each encoding of PCD, and each kind of saved file) gets as many mutants of small
samples: flipped bits, cut ends, pieces moved or removed, counts of 10^12. A mutant may be read, or refused
with an error of one line of raybox's own. Faults are other exceptions, errors with Python's words, more than
10 s or 100 MB, and a process that ends. All must be 0; else the exit code is 1.
"""

import argparse
import sys
import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from file_samples import geometries, packed, samples, saved, tables
from mutants import Tally, mutants, tally
from raybox.errors import SkippedWarning

CHUNK = 125  # mutants of one task


def families() -> dict[str, list[str]]:
    """Return the samples of each format, by name."""
    names = list(samples())
    kinds = [
        "csv",
        "npy",
        "npz",
        "parquet",
        "vox",
        "ply",
        "obj",
        "stl",
        "glb",
        "gltf",
        "las",
        "laz",
        "json",
        "jsonl",
        "ifc",
    ]
    found = {kind.upper(): [name for name in names if name.endswith(f".{kind}")] for kind in kinds}
    found |= {f"PCD {name.removesuffix('.pcd')}": [name] for name in names if name.endswith(".pcd")}
    return found | {name: [name] for name in saved() | tables() | geometries()} | {"GZ": list(packed())}


def run(sample: str, count: int, seed: int, start: int) -> tuple[Tally, list[str]]:
    """Read a chunk of the mutants of a sample, in a process of its own."""
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", SkippedWarning)  # what is left out is counted
    content, options = (samples() | saved() | tables() | geometries() | packed())[sample]
    with tempfile.TemporaryDirectory() as folder:
        chosen = islice(mutants(content, count, seed), start, min(start + CHUNK, count))
        return tally(Path(folder) / sample, chosen, options)


def campaign(names: list[str], count: int, seed: int) -> tuple[Tally, int, list[str]]:
    """Return the counts of a format, the processes that ended, and the faults."""
    total, crashes, faults = Tally(), 0, list[str]()
    shares = [count // len(names) + (k < count % len(names)) for k in range(len(names))]
    for name, share in zip(names, shares, strict=True):
        for start in range(0, share, CHUNK):
            try:
                with ProcessPoolExecutor(1, get_context("fork")) as pool:
                    found, lines = pool.submit(run, name, share, seed, start).result()
            except BrokenProcessPool:
                crashes += 1
                faults.append(f"{name}, mutants from {start}: the process ended")
                continue
            total = Tally(*(a + b for a, b in zip(total, found, strict=True)))
            faults += lines
    return total, crashes, faults


def main() -> int:
    """Print a line for each format, then the faults."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--mutants", type=int, default=2500, help="mutants of each format (2500)")
    arguments.add_argument("--seed", type=int, default=29, help="of the damages (29)")
    arguments.add_argument("--only", nargs="+", default=list(families()), help="formats (all)")
    options = arguments.parse_args()
    print(f"{'format':<22}" + "".join(f"{name:>9}" for name in (*Tally._fields, "crashes")))
    all_faults = list[str]()
    for family in options.only:
        names = families()[family]
        total, crashes, faults = campaign(names, options.mutants, options.seed)
        print(f"{family:<22}" + "".join(f"{number:>9,}" for number in (*total, crashes)), flush=True)
        all_faults += faults
    print(*all_faults[:100], sep="\n", end="\n" if all_faults else "")
    return bool(all_faults)


if __name__ == "__main__":
    sys.exit(main())
