"""Which process made a lock, and whether it has ended: only what this process can decide.

A process number means something on one machine, since its last start, in one PID namespace; after that
process has ended, another may get it, which has another start time.
"""

import os
import re
import socket
from pathlib import Path
from typing import Any, NamedTuple

from raybox.store.record import RecordKind

_FIRST_NAMESPACE = 0xEFFFFFFC  # the inode of Linux's own; all others are those of containers
_AFTER_NAME = re.compile(r".*\) ", re.DOTALL)  # the name of a program may have brackets and spaces
_START_TIME = 19  # its position after the name in /proc/PID/stat


class LockOwner(NamedTuple):
    """A process. Of what the system does not offer, empty text and zero."""

    host: str
    """Name and machine identity."""
    boot: str
    """Changes when the machine starts."""
    namespace: int
    """Inode of its PID namespace."""
    process: int
    start: int
    """Clock ticks from the start of the machine."""

    def has_ended(self) -> bool:
        """Return whether the process has ended; False also if this one cannot find out."""
        here = this_process()
        if self.host != here.host:
            return False
        if self.boot != here.boot:  # containers of two machines may have one host name
            return here.namespace == self.namespace == _FIRST_NAMESPACE and bool(self.boot and here.boot)
        return self.namespace == here.namespace and _has_ended(self.process, self.start)


def this_process() -> LockOwner:
    """Return the owner of what this process makes."""
    process = os.getpid()
    host = f"{socket.gethostname()} {_text('/etc/machine-id')}".strip()
    return LockOwner(host, _text("/proc/sys/kernel/random/boot_id"), _namespace(), process, _start(process))


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _namespace() -> int:
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def _start(process: int) -> int:
    """Return when a process started; 0 if it has ended, or the system does not offer it."""
    try:
        if os.readlink("/proc/self") != str(os.getpid()):  # its numbers are those of another namespace
            return 0
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        return int(_AFTER_NAME.sub("", text, count=1).split()[_START_TIME])
    except (OSError, ValueError, IndexError):
        return 0


def _has_ended(process: int, start: int) -> bool:
    if os.name != "posix":
        return False  # os.kill would end it
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        pass
    now = _start(process)
    return bool(start and now and now != start)


def _parse(value: Any) -> LockOwner:
    host, boot, namespace, process, start = value
    owner = LockOwner(str(host), str(boot), int(namespace), int(process), int(start))
    if owner.process <= 0:  # os.kill would signal a group
        raise ValueError("no process")
    return owner


OWNER = RecordKind("lock owner", 1, _parse, "remove it if no process uses the output")
