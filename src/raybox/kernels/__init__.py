"""Libraries of raybox's kernels, one a processor level, and what builds them from `kernels.txt`."""
