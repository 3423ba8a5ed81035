"""Systems that libraries of kernels are built for, and how object files are linked for each."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from raybox.compiler.target import CodeTarget

_LIBC = "free|frexp|ldexp|malloc|memcpy|memmove|memset|nextafter"


class System(NamedTuple):
    """What libraries of an operating system have in common."""

    suffix: str
    options: tuple[str, ...]
    """Of the linker."""
    imports: str
    """What a library may import, as a regular expression: functions; for Windows, libraries."""


_LINUX = System(
    ".so", ("-shared", "-Wl,-z,defs", "-Wl,--gc-sections", "-Wl,--build-id=none", "-s", "-lm"), _LIBC
)
_MACOS = System(".dylib", ("-dynamiclib", "-Wl,-dead_strip"), f"{_LIBC}|(__)?bzero|dyld_stub_binder")
_WINDOWS = System(".dll", ("-shared", "-s"), r"(kernel32|msvcrt|ucrtbase|api-ms-win-crt-[\w-]+)\.dll")


class Platform(NamedTuple):
    """A system with a kind of processor."""

    system: System
    triple: str
    zig: str
    """Its name for Zig's C compiler."""
    levels: dict[str, str]
    """Name of a level -> LLVM's name of its processor."""

    def target(self, level: str) -> CodeTarget:
        """Return what a level is compiled for."""
        return CodeTarget(self.triple, self.levels[level], "")

    def library(self, folder: Path, level: str) -> Path:
        """Return the path of the library of a level."""
        return folder / f"raybox-{level}{self.system.suffix}"


_X86 = {"v2": "x86-64-v2", "v3": "x86-64-v3", "v4": "x86-64-v4"}
_ARM = {"generic": "generic"}
PLATFORMS = {
    "x86_64-linux": Platform(_LINUX, "x86_64-unknown-linux-gnu", "x86_64-linux-gnu.2.17", _X86),
    "aarch64-linux": Platform(_LINUX, "aarch64-unknown-linux-gnu", "aarch64-linux-gnu.2.17", _ARM),
    "x86_64-macos": Platform(_MACOS, "x86_64-apple-macosx10.15", "x86_64-macos.10.15", _X86),
    "aarch64-macos": Platform(_MACOS, "arm64-apple-macosx11.0", "aarch64-macos.11.0", _ARM),
    "x86_64-windows": Platform(_WINDOWS, "x86_64-w64-windows-gnu", "x86_64-windows-gnu", _X86),
}


class BuildError(Exception):
    """A library cannot be built, or is not what it must be."""


def native() -> str:
    """Return the name of this platform."""
    system, machine = platform.system().lower(), platform.machine().lower()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    return f"{machine}-{'macos' if system == 'darwin' else system}"


def compile_c(source: Path, built_for: Platform, folder: Path) -> Path:
    """Compile a source in C to an object file of a folder."""
    position = [] if built_for.system == _WINDOWS else ["-fPIC"]
    output = folder / f"{source.stem}.obj"
    _call([*_compiler(built_for), "-O2", "-g0", *position, "-c", str(source), "-o", output.name], folder)
    return output


def link(objects: list[Path], built_for: Platform, output: Path) -> None:
    """Link object files of a folder into a shared library."""
    folder = objects[0].parent
    # Names without folders: some linkers write them into the output.
    names = [*(path.name for path in objects), "-o", output.name]
    _call([*_compiler(built_for), *names, *built_for.system.options], folder)
    new = output.with_suffix(".new")
    shutil.copyfile(folder / output.name, new)
    new.replace(output)  # whoever has loaded the old library keeps it


def _compiler(built_for: Platform) -> list[str]:
    """Return the command of a C compiler for a platform."""
    if os.environ.get("CC"):
        return os.environ["CC"].split()
    is_native = PLATFORMS.get(native()) == built_for
    if is_native and sys.platform != "win32":
        return ["cc"]
    return [sys.executable, "-m", "ziglang", "cc", "-target", built_for.zig]


def _call(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise BuildError(f"no C compiler: {command[0]}: {error.strerror}; install one, or set CC") from None
    if done.returncode:
        text = (done.stderr + done.stdout).strip()
        if "No module named ziglang" in text:
            text = "for another platform, pip install ziglang, or set CC to a compiler for it"
        raise BuildError(f"{' '.join(command[:4])} … failed: {text[:2000]}")
