"""Candidate pairs of a clash test of two IFC models: raybox and the tree of IfcClash.

    python benchmarks/clash.py ARCHITECTURE.ifc ELECTRICAL.ifc [--rounds 5]

raybox loads the boxes of both models and joins them. IfcClash adds the elements of both to a tree of
IfcOpenShell, which tests boxes and then triangles in one call: its candidates cannot be read. So its
collisions and near pairs are compared: each must be among the pairs of boxes at most as far apart. Wall time
in seconds, medians.
"""

import argparse
import multiprocessing
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import raybox as rb
from raybox.bench import machine, timing

NEAR = 1e-6  # metres
Pairs = set[tuple[str, str]]
"""Of GlobalIds."""


class Model(NamedTuple):
    """A model in IfcOpenShell: its elements that have a shape, and the tree of both models."""

    elements: list[Any]
    file: Any


def load_boxes(path: Path) -> rb.Boxes:
    """Return the boxes of a model's objects."""
    boxes = rb.load(path, boxes=True)
    assert isinstance(boxes, rb.Boxes)
    return boxes


def add(tree: Any, path: Path) -> Model:
    """Add the elements of a model to a tree, as IfcClash does."""
    import ifcopenshell
    import ifcopenshell.geom

    file = ifcopenshell.open(str(path))
    elements = list(set(file.by_type("IfcElement")) - set(file.by_type("IfcFeatureElement")))
    settings = ifcopenshell.geom.settings()
    shapes = ifcopenshell.geom.iterator(settings, file, multiprocessing.cpu_count(), include=elements)
    assert shapes.initialize()
    added = set()
    while True:
        shape = shapes.get()
        tree.add_element(shape)
        added.add(shape.guid)
        if not shapes.next():
            return Model([element for element in elements if element.GlobalId in added], file)


def print_times(name: str, seconds: list[float], pairs: Pairs | None = None) -> None:
    count = "" if pairs is None else f"{len(pairs):,}"
    print(f"| {name} | {count} | {median(seconds):.4f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs=2, type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(machine.in_words(machine.describe()))
    one, other = boxes = [load_boxes(path) for path in options.models]
    print(f"{len(one)} and {len(other)} boxes\n\n| step | pairs | s |\n| --- | ---: | ---: |")
    loads = timing.alternate({"": lambda: [load_boxes(x) for x in options.models]}, options.rounds)[""]
    print_times("raybox: load boxes of both", loads)
    scenes = timing.alternate({"": lambda: [rb.Scene(x) for x in boxes]}, options.rounds)[""]
    print_times("raybox: both scenes", scenes)
    first, second = rb.Scene(one), rb.Scene(other)
    touching, near = (pairs_of(first, second, distance) for distance in (0.0, 2 * NEAR))
    seconds = timing.alternate({"": lambda: first.join(second)}, 20 * options.rounds)[""]
    print_times("raybox: join", seconds, touching)
    compare(options.models, options.rounds, touching, near)


def pairs_of(first: rb.Scene, second: rb.Scene, distance: float) -> Pairs:
    """Return the pairs of boxes at most so far apart, by GlobalId."""
    one, other = (scene.geometry.ids for scene in (first, second))
    return {(one[i], other[j]) for i, j in first.join(second, distance=distance).tolist()}


def compare(paths: list[Path], rounds: int, touching: Pairs, near: Pairs) -> None:
    """Time the tree of IfcOpenShell; raise `AssertionError` if it finds a pair that is not among ours."""
    import ifcopenshell.geom

    def load() -> tuple[Any, list[Model]]:
        tree = ifcopenshell.geom.tree(backend="opencascade.trianglebvh")
        return tree, [add(tree, path) for path in paths]

    print_times("IfcClash: load both into its tree", timing.alternate({"": load}, rounds)[""])
    tree, (one, other) = load()
    own = {element.GlobalId for element in one.elements}

    def pairs(clashes: Any) -> Pairs:
        both = ((clash.a.get_argument(0), clash.b.get_argument(0)) for clash in clashes)
        return {(a, b) if a in own else (b, a) for a, b in both}

    sides = one.elements, other.elements
    tests = {
        "collisions of triangles": lambda: tree.clash_collision_many(*sides, allow_touching=True),
        "triangles nearer than a micrometre": lambda: tree.clash_clearance_many(
            *sides, clearance=NEAR, check_all=True
        ),
    }
    for (name, test), among in zip(tests.items(), (touching, near), strict=True):
        found = pairs(test())
        print_times(f"IfcClash: {name}", timing.alternate({"": test}, rounds)[""], found)
        assert found <= among, f"{name}: {len(found - among)} are not among pairs of boxes"


if __name__ == "__main__":
    main()
