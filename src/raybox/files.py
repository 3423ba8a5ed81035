"""Reads and writes of files; see `raybox.io.formats`."""

from raybox.io.formats import FORMATS, Loaded, Saveable, check_target, contents, load, read, save

__all__ = ["FORMATS", "Loaded", "Saveable", "check_target", "contents", "load", "read", "save"]
