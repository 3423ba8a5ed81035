"""The number that cuts a float into halves; apart from compiled code, which takes long to import."""

SPLITTER = 134217729.0
"""2^27 + 1: cuts a float into two of 26 bits, whose products are exact (Dekker 1971)."""
