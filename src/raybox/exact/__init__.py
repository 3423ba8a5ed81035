"""Exact arithmetic: the definition, the predicate, error-free transforms, integers of any length."""
