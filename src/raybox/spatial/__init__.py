"""Spatial queries: what boxes hold points, overlap boxes, are near points, or meet a convex region."""
