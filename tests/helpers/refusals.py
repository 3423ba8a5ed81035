"""Errors of readers: one line in raybox's words, with a way out."""

import warnings

import pytest

import raybox as rb
from mutants import FOREIGN
from raybox.errors import SkippedWarning
from raybox.io.formats import read


def refused(path, read=read, **options):
    """Return the error's text after the path: one line, that of raybox."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(rb.FileFormatError) as caught:
            read(path, **options)
    text = str(caught.value)
    assert text.startswith(str(path))
    text = text.removeprefix(str(path))
    assert "\n" not in text
    assert "; " in text, "no way out is given"
    assert not FOREIGN.search(text.replace("shape ()", "")), "Python's own words"
    return text


def counted(path, **options):
    """Return a geometry and its counts, of which one warning tells."""
    with pytest.warns(SkippedWarning) as caught:
        geometry = rb.load(path, **options)
    (warning,) = caught
    assert all(f"{reason} ({count:,})" in str(warning.message) for reason, count in geometry.skipped.items())
    assert 0 not in geometry.skipped.values()
    return geometry, dict(geometry.skipped)


def check_replaced(path, text, old, new, expected, **options):
    """Check the error of a text in which `new` replaces the first `old`."""
    assert old in text
    path.write_bytes(text.replace(old, new, 1).encode("utf-8", "surrogateescape"))
    assert expected in refused(path, **options)


def refusal(make, *args, error=rb.InvalidInput, **options):
    """Return the text of the error that a call must raise."""
    with pytest.raises(error) as caught:
        make(*args, **options)
    return str(caught.value)
