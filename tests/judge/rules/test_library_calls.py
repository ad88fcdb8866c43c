"""Products that a library computes: its rounding accuses nothing, and what it computes wrongly is found."""

from __future__ import annotations

import pytest
from support.library_programs import LIBRARY_CASES, arguments_of

from hlotool.backends.numpy import NumpyBackend
from hlotool.judge.rules.judge import judge
from hlotool.judge.rules.judgement import judgement_of
from hlotool.judge.verdicts import Verdict
from hlotool.parser.reader import parse_module

HEALTHY = {Verdict.IDENTICAL, Verdict.AGREE, Verdict.ROUNDING}
FAULTS = [(name, fault) for name, case in LIBRARY_CASES.items() for fault in case.faults]


def _verdict(before: str, after: str, seed: int = 0) -> Verdict:
    reference, tested = parse_module(before), parse_module(after)
    arguments = arguments_of(reference, seed)
    actual = NumpyBackend().compile(tested).run(arguments)
    return judge(judgement_of(reference, arguments, actual, tested=tested)).verdict


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("name", LIBRARY_CASES)
def test_a_library_that_rounds_once_is_not_wrong(name: str, seed: int) -> None:
    case = LIBRARY_CASES[name]
    assert _verdict(case.before, case.after, seed) in HEALTHY


@pytest.mark.parametrize(("name", "fault"), FAULTS)
def test_faults_of_a_library_call_are_found(name: str, fault: str) -> None:
    case = LIBRARY_CASES[name]
    assert _verdict(case.before, case.faulty(fault)) is Verdict.WRONG


@pytest.mark.parametrize(("name", "fault"), FAULTS)
def test_faults_between_two_stages_with_library_calls_are_found(name: str, fault: str) -> None:
    case = LIBRARY_CASES[name]
    assert _verdict(case.after, case.faulty(fault)) is Verdict.WRONG
