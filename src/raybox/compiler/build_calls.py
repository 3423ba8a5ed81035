"""Build the C module `_calls`, by the C compiler that setuptools finds for this Python."""

import os
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory

SOURCE = Path(__file__).with_name("_calls.c")
STABLE_ABI = "0x030B0000"  # Python 3.11
_HARDENED = ("-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", "-fstack-protector-strong")
# Without -g0 and -s, the output has the names of folders.
_COMPILE = ("-O3", "-g0", "-fvisibility=hidden", "-Wall", "-Wextra", *_HARDENED)
_LINK = {"linux": ("-Wl,-z,relro,-z,now", "-Wl,-s")}


def build_calls(folder: Path, *flags: str) -> Path:
    """Compile `_calls.c` into a folder; return the file that Python imports.

    Built with NumPy 2, it works with NumPy 1.26 and later, and with Python 3.11 and later, but for
    free-threaded ones: these have no stable interface.
    flags: more for the compiler, and for the linker.
    """
    import numpy as np
    from setuptools import Distribution, Extension  # type: ignore[import-untyped,unused-ignore]
    from setuptools.command.build_ext import build_ext  # type: ignore[import-untyped,unused-ignore]

    has_stable_headers = int(np.__version__.split(".")[0]) >= 2
    is_stable = has_stable_headers and not sysconfig.get_config_var("Py_GIL_DISABLED")
    is_unix = os.name != "nt"
    extension = Extension(
        "_calls",
        [str(SOURCE)],
        include_dirs=[np.get_include()],
        define_macros=[("Py_LIMITED_API", STABLE_ABI)] if is_stable else [],
        py_limited_api=is_stable,
        extra_compile_args=[*(_COMPILE if is_unix else ("/O2", "/Brepro")), *flags],
        extra_link_args=[*_LINK.get(sys.platform, () if is_unix else ("/Brepro",)), *flags],
    )
    with TemporaryDirectory() as temporary:
        command = build_ext(Distribution({"ext_modules": [extension]}))
        command.build_lib, command.build_temp, command.force = str(folder), temporary, True
        command.ensure_finalized()
        command.run()
        return Path(command.get_ext_fullpath("_calls"))


if __name__ == "__main__":
    print(build_calls(SOURCE.parent))
