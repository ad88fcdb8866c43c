"""Does a bundle still fail, and in the same way? And what of it would run on this machine.

Programs are data: backends execute them in processes of hlotool's own. A command is not, nor is a backend
that names an interpreter or a compiler, or flags of XLA that name files to read and to write: these need
the user's trust.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hlotool.backends.registry import BUILT_IN, PLACES, backend_options, parse_spec
from hlotool.blame.bisection.records import Verification
from hlotool.blame.reduction.case import Case
from hlotool.blame.reduction.case_worker import CaseQuestion, compare_programs, compare_result, judge_case
from hlotool.blame.reduction.oracle import CommandJudge
from hlotool.blame.repro.bundle import AFTER, INPUTS, OUTPUTS, PROGRAM, Bundle, read_bundle
from hlotool.errors import HlotoolError, UsageError
from hlotool.ir.module import Module
from hlotool.ir.partitioning import own_arguments
from hlotool.judge.verdicts import Answer
from hlotool.parser.reader import parse_module
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.program import compile_program
from hlotool.runs.records import ModuleRecord
from hlotool.runs.trials import load_arguments, load_result

#: Whether a bundle still fails; None where nothing can be said.
_FAILS = {Answer.BAD: True, Answer.GOOD: False, Answer.UNUSABLE: None}


def verify(
    folder: Path, backend: str | None = None, timeout: float = 300.0, trust: bool = False
) -> Verification:
    """Run a bundle again.

    Args:
        folder: of the bundle.
        backend: instead of the one in question when the bundle was made.
        timeout: seconds, for the command of a bundle of kind `check`.
        trust: whether what it names besides programs may be run: see `trust`.

    Raises:
        DumpError: there is no bundle.
        UsageError: its command cannot be run.
    """
    bundle = read_bundle(folder)
    found = _Found(reason="" if trust else objection(bundle, backend))
    if not found.reason:
        try:
            found = _run(replace(bundle, backend=backend or bundle.backend), folder, timeout)
        except UsageError:
            raise
        except HlotoolError as error:
            found = _Found(reason=str(error))
    fails = _FAILS[found.answer]
    return Verification(
        folder=str(folder),
        title=bundle.title,
        fails=fails,
        same=fails is True and _is_same(bundle, found),
        expected=bundle.signature,
        found=_signature(bundle, found) if fails else "",
        reason=found.reason,
        compared=found.compared,
        comparison=found.row,
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """What running a bundle came to.

    Attributes:
        answer: whether it fails.
        failure: how, as far as a smaller program can fail alike.
        row: the comparison; None where nothing was compared.
        reason: in one line.
        compared: what was run.
    """

    answer: Answer = Answer.UNUSABLE
    failure: str = ""
    row: ModuleRecord | None = None
    reason: str = ""
    compared: str = ""


def _signature(bundle: Bundle, found: _Found) -> str:
    """How it fails now, in the terms in which the bundle says how it failed."""
    return found.failure if bundle.wrong is None or found.row is None else str(found.row.signature)


def _is_same(bundle: Bundle, found: _Found) -> bool:
    """Whether it fails in the same way: the signature is that of the bundle, and so are the wrong outputs."""
    if _signature(bundle, found) != bundle.signature:
        return False
    return bundle.wrong is None or (found.row is not None and found.row.signature.outputs == bundle.wrong)


def _run(bundle: Bundle, folder: Path, timeout: float) -> _Found:
    if bundle.kind in ("backend", "check"):
        return _of_case(bundle, folder, timeout)
    row, compared = _compare(bundle, folder)
    row = row.as_functions() if bundle.exact else row
    answer = row.verdict.answer
    return _Found(answer, str(row.signature.smaller()), row, row.reason, compared)


def _compare(bundle: Bundle, folder: Path) -> tuple[ModuleRecord, str]:
    """The comparison of two programs, or of a program and what it really returned; what is compared."""
    module = _program(bundle, bundle.program, folder / PROGRAM)
    reference = compile_program(PROGRAM, str(folder / PROGRAM), module, bundle.reference)
    copies = reference.runner.copies
    arguments = _arguments(module, folder, copies)
    options = _options(bundle)
    if bundle.kind == "result":
        given = load_result(str(folder / OUTPUTS), module, copies)
        row = compare_result(reference, arguments, given, f"from {OUTPUTS}", options)
        return row, f"{OUTPUTS}, as recorded, and {PROGRAM} on {bundle.reference}; no compiler was asked"
    after = _program(bundle, bundle.after, folder / AFTER)
    tested = compile_program(AFTER, str(folder / AFTER), after, bundle.reference, reference)
    row = compare_programs(reference, tested, arguments, options)
    return row, f"{PROGRAM} and {AFTER}, as recorded, on {bundle.reference}; the pass itself was not run"


def _program(bundle: Bundle, text: str, path: Path) -> Module:
    """A program of the bundle; raises InputError."""
    module = parse_module(text, str(path))
    module.has_stand_ins = bundle.opaque
    return module


def _options(bundle: Bundle) -> ReplayOptions:
    """What decided about the verdict when the bundle was made."""
    return ReplayOptions(
        reference=bundle.reference,
        backend=bundle.backend,
        rtol=bundle.tolerance.get("rtol"),
        atol=bundle.tolerance.get("atol"),
        exact=bundle.exact,
        opaque=bundle.opaque,
    )


def _arguments(module: Module, folder: Path, copies: int) -> tuple[Any, ...]:
    if not module.entry.parameters:
        return ((),) * copies if copies > 1 else ()
    return load_arguments(str(folder / INPUTS), module, copies)


def _of_case(bundle: Bundle, folder: Path, timeout: float) -> _Found:
    """What the backend, or the command, does with the program now."""
    module = _program(bundle, bundle.program, folder / PROGRAM)
    arguments = _arguments(module, folder, own_arguments(module))
    if bundle.kind == "check":
        case = Case(module, arguments, exact=bundle.program)
        [(_, outcome)] = CommandJudge(bundle.command, timeout).run([case])
        compared = f"{PROGRAM} by {bundle.command}"
    else:
        outcome = judge_case(CaseQuestion(bundle.program, arguments, _options(bundle)))
        compared = f"{PROGRAM} on {bundle.backend} and on {bundle.reference}"
        if bundle.exact:
            compared = f"{PROGRAM} and what {bundle.backend} makes of it, in exact arithmetic"
    failure = str(outcome.failure) if outcome.failure else ""
    return _Found(outcome.answer, failure, outcome.row, outcome.reason, compared)


# What a bundle from somebody else would run on this machine besides the programs in it.
#
# Programs are data: backends execute them in processes of hlotool's own. A command is not, nor is a backend
# that names an interpreter or a compiler, or flags of XLA that name files to read and to write.


def objection(bundle: Bundle, backend: str | None) -> str:
    """Why a bundle is not run unless it is trusted; empty where nothing speaks against it.

    Args:
        bundle: in question.
        backend: what the user names instead of the backend in the bundle.
    """
    if bundle.kind == "check":
        return f"it would run the command {bundle.command!r} here: --trust allows that"
    for spec in (bundle.reference, backend or bundle.backend):
        if spec != backend and (option := _unsafe_option(spec)):
            return f"its backend {spec!r} sets {option!r}: --trust allows that, --backend takes another one"
    return ""


def _unsafe_option(text: str) -> str:
    """The first option of a backend that is more than a choice between ways to compute."""
    try:
        spec = parse_spec(text)
        known = {form.partition("=")[0] for form in backend_options(text)} - PLACES
    except UsageError:
        # That there is no such backend is said when it is asked for.
        return ""
    is_ours = spec.name in BUILT_IN
    return next((key for key in spec.options if not is_ours or key not in known), "")
