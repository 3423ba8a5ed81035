"""The lists of broken lines name lines of src that there are, and tests that there are."""

import ast

from broken_lines import ROOT, broken_lines


def test_lines_and_tests_exist():
    listed = broken_lines()
    assert len({one[:3] for one in listed}) == len(listed) > 0
    functions = {}
    for one in listed:
        source = (ROOT / "src" / "raybox" / one.file).read_text()
        assert source.count(one.text) == 1, one
        assert one.becomes != one.text, one
        path, _, function = one.test.partition("::")
        if path not in functions:
            tree = ast.parse((ROOT / "tests" / path).read_text())
            functions[path] = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert not function or function.partition("[")[0] in functions[path], one
