"""Shared by tests that wait for another process or thread."""

import time

SECONDS = 300  # only what is broken takes so long, also on a busy machine


def wait_until(condition, what, seconds=SECONDS):
    """Wait until a condition holds, or fail."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.005)
