"""Small damage campaigns: files are refused, read without harm, or differ where the format cannot show it."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import damaged_files as campaigns

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
