"""Does a bundle still fail, and in the same way?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from hlotool.errors import ExitCode, HlotoolError
from hlotool.findings.records import Record
from hlotool.findings.verdict import Answer
from hlotool.ir.module import Module
from hlotool.parse.reader import parse_module
from hlotool.replay.options import ReplayOptions
from hlotool.replay.program import compile_program
from hlotool.replay.records import ModuleRecord
from hlotool.repro.bundle import AFTER, INPUTS, OUTPUTS, PROGRAM, Bundle, read_bundle
from hlotool.search.comparing import compare_programs, compare_result
from hlotool.search.reduction.case import Case
from hlotool.search.reduction.case_worker import CaseQuestion, judge_case
from hlotool.search.reduction.oracle import CommandJudge
from hlotool.values.captured import load_inputs, load_outputs

#: Whether a bundle still fails; None where nothing can be said.
_FAILS = {Answer.BAD: True, Answer.GOOD: False, Answer.UNUSABLE: None}


class Verification(Record, frozen=True, kw_only=True):
    """What running a bundle again came to.

    Attributes:
        folder: of the bundle.
        title: of the bundle.
        fails: the failure is there; None when nothing could be compared.
        same: it fails in the same way.
        expected: how it failed when the bundle was made.
        found: how it fails now; empty when it does not.
        reason: in one line.
        comparison: the numbers.
    """

    folder: str
    title: str
    fails: bool | None
    same: bool
    expected: str
    found: str
    reason: str
    comparison: ModuleRecord | None = None

    @property
    def exit_code(self) -> ExitCode:
        """1 when it still fails in the same way, 0 when it does not fail, 5 when it fails otherwise."""
        if self.fails is None:
            return ExitCode.NOTHING_COMPARED
        if not self.fails:
            return ExitCode.AGREE
        return ExitCode.MISMATCH if self.same else ExitCode.INCONCLUSIVE


def verify(folder: Path, backend: str | None = None, timeout: float = 300.0) -> Verification:
    """Run a bundle again.

    Args:
        folder: of the bundle.
        backend: instead of the one in question when the bundle was made.
        timeout: seconds, for the command of a bundle of kind `check`.

    Raises:
        DumpError: there is no bundle.
        UsageError: its command cannot be run.
    """
    bundle = read_bundle(folder)
    if bundle.kind in ("backend", "check"):
        return _verify_case(replace(bundle, backend=backend or bundle.backend), folder, timeout)
    try:
        row = _compare(bundle, folder)
    except HlotoolError as error:
        return _verification(bundle, folder, None, "", str(error))
    fails = _FAILS[row.verdict.answer]
    return _verification(bundle, folder, fails, str(row.signature) if fails else "", row.reason, row)


def _verification(
    bundle: Bundle,
    folder: Path,
    fails: bool | None,
    found: str,
    reason: str,
    row: ModuleRecord | None = None,
) -> Verification:
    return Verification(
        folder=str(folder),
        title=bundle.title,
        fails=fails,
        same=fails is True and found == bundle.signature,
        expected=bundle.signature,
        found=found,
        reason=reason,
        comparison=row,
    )


def _compare(bundle: Bundle, folder: Path) -> ModuleRecord:
    """The comparison of two programs, or of a program and what it really returned."""
    module = parse_module(bundle.program, str(folder / PROGRAM))
    reference = compile_program(PROGRAM, str(folder / PROGRAM), module, bundle.reference)
    arguments = _arguments(module, folder)
    if bundle.kind == "result":
        given = load_outputs(str(folder / OUTPUTS), module)
        return compare_result(reference, arguments, given, f"from {OUTPUTS}")
    after = parse_module(bundle.after, str(folder / AFTER))
    tested = compile_program(AFTER, str(folder / AFTER), after, bundle.reference)
    return compare_programs(reference, tested, arguments)


def _arguments(module: Module, folder: Path) -> tuple[Any, ...]:
    return load_inputs(str(folder / INPUTS), module) if module.entry.parameters else ()


def _verify_case(bundle: Bundle, folder: Path, timeout: float) -> Verification:
    """What the backend, or the command, does with the program now."""
    module = parse_module(bundle.program, str(folder / PROGRAM))
    arguments = _arguments(module, folder)
    if bundle.kind == "check":
        case = Case(module, arguments, exact=bundle.program)
        [(_, outcome)] = CommandJudge(bundle.command, timeout).run([case])
    else:
        options = ReplayOptions(reference=bundle.reference, backend=bundle.backend)
        outcome = judge_case(CaseQuestion(bundle.program, arguments, options))
    found = str(outcome.failure) if outcome.failure else ""
    return _verification(bundle, folder, _FAILS[outcome.answer], found, outcome.reason, outcome.row)
