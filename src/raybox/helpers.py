"""Threads that help with questions: a crew is lent to one, told of each piece of its work, then kept.

Starting a thread took 0.3 ms. The pieces of a question follow each other within a millisecond. So a helper
looks for the next one for a moment before it sleeps, and who asks does not sleep at once either when the
others are not done: whoever is woken may be put on a core that another runs on (`raybox.placing`).
"""

import os
from collections.abc import Callable
from threading import Condition, Thread
from typing import Any

import numpy as np

from raybox import placing

Drain = Callable[[int], list[Any]]  # does work, as thread number so and so, until there is none left

_PIECE, _BUSY = 0, 1  # places in the bell: the number of the piece of work, and of helpers that are at it
_MOMENT = 8192  # looks of a helper, some 20 to 50 ns each
_WHILE = 16 * _MOMENT  # looks of who asks
_CREWS: dict[int, list["Crew"]] = {}

if hasattr(os, "register_at_fork"):  # a child has no threads but the one that forked
    os.register_at_fork(after_in_child=_CREWS.clear)


def lend(number: int) -> "Crew":
    """Return so many helpers, who are nobody else's until they are let go."""
    try:
        return _CREWS.setdefault(number, []).pop()
    except IndexError:
        return Crew(number)


def _nothing() -> None:
    pass


def _look(bell: Any, place: int, span: tuple[int, int], looks: int) -> None:
    """Wait while bell[place] is within the span, for so many looks."""
    from raybox.kernels.waiting import wait_while  # compiled code: who asks of a pair or two does without

    wait_while(bell, place, *span, looks)


class Crew:
    """So many helpers, for one question at a time."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._threads: list[Thread] | None = None
        self._bell, self._change = np.zeros(2, np.int64), Condition()
        self._place, self._looks = placing.NOWHERE, False
        self._forget()

    def share(self, drain: Drain, threads: int, stop: Callable[[], None]) -> list[Any]:
        """Have so many threads drain a piece of work; `stop` has them end soon, if something goes wrong.

        Who asks is number 0. Helpers for whom there is no thread, or no time, are not waited for.
        """
        answers = []
        try:
            self._gather()
            self._offer(drain, threads, stop)
            answers = drain(0)
        except BaseException as error:
            self._errors.insert(0, error)
        self._end()
        if self._errors:
            raise self._errors[0]
        return answers + self._answers

    def let_go(self) -> None:
        """Keep the helpers for the next question."""
        placing.leave(self._place)
        self._place = placing.NOWHERE
        self._forget()
        _CREWS.setdefault(self._number, []).append(self)

    def _forget(self) -> None:
        self._drain: Drain | None = None
        self._wanted, self._stop = 0, _nothing
        self._answers: list[Any] = []
        self._errors: list[BaseException] = []

    def _gather(self) -> None:
        """Start the helpers, if need be; have them keep off the core of who asks, once a question."""
        if self._place is not placing.NOWHERE:
            return
        self._looks = self._number < placing.cores()  # where threads have to take turns, nobody looks
        if self._looks:
            self._place = placing.find()
            placing.keep_off(self._place, [thread.native_id or 0 for thread in self._threads or ()])
            placing.stay(self._place)
        if self._threads is None:
            self._threads = list(filter(None, map(self._start, range(1, self._number + 1))))

    def _start(self, number: int) -> Thread | None:
        # a daemon: nobody waits for it at the end
        thread = Thread(target=self._serve, args=(number,), name=f"raybox_{number}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # there are too many
            return None
        return thread

    def _offer(self, drain: Drain, threads: int, stop: Callable[[], None]) -> None:
        with self._change:
            self._forget()
            self._drain, self._wanted, self._stop = drain, threads, stop
            self._bell[_PIECE] += 1
            self._change.notify_all()

    def _end(self) -> None:
        """Have nobody join any more, and wait for those who have, whatever comes between."""
        while True:
            try:
                with self._change:
                    self._drain = None
                if self._errors:
                    self._stop()
                else:
                    _look(self._bell, _BUSY, (1, self._number), self._looks * _WHILE)
                with self._change:
                    while self._bell[_BUSY] > 0:
                        self._change.wait(0.1)  # one without an end would keep Ctrl-C out on some systems
            except BaseException as error:
                self._errors.insert(0, error)
            else:
                return

    def _serve(self, number: int) -> None:
        """Take part in one piece of work after the other."""
        placing.keep_off(self._place)  # a new thread is on the core where it was made
        piece = 0
        while True:
            piece = self._join(number, piece)
            _look(self._bell, _PIECE, (piece, piece), self._looks * _MOMENT)

    def _join(self, number: int, last: int) -> int:
        """Wait for another piece of work than the last, and take part if wanted; return its number."""
        with self._change:
            while self._bell[_PIECE] == last:
                self._change.wait()
            piece, drain = int(self._bell[_PIECE]), self._drain
            if drain is None or number >= self._wanted:
                return piece
            self._bell[_BUSY] += 1
        answers = []
        try:
            answers = drain(number)
        except BaseException as error:
            self._errors.append(error)
            self._stop()
        with self._change:
            self._answers += answers
            self._bell[_BUSY] -= 1
            self._change.notify_all()
        return piece
