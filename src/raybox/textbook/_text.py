"""Tables of plain text, for explanations."""

from collections.abc import Sequence

from raybox.textbook._checks import number

WIDTH = 100
Cell = str | float | None


def table(rows: Sequence[Sequence[Cell]], width: int) -> list[str]:
    """Return rows aligned to the right, with as many digits as fit the width."""
    for digits in (17, 12, 9, 6):
        texts = [[write(cell, digits) for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        lines = ["  ".join(map(str.rjust, row, widths)) for row in texts]
        if len(lines[0]) <= width:
            break
    return lines


def columns(*texts: Sequence[str]) -> list[str]:
    """Return rows of columns aligned to the left."""
    padded = []
    for column in texts:
        width = max(map(len, column))
        padded.append([text.ljust(width) for text in column])
    return ["  ".join(row) for row in zip(*padded, strict=True)]


def write(cell: Cell, digits: int) -> str:
    """Return a cell of a table; a number with so many significant digits, of 17 as few as read back."""
    if cell is None:
        return "-"
    if isinstance(cell, str):
        return cell
    return number(cell) if digits == 17 else f"{cell + 0.0:.{digits}g}"
