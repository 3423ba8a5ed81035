"""The tree of boxes: built once, walked by every question. It knows boxes, not primitives."""
