"""Shared by tests that wait for another process or thread."""

import time


def wait_until(condition, what, seconds=300):
    """Wait until a condition holds, or fail; only what is broken takes so long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.005)
