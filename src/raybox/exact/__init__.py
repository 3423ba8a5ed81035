"""Exact arithmetic: the definition, the predicate, error-free transforms, big integers."""
