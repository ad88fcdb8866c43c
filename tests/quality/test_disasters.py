"""Nothing finished is lost, nothing repeated, nothing corrupt: a sample of `benchmarks.disasters`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.disasters.kills import Kills, killed
from benchmarks.disasters.places import DISASTERS, happened
from benchmarks.disasters.subjects import SUBJECTS

if sys.platform != "linux":
    pytest.skip("processes are looked for in /proc", allow_module_level=True)


def check(found: Kills) -> None:
    assert found.faults == []
    assert found.orphans == 0
    assert not found.left


def test_a_reduction_that_is_killed_while_it_works_goes_on(tmp_path: Path) -> None:
    found = killed(SUBJECTS["reduce"], tmp_path, range(2, 4), seed=4711)
    check(found)
    assert found.trials == 2
    assert found.kept > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBJECTS)
def test_a_command_that_is_killed_goes_on(name: str, tmp_path: Path) -> None:
    check(killed(SUBJECTS[name], tmp_path, range(8), seed=4711))


@pytest.mark.slow
@pytest.mark.parametrize("name", DISASTERS)
def test_a_disaster_costs_what_it_must(name: str, tmp_path: Path) -> None:
    found = happened(name, tmp_path, seed=4711)
    if found.impossible:
        pytest.skip(found.impossible)
    assert found.faults == []
