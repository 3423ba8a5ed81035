"""Compiled arithmetic: exact comparisons, vector operations and one file per primitive."""
