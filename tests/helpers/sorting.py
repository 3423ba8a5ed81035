"""Which rays of a query are sorted."""

from raybox.queries import one_by_one


def sort_more_than(monkeypatch, count):
    """Let more rays than these be sorted, where thousands would go one by one."""
    monkeypatch.setattr(one_by_one, "MOST_RAYS", count)
