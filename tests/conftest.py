"""Rays of tests are sorted from 1,025 on, so that thousands go through streams and packets, too."""

import pytest

from sorting import sort_more_than


@pytest.fixture(autouse=True)
def thousands_are_sorted(monkeypatch):
    """Sort what a user's query would send through the tree one by one; a module may replace this fixture."""
    sort_more_than(monkeypatch, 1024)
