"""Small damage campaigns: files are refused, read without harm, or differ where the format cannot show it."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import damaged_files as campaigns
import raybox as rb
from file_samples import CASES, sample, samples, tables
from mutants import Tally, mutants, tally

MUST_OCCUR = {
    "parquet": {campaigns.REFUSED, campaigns.UNHARMED, campaigns.VALUES},
    "npy": {campaigns.REFUSED, campaigns.VALUES},
    "npz": {campaigns.REFUSED},
    "csv": {campaigns.REFUSED, campaigns.VALUES, campaigns.CUT},
    "casts": {campaigns.REFUSED, campaigns.RESUMED},
}


@pytest.mark.long
@pytest.mark.parametrize("name", campaigns.CAMPAIGNS)
def test_a_tenth_of_each_campaign(name):
    outcomes = campaigns.run(name, 0.1)
    assert not [outcome for outcome in outcomes if outcome.name in campaigns.FAILURES]
    assert {outcome.name for outcome in outcomes} >= MUST_OCCUR[name]
    assert all(outcome.place for outcome in outcomes if outcome.name == campaigns.VALUES)


def test_campaigns_report_their_counts(capsys):
    outcomes = [campaigns.Outcome(campaigns.REFUSED)] * 2 + [
        campaigns.Outcome(campaigns.ROWS, "byte 7", "1 of 2 rows")
    ]
    assert not campaigns.report("npy", outcomes)
    assert campaigns.report("npy", outcomes[:2])
    text = capsys.readouterr().out
    assert "npy: 3 damaged files" in text
    assert "2 refused" in text
    assert "FAILURE: rows lost or moved: byte 7 (1 of 2 rows)" in text


@pytest.mark.long
@pytest.mark.parametrize("name", [*samples(), *tables()])
def test_damaged_files_are_read_or_refused_in_plain_words(tmp_path, name):
    """Also with little memory, and in time."""
    content, options = sample(name) if name in samples() else tables()[name]
    count = 12 if name.endswith((".ifc", ".las", ".laz")) else 120  # these start a process each time
    found, faults = tally(tmp_path / name, mutants(content, count, seed=29), options)
    assert faults == []
    assert found.read + found.refused == count
    assert found.refused > count // 4


def test_the_tally_counts_faults(monkeypatch, tmp_path):
    errors = [rb.FileFormatError("incomplete header ('POINTS'); check it"), KeyError("POINTS")]

    def fault(_path, **_options):
        raise errors.pop()

    def spin(_path, **_options):
        while True:
            pass

    monkeypatch.setattr("mutants.read", fault)
    found, faults = tally(tmp_path / "a.vox", iter([b"1", b"2"]), {})
    assert found == Tally(foreign=1, worded=1)
    assert len(faults) == found.faults == 2
    monkeypatch.setattr("mutants.read", spin)
    monkeypatch.setattr("mutants.SECONDS", 0.05)
    assert tally(tmp_path / "a.vox", iter([b"1"]), {})[0] == Tally(slow=1)
    monkeypatch.setattr("mutants.read", lambda path, **options: np.zeros(20_000_000))
    assert tally(tmp_path / "a.vox", iter([b"1"]), {})[0].faults == 1


def test_mutants_are_the_same_each_time():
    content = (CASES / "README.md").read_bytes()
    assert list(mutants(content, 20, seed=1)) == list(mutants(content, 20, seed=1))
    assert len(set(mutants(content, 200, seed=1))) > 190
