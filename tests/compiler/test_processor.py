"""The level of this processor, against what the system says of it."""

import platform
import subprocess
import sys
from pathlib import Path

from raybox.compiler import processor


def test_levels_are_those_of_the_processor():
    level = processor.level()
    if platform.machine() in {"aarch64", "arm64"}:
        assert level == "generic"
    elif Path("/proc/cpuinfo").exists():
        text = next(
            line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")
        )
        flags, expected = set(text.split()), "baseline"
        for name, needed in {
            "v2": "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3",
            "v3": "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave",
            "v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
        }.items():
            if not flags.issuperset(needed.split()):
                break
            expected = name
        assert level == expected


def test_a_process_that_imports_nothing_else_knows_its_level():
    code = "from raybox.compiler.processor import level; print(level())"
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed == f"{processor.level()}\n"
