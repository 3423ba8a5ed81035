"""Names that arguments of queries accept; imports no NumPy, for the command line."""

from typing import Literal

Per = Literal["length", "hit"]
"""What `deposit` multiplies a weight by: the length inside, or 1."""
