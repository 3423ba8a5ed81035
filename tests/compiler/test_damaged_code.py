"""Damaged files of stored machine code are compiled anew: right results, no crash, no exception."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import damaged_code  # in benchmarks/
from damaged_code import Case


@pytest.mark.long
def test_a_small_campaign(tmp_path):
    found = list(damaged_code.campaign(tmp_path, len(damaged_code.DAMAGES), 1))
    assert [damage for damage, _, _ in found] == [damage.__name__ for damage in damaged_code.DAMAGES]
    assert {kind for _, _, kind in found} == {damaged_code.REPLACED}


def test_every_damage_changes_the_file():
    rng = np.random.default_rng(4)
    case = Case(rng.bytes(9000), rng.bytes(7000))
    for damage in damaged_code.DAMAGES:
        contents = {damage(case, np.random.default_rng(seed)) for seed in range(40)}
        assert case.data not in contents
        assert len(contents) > 1


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ("print('other')", "wrong"),
        ("1 / 0", "foreign ZeroDivisionError: division by zero"),
        ("import os; os.kill(os.getpid(), 9)", "crash signal 9"),
        ("import time; time.sleep(60)", "crash no answer"),
        ("print('right')", "kept"),
        ("import os; print('right'); open(os.environ['NUMBA_CACHE_DIR'] + '/code', 'w').close()", "replaced"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
def test_faults_are_counted(tmp_path, monkeypatch, script, kind):
    monkeypatch.setattr(damaged_code, "QUERIES", script)
    monkeypatch.setattr(damaged_code, "SECONDS", 3.0 if "sleep" in script else 60.0)
    assert damaged_code.outcome(tmp_path, tmp_path / "code", b"damaged", "right\n") == kind
