"""Runs that differ: `--repeat N`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import hlotool
from hlotool.errors import BackendCrashed, ExitCode, HlotoolError
from hlotool.interface.cli.main import main
from hlotool.ir.types import ArrayShape, ElementType, TupleShape
from hlotool.judge.verdicts import Verdict
from hlotool.runs.records import ModuleRecord
from hlotool.runs.repeated import with_repeats
from hlotool.runs.runners import Outcome

PAIR = TupleShape((ArrayShape(ElementType.F32, (2,)), ArrayShape(ElementType.F32, ())))
LEGAL = 1.5


def outcome(first: float, second: float = 0.0) -> Outcome:
    return Outcome((np.float32([first, 1]), np.float32(second)))


def judged(found: Outcome) -> ModuleRecord:
    """Whatever is no more than `LEGAL` is."""
    value = float(found.value[0][0])
    verdict = Verdict.IDENTICAL if value == 1 else Verdict.ROUNDING if value <= LEGAL else Verdict.WRONG
    return ModuleRecord(path="f", name="f", verdict=verdict, reason=f"it is {value}")


def row_of(*values: float, others: tuple[float, ...] = ()) -> ModuleRecord:
    outcomes = [outcome(v, o) for v, o in itertools.zip_longest(values, others, fillvalue=0.0)]
    rest: Iterator[Outcome] = iter(outcomes[1:])
    return with_repeats(judged(outcomes[0]), PAIR, outcomes[0], lambda: next(rest), judged, len(outcomes))


def test_the_same_bits_in_all_runs() -> None:
    row = row_of(1, 1, 1)
    assert row.verdict is Verdict.IDENTICAL
    assert row.repeated is not None
    assert (row.repeated.runs, row.repeated.results, row.repeated.wrong, row.repeated.outputs) == (
        3,
        1,
        0,
        [],
    )


def test_legal_results_that_differ_keep_the_verdict_of_the_first_run() -> None:
    row = row_of(1, 1.25, 1, 1.5, others=(0, 0, 0, 0))
    assert row.verdict is Verdict.IDENTICAL
    assert row.repeated is not None
    assert (row.repeated.results, row.repeated.wrong, row.repeated.outputs) == (3, 0, ["out[0]"])


def test_what_is_wrong_in_some_runs_is_wrong() -> None:
    row = row_of(1, 2, 1, 3, 2, others=(0, 1, 0, 0, 1))
    assert row.verdict is Verdict.WRONG
    assert row.repeated is not None
    assert (row.repeated.results, row.repeated.judged, row.repeated.wrong) == (3, 5, 3)
    assert row.repeated.outputs == ["out[0]", "out[1]"]
    assert row.reason.startswith("in 3 of 5 runs: it is ")


def test_of_very_many_results_the_most_frequent_ones_are_judged() -> None:
    row = row_of(*[1.0] * 3, *(1 + n / 100 for n in range(1, 40)), 9.0, 9.0)
    assert row.repeated is not None
    assert row.verdict is Verdict.WRONG
    assert (row.repeated.runs, row.repeated.results, row.repeated.judged) == (44, 41, 3 + 2 + 14)
    assert row.repeated.wrong == 2


def test_a_run_that_dies_ends_it() -> None:
    def dies() -> Outcome:
        raise BackendCrashed("stub", "it died")

    with pytest.raises(HlotoolError, match="it died"):
        with_repeats(judged(outcome(1)), PAIR, outcome(1), dies, judged, 3)


def test_the_command_says_what_came_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "f.hlo"
    path.write_text("HloModule f\nENTRY e { p = f32[4] parameter(0) ROOT r = f32[4] exponential(p) }\n")
    arguments = ["run", str(path), "--reference", "numpy", "--test", "numpy:perturbed=7", "--repeat", "5"]
    assert main([*arguments, "--verbose"]) == ExitCode.AGREE
    shown = capsys.readouterr().out
    assert "5 runs, the same bits in all" in shown
    assert "5 runs of each program: the same bits in all of them" in shown
    found = hlotool.replay(path, backend="numpy:perturbed=7", repeat=5).record
    assert found.options.repeat == 5
