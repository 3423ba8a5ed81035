"""Sums over the paths of rays inside of boxes, made during traversal: of each ray, or of each box."""
