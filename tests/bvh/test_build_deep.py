"""Builds at their limits: great depth, a full node array."""

import numpy as np

from raybox.bvh import build as build_module
from raybox.bvh import sah_build, sah_parallel
from raybox.bvh.build import build
from raybox.bvh.frame import FramedBoxes, choose_frame, frozen, to_rows
from raybox.bvh.node import CHILD, EMPTY, MAX_DEPTH, ROW
from raybox.bvh.validate import check
from test_build import clustered, uniform


def as_part(lower, upper):
    """Return boxes as rows, and the part of all of them."""
    center, exponent, _ = choose_frame(lower, upper)
    rows, bounds = np.empty((len(lower), 8), np.float32), np.empty((2, 8), np.float32)
    to_rows(FramedBoxes(frozen(lower), frozen(upper), center, 2.0**exponent), 0, len(lower), rows, bounds)
    return rows, sah_parallel.PartRows(0, 0, len(lower), *bounds)


def test_box_numbers_are_not_part_of_sums():
    """As float32 they are denormal, and sums of those can take a hundred times as long."""
    rows, part = as_part(*uniform(100))
    assert rows.view(np.int32)[:, 3].tolist() == [*range(100)]
    assert part.centers[3] == part.centers[7] == 0
    assert (part.centers[[0, 1, 2, 4, 5, 6]] != 0).all()


def test_deep_parts_are_halved_by_number():
    """No boxes are known for which splits by cost go so deep; the bound does not rely on that."""
    rows, part = as_part(*clustered(4000))
    shallow, deep = (
        build_module.build_part(rows, sah_parallel.BuildTask(part, -1, -1, k), "balanced") for k in (48, 49)
    )
    assert levels(deep) == 4 < levels(shallow)  # 8**4 = 4096
    # The best tree of a part has no bound on its depth: where it would be too deep, another is built.
    last = MAX_DEPTH - 3
    assert levels(build_module.build_part(rows, sah_parallel.BuildTask(part, -1, -1, 1), "best")) > 4
    assert levels(build_module.build_part(rows, sah_parallel.BuildTask(part, -1, -1, last), "best")) == 4


def test_a_build_continues_when_the_node_array_is_full():
    rows, part = as_part(*uniform(2000))
    want = build_module.build_part(rows.copy(), sah_parallel.BuildTask(part, -1, -1, 1), "balanced")
    workspace, words = sah_build.make_workspace(0, 2000, 1, part.centers), np.empty((0, ROW), np.int32)
    calls, done = 0, False
    while not done:
        words = np.concatenate([words, np.full((30, ROW), 7, np.int32)])
        done = sah_build.build_nodes(rows, workspace, words[:-10])
        assert (words[-10:] == 7).all()
        calls += 1
    assert calls > 10
    np.testing.assert_array_equal(words[: workspace.node_count[0]], want)


def levels(nodes) -> int:
    level, depth = np.zeros(1, int), 0
    while level.size:
        below = nodes[level, CHILD:]
        level, depth = below[below >= 0], depth + 1
    return depth


def test_threads_halve_deep_parts_by_number_too(monkeypatch):
    monkeypatch.setattr(build_module, "_TASK", 64)
    monkeypatch.setattr(sah_parallel, "_CHUNK", 150)
    monkeypatch.setattr(sah_parallel, "SAH_DEPTH", 0)
    lower, upper = clustered(4096)
    tree = build(lower, upper)
    check(tree, lower, upper)
    whole = np.sort([count_under(tree.nodes, int(child)) for child in tree.nodes[0, CHILD:]])
    assert whole.tolist() == [512] * 8


def count_under(nodes, child) -> int:
    return 1 if child < 0 else sum(count_under(nodes, int(c)) for c in nodes[child, CHILD:] if c != EMPTY)
