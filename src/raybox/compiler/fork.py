"""Locks in child processes: a child of a fork has only the thread that forked.

A lock that another thread owned at that moment would stay locked in the child for good. Two ways around it:

- `fork_safe_lock` is for state that is valid at every step, such as a result that is stored last. The child
  gets the lock anew, and sees the state before the interrupted change.
- `fork_after` is for state that an interrupted change would leave broken, such as Numba's compiler. A fork
  waits until that change has ended.
"""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from threading import RLock
from typing import Any
from weakref import WeakSet

_LOCKS: WeakSet[Any] = WeakSet()
_ENTERED: list[ExitStack] = []  # of forks that are about to happen: the first lock admits one thread


def after_fork_in_child(call: Callable[[], object]) -> None:
    """Register a function that every child process calls first; nothing, where there are no forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=call)


def fork_safe_lock() -> Any:
    """Return a re-entrant lock that is free in a child process, unless the thread that forked owns it."""
    lock = RLock()
    _LOCKS.add(lock)
    return lock


def _renew_locks() -> None:
    for lock in list(_LOCKS):
        if lock.acquire(blocking=False):
            lock.release()
        else:
            lock._at_fork_reinit()  # as the standard library does: conditions refer to the lock's methods


after_fork_in_child(_renew_locks)


def fork_after(*locks: AbstractContextManager[Any]) -> None:
    """Let forks wait until these locks are free, and take them meanwhile, in this order."""
    if not hasattr(os, "register_at_fork"):
        return

    def enter() -> None:
        with ExitStack() as stack:
            for lock in locks:
                stack.enter_context(lock)
            _ENTERED.append(stack.pop_all())

    def leave() -> None:
        if _ENTERED:  # an interrupt may have ended the wait
            _ENTERED.pop().close()

    os.register_at_fork(before=enter, after_in_parent=leave, after_in_child=leave)
