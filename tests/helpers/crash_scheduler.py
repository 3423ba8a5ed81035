"""A scheduler of pytest-xdist that does not run a test again which has ended its process."""

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController


class CrashScheduling(LoadFileScheduling):
    """Runs the tests of a file in one process.

    pytest-xdist reports a test that ends its process as failed, but gives it to another process with the rest
    of its file. That one ends, too, and the tests behind it never run.
    """

    def remove_node(self, node: WorkerController) -> str | None:
        """Return the test that a process ran when it ended; give the other tests of its files to another."""
        files = self.assigned_work[node].values()
        waiting = ((tests, name) for tests in files for name, is_done in tests.items() if not is_done)
        tests, crashed = next(waiting, ({}, None))
        if crashed is not None:
            tests[crashed] = True
        super().remove_node(node)
        return crashed
