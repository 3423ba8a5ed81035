"""The version of raybox."""

__version__ = "0.1.0"
