"""`Scene`, its results, and queries without a tree."""
