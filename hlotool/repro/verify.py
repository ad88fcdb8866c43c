"""Does a bundle still fail, and in the same way?"""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

from hlotool.errors import BackendTimeout, ExitCode, HlotoolError, UsageError
from hlotool.parse.reader import parse_module
from hlotool.replay.compare import Actual, compare_row, parameter_difference
from hlotool.replay.program import Program, compile_program
from hlotool.replay.records import AGREEING, DIFFERING, REALITY, InputsRecord, ModuleRecord, Record
from hlotool.replay.spread import Outcome
from hlotool.replay.task import Task
from hlotool.replay.trials import Trial
from hlotool.repro.bundle import AFTER, INPUTS, OUTPUTS, PROGRAM, Bundle, read_bundle
from hlotool.search.bisection.answers import signature


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
        BackendTimeout: its command does not end.
    """
    bundle = read_bundle(folder)
    if bundle.kind == "check":
        return _verify_command(bundle, folder, timeout)
    try:
        row = _compare(replace(bundle, backend=backend or bundle.backend), folder)
    except HlotoolError as error:
        return _verification(bundle, folder, None, "", str(error))
    fails = True if row.verdict in DIFFERING else False if row.verdict in AGREEING else None
    return _verification(bundle, folder, fails, signature(row) if fails else "", row.reason, row)


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
    """The comparison that the bundle is about."""
    from hlotool.values.captured import load_inputs, load_outputs

    module = parse_module(bundle.program, str(folder / PROGRAM))
    reference = compile_program(PROGRAM, str(folder / PROGRAM), module, bundle.reference)
    has_parameters = bool(module.entry.parameters)
    arguments: tuple[Any, ...] = load_inputs(str(folder / INPUTS), module) if has_parameters else ()
    trial = Trial(arguments, InputsRecord(origin="given", description=f"from {INPUTS}"))
    expected = reference.runner.run(arguments).value
    if bundle.kind == "result":
        given = load_outputs(str(folder / OUTPUTS), module)
        return compare_row(_task(), reference, trial, expected, _actual(reference, Outcome(given), REALITY))
    other = _other_program(bundle, folder, reference)
    if difference := parameter_difference(reference.runner, other.runner):
        raise UsageError(f"{folder}: {difference}")
    outcome = other.runner.run(arguments, expected)
    return compare_row(_task(), reference, trial, expected, _actual(other, outcome, other.label))


def _other_program(bundle: Bundle, folder: Path, reference: Program) -> Program:
    if bundle.kind == "stages":
        module = parse_module(bundle.after, str(folder / AFTER))
        return compile_program(AFTER, str(folder / AFTER), module, bundle.reference)
    return compile_program(bundle.backend, reference.path, reference.module, bundle.backend)


def _actual(program: Program, outcome: Outcome, label: str) -> Actual:
    return Actual(
        label,
        program.path,
        program.backend,
        program.module,
        program.facts,
        outcome,
        program.runner,
    )


def _task() -> Task:
    """The task that comparisons are part of."""
    from hlotool.dump.records import DumpModule
    from hlotool.replay.options import ReplayOptions

    return Task(DumpModule(None, "repro", PROGRAM), ReplayOptions())


def _verify_command(bundle: Bundle, folder: Path, timeout: float) -> Verification:
    """Ask the command of a bundle of kind `check`; its exit status means what it means to git bisect run."""
    command = [*shlex.split(bundle.command), str(folder / PROGRAM)]
    try:
        status = subprocess.run(command, capture_output=True, timeout=timeout).returncode
    except subprocess.TimeoutExpired as error:
        raise BackendTimeout("check", f"{bundle.command}: no answer in {timeout:g} s") from error
    except OSError as error:
        raise UsageError(f"{bundle.command}: {error}") from error
    fails = None if status == 125 else status != 0
    found = f"exit status {status}" if fails else ""
    return _verification(bundle, folder, fails, found, f"{bundle.command} ended with exit status {status}")
