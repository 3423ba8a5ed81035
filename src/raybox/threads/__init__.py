"""Threads: the pool, chunks of work, progress, interruption."""
