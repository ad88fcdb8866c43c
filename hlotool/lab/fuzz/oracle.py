"""Is a program wrong, dead, stuck or flaky on a backend? Runs in worker processes.

One worker judges many programs: whatever a backend does to its process costs one answer.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from hlotool.backends.aot.options import platform_of
from hlotool.backends.base import DumpingBackend
from hlotool.backends.numpy.executions.departures import has_its_own_start
from hlotool.backends.registry import BackendSpec, get_backend, parse_spec
from hlotool.blame.bisection.compiler import passes_that_changed
from hlotool.blame.reduction.case import Case, case_of
from hlotool.blame.reduction.case_worker import (
    CaseOutcome,
    CaseQuestion,
    compare_programs,
    failure_of,
    judge_case,
)
from hlotool.errors import (
    BackendCrashed,
    BackendFailed,
    BackendOutOfMemory,
    BackendTimeout,
    HlotoolError,
    KernelFault,
    Unsupported,
)
from hlotool.facts.dataflow import is_exact
from hlotool.facts.scalar_form import ScalarForm, is_choice, monoid_opcodes, scalar_form
from hlotool.inputs.adversarial.sets import OUT_OF_RANGE
from hlotool.inputs.given import arrays_in, npz_bytes
from hlotool.interface.report.lab_records import Kind
from hlotool.ir.module import Computation, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import array_shapes
from hlotool.judge.failures import Signature
from hlotool.judge.verdicts import Answer
from hlotool.lab.fuzz.extremes import overflow_decides
from hlotool.parser.reader import parse_module
from hlotool.runs.device_arguments import further_sets
from hlotool.runs.leaves import same_bits
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.program import Program, compile_program
from hlotool.runs.trials import trials
from hlotool.sources.directory import open_dump
from hlotool.sources.records import DumpModule
from hlotool.system.records import Record
from hlotool.system.resources import TooSlow, time_limit

#: What a worker calls.
FUNCTION = "hlotool.lab.fuzz.oracle:judge_program"
#: What it calls when one program on given arguments is in question.
MEANT = "hlotool.lab.fuzz.oracle:judge_meant"
#: What it calls when it is in question whether its runs differ.
AGAIN = "hlotool.lab.fuzz.oracle:judge_again"

#: Seconds for a compilation, and for a run, of a small program: real ones take a hundredth.
PATIENCE = 30
#: Seconds for one run of the reference: a small program that takes longer has a loop that runs wild, and then
#: the backend would be blamed for it.
_REFERENCE_SECONDS = 10.0
#: Sets of inputs besides the plain one; the first ones of `directed` are those that show most.
_FURTHER_SETS = 6
#: They draw from a state that each run moves on.
_FLAKY_BY_DESIGN = opcodes_with(Trait.UNDETERMINED) & opcodes_with(Trait.SIDE_EFFECT)

#: What is a failure of the backend.
FAILURES: frozenset[Kind] = frozenset({"wrong", "crashed", "hang", "nondeterministic"})


@dataclass(frozen=True, slots=True)
class Question:
    """Does a program fail, on inputs of its own?

    Attributes:
        text: HLO of the program.
        options: reference, backend and the seed of inputs.
        variant: spec of the backend set up in another way, which is asked as well; empty for none.
        shows_passes: say which passes changed the program.
        cures: specs of the backend without the pass of a frequent fault; where the result is wrong, it is
            asked which of them makes it right.
    """

    text: str
    options: ReplayOptions
    variant: str = ""
    shows_passes: bool = False
    cures: tuple[str, ...] = ()


class Judged(Record, frozen=True, kw_only=True):
    """What became of a program.

    Attributes:
        kind: see `Kind`.
        failure: how it fails, as far as a smaller program can fail alike.
        reason: in one line.
        backend: spec that fails; empty where none does.
        reference: what gave the expected values; the other set-up of the backend where the reference cannot
            run the program.
        set: of inputs that shows the failure.
        inputs: these, as the bytes of an .npz file.
        passes: that changed the program, in order; empty where that was not looked up.
        cured: the first of the question's cures with which the result is right; empty where none is.
    """

    kind: Kind
    failure: Signature | None = None
    reason: str = ""
    backend: str = ""
    reference: str = ""
    set: str = ""
    inputs: bytes = b""
    passes: list[str] = []
    cured: str = ""


def judge_program(question: Question) -> Judged:
    """Run a program on the reference and on the backend, on the plain inputs and a few further sets.

    Where the reference cannot run it, the backend is compared with itself, set up as the question's variant.
    """
    options = question.options
    try:
        module = parse_module(question.text)
        if open_question := _open_question(module, options.backend):
            return Judged(kind="unjudged", reason=open_question)
        reference, case, arguments = _prepared(module, question)
    except TooSlow:
        return Judged(kind="unjudged", reason="the reference takes too long")
    except BackendOutOfMemory as error:
        raise MemoryError(error.message) from error
    except HlotoolError as error:
        return Judged(kind="unjudged", reason=str(error))
    backends = [options.backend, *([question.variant] if question.variant else [])]
    specs = [spec for spec in backends if spec != reference.backend_spec]
    found = Judged(kind="agree", reference=reference.backend_spec)
    for spec in specs:
        of_this = _on(spec, reference.program, case, arguments, options, reference.backend_spec)
        if of_this.kind == "refused" and spec != options.backend:
            continue  # a pass that is switched off there is one that the program needs
        found = of_this
        if found.kind != "agree":
            break
    passes = _passes(module, options.backend) if question.shows_passes and found.kind == "agree" else []
    cures = question.cures if found.kind == "wrong" and found.backend == options.backend else ()
    cured = (
        spec
        for spec in cures
        if _on(spec, reference.program, case, arguments, options, reference.backend_spec).kind == "agree"
    )
    return msgspec.structs.replace(
        found, reference=reference.backend_spec, passes=passes, cured=next(cured, "")
    )


def judge_meant(question: CaseQuestion) -> CaseOutcome:
    """As `judge_case`; a program that says nothing certain, which a smaller one may be, has no answer."""
    try:
        if open_question := _open_question(parse_module(question.text), question.options.backend):
            return CaseOutcome(answer=Answer.UNUSABLE, reason=open_question)
    except HlotoolError as error:
        return CaseOutcome(answer=Answer.UNUSABLE, reason=str(error))
    outcome = judge_case(question)
    if outcome.answer is not Answer.BAD or outcome.row is None:
        return outcome
    if overflow_decides(outcome.row, parse_module(question.text), question.arguments):
        return CaseOutcome(answer=Answer.UNUSABLE, reason="what overflows on the way is open, and decides")
    return outcome


def judge_again(question: CaseQuestion) -> CaseOutcome:
    """As `judge_meant`; a program whose runs differ from each other fails, too."""
    outcome = judge_meant(question)
    if outcome.answer is not Answer.GOOD:
        return outcome
    try:
        module = parse_module(question.text)
        tested = compile_program("tested", "", module, question.options.backend)
        if _is_flaky(tested, question.arguments):
            return CaseOutcome(answer=Answer.BAD, failure=FLAKY, reason=_TWO_RESULTS)
    except BackendFailed as error:
        return failure_of(error)
    return outcome


#: How a program fails whose runs differ.
FLAKY = Signature(kind="nondeterministic")
_TWO_RESULTS = "two runs on the same arguments return different bits"


#: The attribute that holds the function which combines many elements in an order that HLO leaves open.
_OF_ANY_ORDER = {
    "select-and-scatter": "scatter",
    **dict.fromkeys(("reduce", "reduce-window", "all-reduce", "reduce-scatter"), "to_apply"),
}


def _open_question(module: Module, backend: str) -> str:
    """Why the right result is not defined: what HLO leaves unspecified decides; empty where it does not.

    Elements are combined in any order, and with the initial value any number of times: the function has to
    be one that does not care. Of several results at once (argmax) that is taken for granted, but on GPUs,
    whose threads each combine elements that are no neighbours: there it has to compare them. What lies behind
    the end of a result whose size is known at run time is left open, too.
    """
    exchanges = platform_of(backend) == "gpu"
    if any(shape.is_dynamic for shape in array_shapes(module.entry.root.shape)):
        return "the size of a result is known at run time only"
    for instruction in module.instructions():
        if instruction.opcode in ("reduce", "reduce-window") and has_its_own_start(instruction):
            # Compilers combine with it in each of the windows that they cut a reduction into, leave it out
            # where a part has a single element, take padding for it, and libraries do not read it.
            opcode = instruction.opcode
            return f"how often a {opcode} combines with its initial value is open, and that is no identity"
        name = _OF_ANY_ORDER.get(instruction.opcode)
        if name is None:
            continue
        if instruction.opcode == "select-and-scatter" and any(
            dim.pad_low > 0 or dim.pad_high > 0 for dim in instruction.window.dims
        ):
            # XLA's fusion emitters visit what may lie in the padding of some window last.
            return "the order within windows that are padded is open, and decides between equal elements"
        function = instruction.computation(name)
        form = scalar_form(function)
        if form is None or _minds_the_order(form, function, exchanges):
            return f"the order of a {instruction.opcode} is open, and its function depends on it"
    return ""


def _minds_the_order(form: ScalarForm, function: Computation, exchanges: bool) -> bool:
    """Whether results depend on the order of the elements; `exchanges`: these need not stay neighbours."""
    if len(form.outputs) == 1:
        return None in monoid_opcodes(form)
    compares = any(i.opcode == "compare" for i in function.instructions)
    return exchanges and not (compares and is_choice(form))


@dataclass(frozen=True, slots=True)
class _Reference:
    """What gives the expected values, and the spec of the backend that does."""

    program: Program
    backend_spec: str


def _prepared(module: Module, question: Question) -> tuple[_Reference, Case, tuple[Any, ...]]:
    """The reference, the program with its plain arguments, and these as a replay takes them."""
    options = question.options
    with time_limit(_REFERENCE_SECONDS):
        reference = _reference(module, question)
        owner = DumpModule(None, module.name, module.name)
        trial = next(trials(owner, module, options, reference.program.runner.copies))
        reference.program.runner.run(trial.arguments)
        return reference, case_of(reference.program, trial.arguments), trial.arguments


def _reference(module: Module, question: Question) -> _Reference:
    spec = question.options.reference
    try:
        return _Reference(compile_program("reference", "", module, spec), spec)
    except Unsupported:
        if not question.variant:
            raise
        return _Reference(compile_program("reference", "", module, question.variant), question.variant)


def _on(
    spec: str,
    reference: Program,
    case: Case,
    arguments: tuple[Any, ...],
    options: ReplayOptions,
    reference_spec: str,
) -> Judged:
    """What a backend does with the program."""
    own = msgspec.structs.replace(options, backend=spec, reference=reference_spec)
    plain = npz_bytes(case.arguments, case.copies) if case.arguments else b""
    try:
        tested = compile_program("tested", "", case.module, patient(spec))
    except HlotoolError as error:
        return _ended(error, spec, "", plain)
    for name, values in _sets(case, arguments, options, is_exact(reference.facts)):
        shown = npz_bytes(values, case.copies) if values else b""
        try:
            row = compare_programs(reference, tested, values, own)
            if row.verdict.answer is Answer.BAD and not overflow_decides(row, case.module, values):
                failure = row.signature.smaller()
                return Judged(
                    kind="wrong", failure=failure, reason=row.reason, backend=spec, set=name, inputs=shown
                )
            if name == "plain" and _is_flaky(tested, values):
                return Judged(
                    kind="nondeterministic",
                    failure=FLAKY,
                    reason=_TWO_RESULTS,
                    backend=spec,
                    set=name,
                    inputs=shown,
                )
        except HlotoolError as error:
            return _ended(error, spec, name, shown)
    return Judged(kind="agree")


def _sets(
    case: Case, arguments: tuple[Any, ...], options: ReplayOptions, exact: bool
) -> Iterator[tuple[str, Any]]:
    """Names and values of the inputs.

    Those on which rounding is at its worst, or that are not finite, only where nothing is rounded: what
    becomes of infinity times the zeros of a dilation is each implementation's own matter.
    """
    yield "plain", arguments
    if not case.arguments:
        return
    sets = further_sets(case.module, case.arguments, options.seed, None, case.copies)
    fitting = (
        one
        for one in sets
        if set(one.odd) <= {OUT_OF_RANGE} and (exact or (one.suits_other_backends and _is_finite(one.values)))
    )
    for one in islice(fitting, _FURTHER_SETS):
        yield one.name, one.values


def _is_finite(values: Any) -> bool:
    """Whether no float among the values is infinite or NaN."""
    return all(bool(np.isfinite(array.astype(np.complex128)).all()) for array in arrays_in(values))


def patient(spec: str) -> str:
    """A backend that is waited for as long as a small program can take, unless the spec says how long."""
    parsed = parse_spec(spec)
    if parsed.name != "xla" or "timeout" in parsed.options:
        return spec
    return str(BackendSpec(parsed.name, {**parsed.options, "timeout": str(PATIENCE)}))


def _ended(error: HlotoolError, spec: str, name: str, inputs: bytes) -> Judged:
    """What the end of a backend means."""
    if isinstance(error, BackendOutOfMemory):
        raise MemoryError(error.message) from error
    if isinstance(error, BackendFailed):
        kind: Kind = "hang" if isinstance(error, BackendTimeout) else "crashed"
        if not isinstance(error, BackendTimeout | BackendCrashed | KernelFault):
            return Judged(kind="unjudged", reason=str(error), backend=spec)
        failure = failure_of(error).failure
        return Judged(kind=kind, failure=failure, reason=error.message, backend=spec, set=name, inputs=inputs)
    return Judged(kind="refused", reason=str(error), backend=spec)


def _is_flaky(tested: Program, arguments: tuple[Any, ...]) -> bool:
    """Whether two runs on the same arguments differ, of a program whose runs must not."""
    if any(i.opcode in _FLAKY_BY_DESIGN for i in tested.module.instructions()):
        return False
    one, other = (tested.runner.run(arguments).value for _ in range(2))
    return not same_bits(tested.runner.result, one, other)


def _passes(module: Module, spec: str) -> list[str]:
    """The passes of a compiler that change a program; none where it does not show them."""
    backend = get_backend(spec)
    if not isinstance(backend, DumpingBackend):
        return []
    with tempfile.TemporaryDirectory(prefix="hlotool-fuzz-") as name:
        try:
            compile_program("", "", module, backend.dumping(Path(name)))
            dump = open_dump(name)
        except HlotoolError:
            return []  # it was judged without a dump: to look at the passes is no question of its own
        return list(dict.fromkeys(one for owner in dump.modules for one in passes_that_changed(owner)))
