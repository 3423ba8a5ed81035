"""A share of the campaign of benchmarks/killed_casts.py, and what it counts as a failure."""

import os
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import damaged_parts  # in benchmarks/
import killed_cases
from streaming import run

pytestmark = pytest.mark.skipif(os.name != "posix", reason="forks, and kills by signals")


def failures(found):
    """Return what failed, and what was not offered; assert that some casts were killed."""
    found = list(found)
    assert sum(outcome.kills for _, outcome in found) > len(found) // 3
    return [(str(case), one.failure) for case, one in found if one.failure or not one.offered]


def some_cases(number):
    """Return cases of every query and output, spread over all."""
    every = list(killed_cases.cases())
    return every[:: len(every) // number + 1]


def campaign(expression, folder):
    """Return the failures that a process of its own prints: it forks, and has no threads of other tests."""
    code = f"""
        import sys
        from pathlib import Path
        import damaged_parts, killed_cases, killed_casts, killed_outcomes
        from test_killed_casts import failures, links, some_cases
        files = killed_cases.write_inputs(Path(sys.argv[1]))
        print(failures({expression}))
    """
    return run(code, folder).strip()


@pytest.mark.long
def test_killed_casts_continue_to_the_same_bytes(tmp_path):
    casts = "killed_casts.campaign(24, files, killed_outcomes.forked, some_cases(24), 3)"
    assert campaign(casts, tmp_path) == "[]"


@pytest.mark.long
def test_killed_casts_whose_rays_change_between_calls(tmp_path):
    how = "files, killed_outcomes.forked, some_cases(16), 3, changing=True"
    assert (
        campaign(f"(killed_cases.write_others(files), killed_casts.campaign(16, {how}))[1]", tmp_path) == "[]"
    )


@pytest.mark.long
def test_damaged_parts_are_cast_again_or_refused(tmp_path):
    assert campaign("damaged_parts.damaged(30, files, some_cases(30), 4)", tmp_path) == "[]"


@pytest.mark.long
def test_nothing_outside_is_touched(tmp_path):
    assert campaign("links(files)", tmp_path) == "[]"


def links(files):
    """Return the outcomes of one cast with links at the names in its folder."""
    case = next(one for one in killed_cases.cases() if one.out == "parquet" and not one.dataset)
    found = [one for one in damaged_parts.planted(files, [case], 5) if one[1].offered]
    assert len(found) > 18
    return found


def test_the_cases_have_every_query_format_and_option():
    every = list(killed_cases.cases())
    assert {case.query for case in every} == set(killed_cases.QUERIES)
    assert {(case.out, case.dataset) for case in every} > {(out, False) for out in killed_cases.FILES}
    assert {case.scene for case in every} == {*killed_cases.ANY_SCENE}
    assert {name for case in every for name in case.options} == {
        "values",
        "weights",
        "where",
        "labels",
        "carry",
    }
