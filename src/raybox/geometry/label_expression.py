"""Masks from expressions of labels, such as ``ifc_class != 'IfcSpace'``.

Expressions are parsed by `ast`, checked against a list of allowed nodes, and never run as Python.
A comparison with a missing value is False, whatever its operator. Numbers are compared exactly.
"""

import ast
import math
import re
import warnings
from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any, NamedTuple, NoReturn, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from raybox.errors import InvalidInput
from raybox.geometry.labels import shown_names
from raybox.validation import Bools

MAX_LENGTH = 10_000  # characters: of more, the parser may need too much memory
_SHOWN = 48  # characters of an expression on each side of a mistake
_TOKENS = re.compile(
    r"""
    (?P<constant> (?P<prefix> \b [bfrtu]{1,2} )? (?:
        \'{3} (?: [^\\] | \\. )*? \'{3} | "{3} (?: [^\\] | \\. )*? "{3}
        | ' (?: [^'\\] | \\. )* ' | " (?: [^"\\] | \\. )* " ))
    | ` (?P<name> [^`]* ) ` | (?P<comment> \# ) | (?P<blank> [\s\0] )
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_ESCAPED_OR_RAW = re.compile(r"\\(?P<escaped>.)|(?P<raw>[\n\r\0])", re.DOTALL)
_RAW = {"\n": r"\n", "\r": r"\r", "\0": r"\x00"}
"""What no constant of Python holds as it is, and its escapes."""
_PLACEHOLDERS = range(0x4E00, 0x9F00)  # letters that stand for names in backquotes, of the same length

V = TypeVar("V")
Constant: TypeAlias = bool | int | float | str
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}
_UFUNCS: dict[str, Callable[[Any, Any], Bools]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
# of numbers x and a constant between two of their type, of which `low` is the lower: x < c as x <= low
_BETWEEN = {"lt": "le", "le": "le", "gt": "gt", "ge": "gt"}
_WORDS = {"&": "and", "&&": "and", "|": "or", "||": "or", "~": "not", "!": "not", "<>": "!="}
"""What stands for operators in other languages, and in masks."""
_FOREIGN = re.compile(r"&&?|\|\|?|~|!(?!=)|<>")
_MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


class _Column(NamedTuple):
    """A column of labels: its values, which of them are present, and their kind."""

    values: NDArray[Any]
    present: Bools
    kind: str
    """text, numbers, bools, or nothing: all values are missing"""


class _Expression(NamedTuple):
    """An expression, and the columns that it may name."""

    text: str
    plain: str
    """the text as Python can parse it: names in backquotes have placeholders, of the same length"""
    quoted: Mapping[str, str]
    """names in backquotes by their placeholders"""
    columns: Mapping[str, NDArray[Any]]

    def fail(self, node: ast.AST | int, problem: str) -> NoReturn:
        """Raise `InvalidInput` with the column of a mistake, and ^ before it."""
        at = node if isinstance(node, int) else self.start(node)
        before, after = self.text[max(0, at - _SHOWN) : at], self.text[at : at + _SHOWN]
        raise InvalidInput(f"where, column {at + 1}: {problem}. In: {before}^{after}")

    def start(self, node: ast.AST) -> int:
        """Return the index of a node's first character."""
        return len(self.plain.encode()[: getattr(node, "col_offset", 0)].decode(errors="ignore"))

    def written(self, node: ast.expr) -> slice:
        """Return the characters of a node."""
        begin = self.start(node)
        return slice(begin, begin + len(self.plain.encode()[node.col_offset : node.end_col_offset].decode()))

    def name(self, node: ast.Name) -> str:
        """Return a name as it is written; Python would normalize its letters."""
        written = self.written(node)
        return self.quoted.get(self.plain[written], self.text[written])

    def constant(self, node: ast.Constant) -> object:
        """Return a constant with all of its characters, also those that Python takes as escapes alone."""
        written = self.text[self.written(node)]
        if not isinstance(node.value, str) or _RAW.keys().isdisjoint(written):
            return node.value
        return _without_warnings(ast.literal_eval, _TOKENS.sub(_escaped, written))


def mask_of(text: str, columns: Mapping[str, NDArray[Any]], count: int) -> Bools:
    """Return which of `count` objects an expression of their labels is true of.

    Parameters
    ----------
    text : str
        Comparisons, ``in``, ``and``, ``or``, ``not``, names of columns (in backquotes where they are no
        identifiers), and constants.
    columns : mapping of str to ndarray, shape (count,)
        Labels, and ids as ``id``.

    Raises
    ------
    InvalidInput
        If the text holds anything else, names a column that is not there, or compares text with numbers: with
        the column of the mistake.

    Examples
    --------
    >>> columns = {"storey": np.array(["1", None, "2"], dtype=object), "cost": np.array([1.0, 2.0, np.nan])}
    >>> mask_of("storey in ('1', '2') and not cost > 5", columns, 3)
    array([ True, False,  True])
    """
    expression = _prepared(text, columns)
    try:
        found = _condition(expression, _parsed(expression))
    except (MemoryError, RecursionError) as error:
        raise InvalidInput("where: the expression is nested too deeply. Use `in`, or pass a mask.") from error
    return np.broadcast_to(found, (count,))


def _prepared(text: str, columns: Mapping[str, NDArray[Any]]) -> _Expression:
    """Return an expression as Python can parse it; each character keeps its place."""
    if len(text) > MAX_LENGTH:
        raise InvalidInput(
            f"where: an expression has up to {MAX_LENGTH:,} characters; got {len(text):,}. Pass a mask."
        )
    given = _Expression(text, text, {}, {})
    if surrogate := re.search("[\ud800-\udfff]", text):
        given.fail(surrogate.start(), "lone surrogates are written as escapes")
    free = (chr(code) for code in _PLACEHOLDERS if chr(code) not in text)
    quoted: dict[str, str] = {}

    def replaced(token: re.Match[str]) -> str:
        if token["comment"]:
            given.fail(token.start(), "comments are not part of expressions")
        if token["constant"]:
            _check_constant(given, token)
            return re.sub("[\n\r\0]", " ", token[0])
        if token["blank"]:
            return " "
        placeholder = next(free) * len(token[0])
        quoted[placeholder] = token["name"]
        return placeholder

    return _Expression(text, _TOKENS.sub(replaced, text), quoted, columns)


def _check_constant(expression: _Expression, token: re.Match[str]) -> None:
    """Raise `InvalidInput` for a line end or NUL in a constant where it could mean two things."""
    for part in _ESCAPED_OR_RAW.finditer(token[0]):
        if part["escaped"] in _RAW or (part["raw"] and token["prefix"]):
            problem = "a line end or NUL after a backslash, or in a constant with a prefix: write its escape"
            expression.fail(token.start() + part.start(), f"{problem}, such as \\n")


def _escaped(token: re.Match[str]) -> str:
    """Return a constant with the escapes of its line ends and NULs, or a blank for anything else."""
    if not token["constant"]:
        return " "
    return _ESCAPED_OR_RAW.sub(lambda part: _RAW[part["raw"]] if part["raw"] else part[0], token[0])


def _without_warnings(parse: Callable[[str], V], text: str) -> V:
    """Return what a function makes of a text, without warnings of unknown escapes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return parse(text)


def _parsed(expression: _Expression) -> ast.expr:
    """Return the syntax tree of an expression."""
    blank = len(expression.plain) - len(expression.plain.lstrip())
    if blank == len(expression.plain):
        raise InvalidInput("where: the expression is empty. Pass None to hit all.")
    _check_operators(expression)
    try:
        parsed = _without_warnings(partial(ast.parse, mode="eval"), expression.plain[blank:])
    except SyntaxError as error:
        end = len(expression.text)
        at = min(error.offset - 1 + blank, end) if error.offset else end
        reason = "; equality is ==" if expression.text[at : at + 1] == "=" else f" ({error.msg})"
        if re.search(r"\b(AND|OR|NOT|IN)\b", _bare(expression)):
            reason = "; `and`, `or`, `not` and `in` are written in small letters"
        expression.fail(at, f"not an expression of labels{reason}")
    tree = cast("ast.Expression", parsed).body
    for node in ast.walk(tree):
        if hasattr(node, "col_offset"):
            shift = len(expression.plain[:blank].encode())
            node.col_offset += shift
            node.end_col_offset += shift  # type: ignore[attr-defined]
    return tree


def _check_operators(expression: _Expression) -> None:
    """Raise `InvalidInput` for operators of other languages and of masks."""
    if found := _FOREIGN.search(_bare(expression)):
        expression.fail(found.start(), f"`{found[0]}` is not part of expressions; write `{_WORDS[found[0]]}`")


def _bare(expression: _Expression) -> str:
    """Return an expression with blanks in place of its constants."""
    return _TOKENS.sub(lambda token: " " * len(token[0]), expression.plain)


def _condition(expression: _Expression, node: ast.expr) -> Bools | np.bool_:
    """Return of which objects a condition is true."""
    match node:
        case ast.BoolOp(op=op, values=values):
            combine = np.logical_and if isinstance(op, ast.And) else np.logical_or
            conditions = [_condition(expression, value) for value in values]
            return cast("Bools", reduce(combine, conditions))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return np.logical_not(_condition(expression, operand))
        case ast.Compare():
            return _comparisons(expression, node)
        case ast.Constant(value=bool() as value):
            return np.bool_(value)
        case ast.Name():
            column = _column(expression, node)
            if column.kind == "bools":
                true = np.equal(column.values, True).astype(np.bool_)  # None is not
                return cast("Bools", column.present & true)
            name = expression.name(node)
            expression.fail(node, f"{name!r} holds {column.kind}, not a condition; compare it: {name} == ...")
    expression.fail(node, "only comparisons, `in`, `and`, `or`, `not`, names and constants may stand here")


def _comparisons(expression: _Expression, node: ast.Compare) -> Bools | np.bool_:
    """Return where all comparisons of a chain are true."""
    found: Bools | np.bool_ = np.True_
    left = node.left
    for op, right in zip(node.ops, node.comparators, strict=True):
        if isinstance(op, ast.In | ast.NotIn):
            one = _membership(expression, left, right, isinstance(op, ast.NotIn))
        elif type(op) in _COMPARISONS:
            one = _comparison(expression, _COMPARISONS[type(op)], left, right)
        else:
            expression.fail(right, "`is` is not part of expressions; use ==")
        found, left = np.logical_and(found, one), right
    return found


def _comparison(expression: _Expression, name: str, left: ast.expr, right: ast.expr) -> Bools | np.bool_:
    one, other = _operand(expression, left), _operand(expression, right)
    _check_kinds(expression, _kind(one), _kind(other), right)
    if isinstance(one, _Column) and isinstance(other, _Column):
        return _of_columns(name, one, other)
    if isinstance(one, _Column) and not isinstance(other, _Column):
        return _of_constant(name, one, other)
    if isinstance(other, _Column) and not isinstance(one, _Column):
        return _of_constant(_MIRRORED[name], other, one)
    return np.bool_(_UFUNCS[name](np.array(one, object), np.array(other, object)))


def _membership(expression: _Expression, left: ast.expr, right: ast.expr, negated: bool) -> Bools | np.bool_:
    """Return where a value is, or is not, one of several constants."""
    if not isinstance(right, ast.Tuple | ast.List | ast.Set):
        expression.fail(right, "`in` needs a list of constants: storey in ['1', '2']")
    one = _operand(expression, left)
    constants = set[Constant]()
    for element in right.elts:
        constant = _operand(expression, element)
        if isinstance(constant, _Column):
            expression.fail(element, "`in` needs constants, not names; compare with ==")
        _check_kinds(expression, _kind(one), _kind(constant), element)
        constants.add(constant)
    if not isinstance(one, _Column):
        return np.bool_((one in constants) != negated)
    rows = np.flatnonzero(one.present)
    found = np.zeros(len(one.values), dtype=np.bool_)
    # hashes of equal integers and floats are equal
    contains = map(constants.__contains__, one.values[rows].tolist())
    found[rows] = np.fromiter(contains, dtype=np.bool_, count=len(rows)) != negated
    return found


def _operand(expression: _Expression, node: ast.expr) -> _Column | Constant:
    """Return a column or a constant."""
    match node:
        case ast.Name():
            return _column(expression, node)
        case ast.Constant(value=bool() | int() | float() | str()):
            return cast("Constant", expression.constant(node))
        case ast.UnaryOp(
            op=ast.USub() | ast.UAdd() as sign, operand=ast.Constant(value=int() | float() as value)
        ):
            if not isinstance(value, bool):
                return -value if isinstance(sign, ast.USub) else value
    expression.fail(node, "only names, numbers, text, True and False can be compared")


def _column(expression: _Expression, node: ast.Name) -> _Column:
    """Return the column of a name."""
    name = expression.name(node)
    if name not in expression.columns:
        expression.fail(node, f"there is no label {name!r}; there are: {shown_names(expression.columns)}")
    values = expression.columns[name]
    if values.dtype.kind in "if":
        return _Column(values, values == values, "numbers")
    if values.dtype.kind == "b":
        return _Column(values, np.ones(len(values), dtype=np.bool_), "bools")
    present = np.not_equal(values, np.array(None)).astype(np.bool_)
    first = values[present.argmax()] if present.any() else None
    return _Column(values, present, "nothing" if first is None else _kind(first))


def _kind(value: _Column | Constant) -> str:
    if isinstance(value, _Column):
        return value.kind
    return "text" if isinstance(value, str) else "bools" if isinstance(value, bool) else "numbers"


def _check_kinds(expression: _Expression, one: str, other: str, node: ast.expr) -> None:
    if "nothing" not in (one, other) and one != other:
        way_out = (
            "quote the number" if {one, other} == {"text", "numbers"} else "write a constant of that kind"
        )
        expression.fail(node, f"{one} cannot be compared with {other}; {way_out}")


def _of_columns(name: str, one: _Column, other: _Column) -> Bools:
    """Compare two columns where both are present; numbers of different types as Python's, exactly."""
    rows = np.flatnonzero(one.present & other.present)
    found = np.zeros(len(one.values), dtype=np.bool_)
    values = [column.values[rows] for column in (one, other)]
    if values[0].dtype != values[1].dtype:
        values = [some.astype(object) for some in values]
    found[rows] = _UFUNCS[name](*values).astype(np.bool_)
    return found


def _of_constant(name: str, column: _Column, constant: Constant) -> Bools:
    """Compare a column with a constant where it is present."""
    values = column.values
    if name in ("eq", "ne") and values.dtype == np.object_:  # which None, too, is compared by
        return column.present & _UFUNCS[name](values, np.array(constant, object)).astype(np.bool_)
    if values.dtype == np.object_:
        rows = np.flatnonzero(column.present)
        found = np.zeros(len(values), dtype=np.bool_)
        found[rows] = _UFUNCS[name](values[rows], np.array(constant, object)).astype(np.bool_)
        return found
    if not isinstance(constant, str) and values.dtype.kind in "if":
        return column.present & _of_number(name, values, constant)
    return column.present & _UFUNCS[name](values, constant)


def _of_number(name: str, values: NDArray[Any], number: float) -> Bools | np.bool_:
    """Compare integers or floats with any number, exactly."""
    if isinstance(number, float) and math.isinf(number):
        return _UFUNCS[name](values, number)
    low = _lower_neighbour(values.dtype, number)
    if low == number:
        return _UFUNCS[name](values, low)
    if name in ("eq", "ne"):
        return np.bool_(name == "ne")
    if low == -math.inf and values.dtype.kind == "i":
        return np.bool_(name in ("gt", "ge"))
    return _UFUNCS[_BETWEEN[name]](values, low)


def _lower_neighbour(dtype: np.dtype[Any], number: float) -> float:
    """Return the largest value of a dtype up to a number.

    -inf below all integers.
    """
    if dtype.kind == "i":
        low, limits = math.floor(number), np.iinfo(np.int64)
        return min(low, int(limits.max)) if low >= limits.min else -math.inf
    try:
        near = float(number)
    except OverflowError:
        return float(np.finfo(np.float64).max) if number > 0 else -math.inf
    return near if near <= number else float(np.nextafter(near, -math.inf))
