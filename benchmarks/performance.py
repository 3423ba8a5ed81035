"""Measure raybox beside its peers, and write docs/performance.md and its appendix.

    pip install -e ".[bench]"
    python benchmarks/performance.py [--results FOLDER] [PART ...]
    python benchmarks/performance.py --write

The first form does every part without a result (or the named ones again), then writes; all of it
takes some 20 minutes of two idle cores. Each part is a process and a JSON file, so that a stopped run can be
resumed. The second form only writes the page and its plots. Both print the aims, and what reaches them.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[1] / "tests" / "helpers"))

import aims
import page
import parts
import real_data
import street

ROOT = Path(__file__).parents[1]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help="only these, and again if done before")
    parser.add_argument("--data", type=Path, default=real_data.FOLDER, help="the folder of real files")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs")
    parser.add_argument("--name", default="performance", help="of the page: one for each machine")
    parser.add_argument("--title", default="Performance", help="of the page")
    parser.add_argument("--write", action="store_true", help="measure nothing")
    clock = "wall, or cpu: processor time of one thread, for a machine that others use too"
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help=clock)
    parser.add_argument("--quick", action="store_true", help="few rays and rounds: whether all of it works")
    parser.add_argument("--list", action="store_true", help="name the parts")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        return work(options, parser, Path(made))


def work(options: argparse.Namespace, parser: argparse.ArgumentParser, made: Path) -> int:
    todo = parts.parts(options.data, made)
    if unknown := set(options.parts) - set(todo):
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}; known: {', '.join(todo)}")
    if options.list:
        print("\n".join(todo))
        return 0
    todo = {name: part.timed_by(options.clock) for name, part in todo.items()}
    if options.quick:
        todo = {name: part.made_quick() for name, part in todo.items()}
    if not options.write:
        street.make(options.data / "pandaset_frame", made)
        parts.run(todo, options.results, options.parts)
    results = {path.stem: json.loads(path.read_text()) for path in sorted(options.results.glob("*.json"))}
    page.write(results, options.docs, options.name, options.title)
    print(aims.table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
