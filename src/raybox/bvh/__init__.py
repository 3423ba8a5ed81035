"""The tree of boxes: its format, its builders, refits and checks. Primitives appear only as boxes."""
