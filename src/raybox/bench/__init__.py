"""Benchmarks against other libraries: same boxes and rays, alternated runs, compared results."""
