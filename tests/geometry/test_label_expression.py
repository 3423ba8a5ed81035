"""Expressions of labels against a slow evaluator of their own, and what they refuse."""

import keyword
import operator
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import raybox as rb
from raybox.geometry.label_expression import MAX_LENGTH, mask_of

COLUMNS = {
    "text": ["a", None, "b", "A", "", "a b", "ä", None],
    "whole": [1, 2**53, 2**53 + 1, -5, 0, 2**63 - 1, -(2**63), 7],
    "gaps": [1, None, 3, None, 2**60 + 1, -1, 0, 2],
    "real": [0.5, None, 1.0, -0.0, float("inf"), float("-inf"), 2.0**53, 5e-324],
    "flag": [True, False, True, True, False, False, True, False],
    "maybe": [True, None, False, None, True, None, False, True],
    "none": [None] * 8,
    "two words": [1, 2, 3, 4, 5, 6, 7, 8],
}
N = 8
ARRAYS = dict(rb.Boxes(np.zeros((N, 3)), np.ones((N, 3)), labels=COLUMNS).labels)
OPERATORS = dict(zip(("==", "!=", "<", "<=", ">", ">="), ["eq", "ne", "lt", "le", "gt", "ge"], strict=True))


class Case(NamedTuple):
    """The text of an expression, and a function that returns whether it is true of a row."""

    text: str
    truth: Callable


def compare(op, one, other):
    """Return whether a comparison is true, of Python's values: False where one is missing."""
    return one is not None and other is not None and getattr(operator, OPERATORS[op])(one, other)


CONSTANTS = {
    "text": ["a", "b", "", "ä", "a b", "A", "z'z", "`a`"],
    "numbers": [
        *(0, 1, -5, 2**53, 2**53 + 1, 2**60 + 1, 2**63, -(2**63) - 1, 10**400),
        *(0.5, -0.5, 1e300, 2.0**53, 2.5),
    ],
    "bools": [True, False],
}
KINDS = {"text": ["text", "none"], "numbers": ["whole", "gaps", "real", "two words", "none"]}
KINDS["bools"] = ["flag", "maybe"]


def written(name):
    return f"`{name}`" if " " in name else name


@st.composite
def comparisons(draw):
    kind = draw(st.sampled_from(sorted(KINDS)))
    name = draw(st.sampled_from(KINDS[kind]))
    if draw(st.booleans()):
        constants = draw(st.lists(st.sampled_from(CONSTANTS[kind]), min_size=1, max_size=4))
        negated = draw(st.booleans())
        text = f"{written(name)} {'not in' if negated else 'in'} ({', '.join(map(repr, constants))},)"
        return Case(text, lambda row: row[name] is not None and (row[name] in constants) != negated)
    op = draw(st.sampled_from(["==", "!="] if kind == "bools" else sorted(OPERATORS)))
    if draw(st.booleans()):
        other = draw(st.sampled_from(KINDS[kind]))
        return Case(f"{written(name)} {op} {written(other)}", lambda row: compare(op, row[name], row[other]))
    constant = draw(st.sampled_from(CONSTANTS[kind]))
    if draw(st.booleans()):
        return Case(f"{constant!r} {op} {written(name)}", lambda row: compare(op, constant, row[name]))
    return Case(f"{written(name)} {op} {constant!r}", lambda row: compare(op, row[name], constant))


def grown(inner):
    def joined(parts, word):
        text = f" {word} ".join(f"({part.text})" for part in parts)
        together = all if word == "and" else any
        return Case(text, lambda row: together(part.truth(row) for part in parts))

    several = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(
        st.builds(joined, several, st.sampled_from(["and", "or"])),
        inner.map(lambda part: Case(f"not ({part.text})", lambda row: not part.truth(row))),
    )


@pytest.mark.core
@settings(max_examples=400, deadline=None)
@given(st.recursive(comparisons(), grown, max_leaves=5))
def test_masks_equal_a_loop_over_rows(expression):
    rows = [{name: values[k] for name, values in COLUMNS.items()} for k in range(N)]
    assert mask_of(expression.text, ARRAYS, N).tolist() == [expression.truth(row) for row in rows]


CHARACTERS = st.one_of(
    st.characters(exclude_categories=["Cs"]),
    st.sampled_from("\n\r\0\t\x0b\x1f\x85\u00a0\u2028\u3000 '\"`#\\a\ufb01"),
)
LABELS = st.text(CHARACTERS, max_size=8)
BLANKS = st.sampled_from(["", " ", "\n", "\u00a0", " \t"])


def quoted(text, mark):
    """Return a constant with all characters as they are, but for the quotation mark and backslashes."""
    return mark + text.replace("\\", "\\\\").replace(mark[0], "\\" + mark[0]) + mark


@pytest.mark.core
@settings(max_examples=300, deadline=None)
@given(LABELS, LABELS, st.sampled_from(["'", '"', "'" * 3, '"' * 3]), BLANKS, st.data())
def test_constants_and_names_keep_every_character(label, other, mark, blank, data):
    name = data.draw(st.text(CHARACTERS.filter(lambda c: c != "`"), min_size=1, max_size=6))
    columns = {name: np.array([label, other, None, " ".join(label.split()), label], dtype=object)}
    equal = [value == label for value in columns[name]]
    for constant in (quoted(label, mark), repr(label)):
        found = mask_of(f"{blank}`{name}`{blank}=={blank}{constant}{blank}", columns, 5)
        assert found.tolist() == equal
        found = mask_of(f"`{name}` in [{constant},]", columns, 5)
        assert found.tolist() == equal
    parts = quoted(label[:3], mark) + (blank or " ") + quoted(label[3:], mark)
    assert mask_of(f"{parts} == `{name}`", columns, 5).tolist() == equal


@given(st.from_regex(r"[^\W\d]\w{0,5}", fullmatch=True))
def test_names_without_backquotes_keep_every_letter(name):
    columns = {name: np.array(["a", "b"], dtype=object)}
    assume(name.isidentifier() and not keyword.iskeyword(unicodedata.normalize("NFKC", name)))
    assert mask_of(f"{name} == 'b'", columns, 2).tolist() == [False, True]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("not text == 'a'", [1, 2, 3, 4, 5, 6, 7]),
        ("text in ('a', 'b') and not flag", []),
        ("text in ['a', 'b']", [0, 2]),
        ("flag", [0, 2, 3, 6]),
        ("maybe", [0, 4, 7]),
        ("not maybe", [1, 2, 3, 5, 6]),
        ("-5 <= whole < 2", [0, 3, 4]),
        ("whole == 9007199254740992.0", [1]),
        ("whole < 1e999", range(8)),
        ("real != real", []),
        ("`two words`>6", [6, 7]),
        ("text == 'a' or `two words` == 8", [0, 7]),
        ("'`flag`' == text", []),
        ("True", range(8)),
        ("1 < 2 and flag", [0, 2, 3, 6]),
        ("\nflag\nand\tmaybe", [0]),
    ],
)
def test_masks_by_hand(text, rows):
    assert np.flatnonzero(mask_of(text, ARRAYS, N)).tolist() == list(rows)


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("", None, "the expression is empty"),
        ("story == '1'", 1, "there is no label 'story'; there are: 'text', 'whole'"),
        ("flag and story == 1", 10, r"no label 'story'.* In: flag and \^story == 1"),
        ("text == 3", 9, "text cannot be compared with numbers; quote the number"),
        ("text in ('a', 3)", 15, "text cannot be compared with numbers"),
        ("flag == 1", 9, "bools cannot be compared with numbers"),
        ("text == whole", 9, "text cannot be compared with numbers"),
        ("text", 1, "'text' holds text, not a condition; compare it: text == ..."),
        ("not whole", 5, "'whole' holds numbers"),
        ("text == None", 9, "only names, numbers, text, True and False can be compared"),
        ("text is 'a'", 9, "`is` is not part of expressions; use =="),
        ("text in 'ab'", 9, "`in` needs a list of constants"),
        ("text in ('a')", 10, "`in` needs a list of constants"),
        ("'a' in text", 8, "`in` needs a list of constants"),
        ("text in ('a', text)", 15, "`in` needs constants, not names"),
        ("whole + 1 == 2", 1, "only names, numbers"),
        ("flag & maybe", 6, "`&` is not part of expressions; write `and`"),
        ("(whole == 1) && flag", 14, "`&&` is not part of expressions; write `and`"),
        ("text == '&' | flag", 13, "`\\|` is not part of expressions; write `or`"),
        ("text == '|' || ~flag", 13, "`\\|\\|` is not part of expressions; write `or`"),
        ("flag and ~(whole == 1)", 10, "`~` is not part of expressions; write `not`"),
        ("!flag", 1, "`!` is not part of expressions; write `not`"),
        ("text != '!' and whole <> 1", 23, "`<>` is not part of expressions; write `!=`"),
        ("text == 'OR' AND flag", 14, "`and`, `or`, `not` and `in` are written in small letters"),
        ("text == 'AND' 'OR' flag", 20, "not an expression of labels \\("),
        ("text == 'a'.upper()", 9, "only names, numbers"),
        ("__import__('os').system('true') == 0", 1, "only names"),
        ("(lambda: 1)()", 1, "only comparisons"),
        ("f'{text}' == 'a'", 1, "only names"),
        ("flag and", 9, "not an expression of labels"),
        ("text == 'a", 9, "not an expression of labels"),
        ("flag) or (maybe", 5, "not an expression of labels"),
        ("flag # or not", 6, "comments"),
        (
            "text == 'a' or text == r'a\nb'",
            27,
            "a line end or NUL after a backslash, or in a constant with a prefix",
        ),
        ("text == 'a\\\nb'", 11, "a line end or NUL after a backslash"),
        ("text == 'ä' or tekst == 1", 16, "no label 'tekst'"),
        ("text == 'ä' or `t e` == 1", 16, "no label 't e'"),
        ("   story == 1", 4, "no label 'story'"),
    ],
)
def test_mistakes_are_pointed_at(text, column, words):
    place = "where: " if column is None else rf"where, column {column}: .*"
    with pytest.raises(rb.InvalidInput, match=place + words) as raised:
        mask_of(text, ARRAYS, N)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        *("[flag for flag in (1, 2)]", "text.__class__ == 1", "b'a' == text", "1j == whole", "whole[0] == 1"),
        *("flag if flag else maybe", "(flag := True)", "flag; maybe", "text = 'a'", "3", "None"),
    ],
)
def test_other_python_is_no_expression(text):
    with pytest.raises(rb.InvalidInput, match=r"only comparisons|only names|not an expression of labels"):
        mask_of(text, ARRAYS, N)


def outcome(text):
    """Return a letter for each object, or the text of the error."""
    try:
        return "".join("FT"[int(one)] for one in mask_of(text, ARRAYS, N))
    except rb.InvalidInput as error:
        return str(error)


@pytest.mark.parametrize(
    "text",
    [
        *("(" * 4000 + "flag" + ")" * 4000, "not " * 2400 + "flag", "[" * 3000, "-" * 5000 + "1 == whole"),
        *("flag" + " and flag" * 1200, "whole == " + "9" * 9000, "whole in (" + "1," * 4900 + ")"),
        *("flag or\0maybe", "x" * (MAX_LENGTH + 1), "`" * 999, "'" * 999, "\\" * 99),
        *("flag\u2028and maybe", "flag \ud800"),
    ],
)
def test_hostile_expressions_end_in_a_mask_or_an_error(text):
    assert len(outcome(text)) in range(N, 400)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="abflgtexwho `'\"()[]{},.<>=!0123456789-+*/|&^~@:;#\\\näℵ", max_size=40))
def test_any_text_ends_in_a_mask_or_an_error(text):
    assert outcome(text).startswith("where") or len(outcome(text)) == N


def test_errors_name_the_first_of_many_labels():
    many = {f"label {k}": np.zeros(2) for k in range(500)}
    with pytest.raises(
        rb.InvalidInput, match=r"there are: 'label 0', .*'label 11' and 488 more. In: \^name"
    ) as raised:
        mask_of("name == 1", many, 2)
    assert len(str(raised.value)) < 300


SQUARE = [[0, 0, 0], [4, 0, 0], [4, 4, 0], [0, 4, 0], [0, 0, 2], [4, 0, 2], [4, 4, 2]]
MESH = rb.Mesh(
    SQUARE,
    [[0, 1, 2], [0, 2, 3], [4, 5, 6]],
    objects=[1, 1, 0],
    ids=["lid", "floor", "unused"],
    labels={"kind": ["wood", "stone", None], "cost": [1, 2, 3]},
)
DOWN = rb.Rays([[3, 1, 5], [1, 3, 5], [9, 9, 5]], [0, 0, -1])


@pytest.mark.core
def test_queries_take_expressions_of_the_objects():
    scene = rb.Scene(MESH)
    assert scene.nearest(DOWN).ids.tolist() == ["lid", "floor", None]
    assert scene.nearest(DOWN, where="kind == 'stone'").ids.tolist() == ["floor", "floor", None]
    assert scene.nearest(DOWN, where="id != 'floor'").ids.tolist() == ["lid", None, None]
    assert scene.count(DOWN, where="cost >= 2").tolist() == [1, 1, 0]
    assert scene.occluded(DOWN, where="False").tolist() == [False] * 3
    assert scene.all(DOWN, where="True").ids.tolist() == ["lid", "floor", "floor"]
    assert scene.first(DOWN, 2, where="kind in ('wood',)").hit.sum() == 1
    keep = np.array([False, True, True])
    assert scene.count(DOWN, where=keep[MESH.objects]).tolist() == [1, 1, 0]
    with pytest.raises(
        rb.InvalidInput, match=r"^where, column 1: there is no label 'ids'; there are: 'kind', 'cost', 'id'"
    ):
        scene.nearest(DOWN, where="ids == 'lid'")


def test_expressions_of_every_geometry():
    labels = {"kind": ["a", "b"]}
    boxes = rb.Boxes([[0, 0, 0], [4, 0, 0]], [[1, 1, 1], [5, 1, 1]], labels=labels)
    rays = rb.Rays([[0.5, 0.5, 9], [4.5, 0.5, 9]], [0, 0, -1])
    grid = rb.Grid([0, 2, 5], [0, 1], [0, 1], labels=labels)
    copies = rb.Instances(
        boxes[0], [np.eye(4)[:3], [[1, 0, 0, 4], [0, 1, 0, 0], [0, 0, 1, 0]]], labels=labels
    )
    planes = rb.Planes([0, 0, 1], [0, 1], labels=labels)
    for geometry, counts in ((boxes, [0, 1]), (grid, [0, 1]), (copies, [0, 1]), (planes, [1, 1])):
        assert rb.Scene(geometry).count(rays, where="kind == 'b'").tolist() == counts
    assert rb.Scene(grid).integrate(rays, where="kind == 'b'").tolist() == [0, 1]
    hits = rb.sweep(rb.Boxes([0, 0, 5], [5, 1, 6]), [0, 0, -9], rb.Scene(boxes), where="kind == 'b'")
    assert hits.index.tolist() == [1]
    # of copies without labels of their own, the mask is of copies: their geometry's labels do not choose
    with pytest.raises(rb.InvalidInput, match="no label 'kind'; there are: none"):
        rb.Scene(rb.Instances(boxes, [np.eye(4)])).nearest(rays, where="kind == 'b'")
    assert rb.Scene(boxes[:0]).nearest(rays, where="kind == 'b'").hit.sum() == 0


def test_expressions_of_a_list_of_geometries():
    boxes = rb.Boxes([[0, 0, 3]], [[4, 4, 4]], labels={"kind": ["stone"]})
    plain = rb.Boxes([[0, 0, 6]], [[4, 4, 7]])
    scene = rb.Scene([MESH, boxes])
    assert scene.count(DOWN, where="kind == 'stone'").tolist() == [2, 2, 0]
    assert scene.count(DOWN, where=["kind == 'wood'", None]).tolist() == [2, 1, 0]
    assert scene.count(DOWN, where=["False", [False]]).tolist() == [0, 0, 0]
    both = rb.Scene([MESH, plain])
    with pytest.raises(
        rb.InvalidInput,
        match=r"column 1: there is no label 'kind'; there are: none. In: \^kind .*Boxes\(1, D=3\)",
    ):
        both.nearest(DOWN, where="kind == 'stone'")
    assert both.count(DOWN, where=["kind == 'stone'", None]).tolist() == [1, 1, 0]
    with pytest.raises(rb.InvalidInput, match="a mask, an expression or None for each geometry"):
        both.nearest(DOWN, where=["True"])
