"""Describes the machine and the versions of a measurement."""

import datetime
import os
import platform
from pathlib import Path
from typing import TypedDict

from raybox.bench import peers
from raybox.compiler.cores import cores
from raybox.compiler.library import code_source
from raybox.compiler.processor import level

WARNING = (
    "Machines are noisy and shared: compare ratios of one run, whose contestants took turns, and no absolute "
    "numbers of different runs."
)
_ALSO = ("numpy", "numba", "llvmlite")


class Machine(TypedDict):
    """What the times of a measurement depend on."""

    date: str
    cpu: str
    cores: int
    usable_cores: int
    memory_gb: float | None
    system: str
    python: str
    code: str
    level: str
    """of the processor; kernels may be of a lower one"""
    versions: dict[str, str]


def describe() -> Machine:
    """Return date, CPU, cores, memory, system, and versions of Python and packages."""
    versions = {peer.distribution: peers.version(peer.distribution) for peer in peers.table().values()}
    versions |= {name: peers.version(name) for name in _ALSO}
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": cpu_model(),
        "cores": os.cpu_count() or 1,
        "usable_cores": cores(),
        "memory_gb": memory_gb(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "code": code_source(),
        "level": level(),
        "versions": {name: version for name, version in versions.items() if version},
    }


def cpu_model() -> str:
    """Return the CPU's name; on Linux with its family, model and vector units."""
    cpuinfo = Path("/proc/cpuinfo")
    if not cpuinfo.exists():
        return platform.processor() or platform.machine()
    facts = {}
    for line in cpuinfo.read_text().split("\n\n")[0].splitlines():
        name, _, value = line.partition(":")
        facts[name.strip()] = value.strip()
    flags = facts.get("flags", "").split()
    widest = next((name for flag, name in _UNITS.items() if flag in flags), "")
    family = f"family {facts.get('cpu family', '?')} model {facts.get('model', '?')}"
    return ", ".join(filter(None, [facts.get("model name", platform.machine()), family, widest]))


_UNITS = {"avx512f": "AVX-512", "avx2": "AVX2", "asimd": "NEON"}


def memory_gb() -> float | None:
    """Return the machine's memory in GB, None if unknown."""
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return None
    return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9, 1)


def peak_gb() -> float | None:
    """Return this process's peak memory so far in GB, None if unknown."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak * (1 if platform.system() == "Darwin" else 1024) / 1e9, 3)


def in_words(machine: Machine) -> str:
    """Return the description as two lines of text."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return (
        f"{machine['date']}; {machine['cpu']}; {machine['cores']} cores, {machine['memory_gb']} GB; "
        f"{machine['system']}; Python {machine['python']}; {machine['code']}\n{versions}"
    )
