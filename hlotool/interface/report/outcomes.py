"""What a command found, thing by thing, as other tools know it: a test case, an annotation, a table's line.

`outcomes_of` makes this of the record of any command with findings; JUnit, SARIF, annotations, CSV and
baselines are renderings of it.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from hlotool.blame.diff_records import LayerRecord, ProgramDiffRecord
from hlotool.checks.records import Severity
from hlotool.interface.report.causes import blamed, located_source
from hlotool.interface.report.command_records import BisectRecord, DiffRecord, ExecRecord, ProveRecord
from hlotool.interface.report.finding import what_became
from hlotool.interface.report.lab_records import ConformanceRecord
from hlotool.interface.report.outcome_rules import (
    ALONE,
    NOT_EXECUTED,
    NOT_FINITE,
    PROGRAM_DIFFERS,
    UNCHECKED,
    UNDOCUMENTED,
    UNREAD,
    finding_identity,
    leaf_identity,
    program_name,
    row_identity,
)
from hlotool.interface.report.records import CauseRecord, CheckRecord, RunRecord
from hlotool.interface.report.words import compared_stages, distance
from hlotool.judge.records import output_name
from hlotool.judge.verdicts import AGREEING, DIFFERING, FAILED, Verdict
from hlotool.runs.exact.records import ProvedRecord
from hlotool.runs.records import ModuleRecord
from hlotool.system.records import SourceRecord


class State(enum.Enum):
    """What became of one thing, in the terms of a test suite."""

    #: It agrees, or there is nothing to be said against it.
    PASSED = "passed"
    #: A finding.
    FAILED = "failed"
    #: It could not be looked at: broken input, a dead process.
    ERROR = "error"
    #: Nothing is claimed: it cannot be compared, no compiler is to blame, or only the user can say whether it
    #: counts (other functions of real numbers without `--exact`).
    SKIPPED = "skipped"


class Outcome(Struct, frozen=True):
    """One thing that a command looked at.

    Attributes:
        command: `run`, `bisect`, `check`, `prove`, `diff` or `conformance`.
        name: of the module, or of what is compared.
        rule: the kind of the outcome: a verdict, a rule of `check`, the level of a culprit.
        state: what that means.
        message: in one line.
        details: further lines.
        file: of HLO, empty where there is none.
        line: in it, 0 when the outcome is about the whole.
        source: the instruction, and the line of the user's program.
        severity: how grave.
        identity: what is equal for the same finding in another run, wherever its files are.
        cause: id of the cause, empty where there is none.
        seconds: wall time.
        tested: stage and backend that were judged.
        difference: how far it is off, in a few words.
        is_known: a baseline has it.
        is_twin: its programs are those of an earlier one under other names.
    """

    command: str
    name: str
    rule: str
    state: State
    message: str = ""
    details: tuple[str, ...] = ()
    file: str = ""
    line: int = 0
    source: SourceRecord | None = None
    severity: Severity = Severity.ERROR
    identity: tuple[str, ...] = ()
    cause: str = ""
    seconds: float = 0.0
    tested: str = ""
    difference: str = ""
    is_known: bool = False
    is_twin: bool = False

    @property
    def folder(self) -> str:
        """Where the file is; empty for the current folder."""
        return os.path.dirname(self.file)

    @property
    def is_passed(self) -> bool:
        """Whether there is nothing to be said about it."""
        return self.state is State.PASSED


def outcomes_of(record: Any) -> list[Outcome]:
    """The outcomes of the record of a command with findings, in its order.

    Raises:
        ValueError: it is of another command.
    """
    if record.schema.startswith("hlotool.triage/"):  # whose class `run` need not import
        record = record.run
    for kind, outcomes in _KINDS.items():
        if isinstance(record, kind):
            baseline = getattr(record, "baseline", None)
            known = set(baseline.known) if baseline is not None else ()
            return [replace(o, is_known=n in known) for n, o in enumerate(outcomes(record))]
    raise ValueError(f"{record.schema} holds no findings")


def has_outcomes(record: Any) -> bool:
    """Whether the record is of a command with findings."""
    return isinstance(record, tuple(_KINDS))


def _of_run(record: RunRecord) -> Iterator[Outcome]:
    causes = _by_row(record.causes)
    for number, row in enumerate(record.modules):
        kinds = record.options.fail_on
        state = State.FAILED if row.fails_on(kinds) else _STATES[row.verdict]
        yield Outcome(
            command="run",
            name=row.name,
            rule=NOT_FINITE if row.verdict in AGREEING and row.is_not_finite(kinds) else row.verdict.value,
            state=state,
            message=_row_message(row),
            details=tuple(_row_details(row)),
            file=row.path,
            line=_hlo_line(row),
            source=located_source(row),
            severity=_SEVERITIES[state],
            identity=row_identity(row, causes.get(number)),
            cause=causes[number].id if number in causes else "",
            seconds=row.seconds,
            tested=compared_stages(row),
            difference=distance(row),
            is_twin=bool(row.twin_of),
        )


def _of_exec(record: ExecRecord) -> Iterator[Outcome]:
    yield from _of_run(record.run)
    if record.bisect is not None:
        yield from _of_bisection(record.bisect)


def _of_bisection(record: BisectRecord) -> Iterator[Outcome]:
    causes = _by_row(record.causes)
    accused: set[str] = set()
    for number, culprit in enumerate(record.culprits):
        accused.update((culprit.module, *culprit.others))
        comparison = culprit.comparison
        also = [f"also: {other}" for other in culprit.others]
        yield Outcome(
            command="bisect",
            name=culprit.module,
            rule=culprit.level,
            state=State.FAILED if culprit.confirmed else State.SKIPPED,
            message=f"{blamed(culprit)}: {', '.join(culprit.opcodes) or culprit.signature}",
            details=(*culprit.evidence, *also, *([f"repro: {culprit.repro}"] if culprit.repro else [])),
            file=comparison.path if comparison is not None else "",
            line=culprit.source.line if culprit.source is not None else 0,
            source=culprit.source,
            severity=Severity.ERROR if culprit.confirmed else Severity.WARNING,
            identity=(program_name(culprit.module), culprit.level, culprit.pass_name, causes[number].id),
            cause=causes[number].id,
            tested=culprit.stage,
            difference=culprit.signature,
        )
    for module in record.modules:
        if module.name in accused:
            continue
        verdict = Verdict(module.verdict)
        state = State.SKIPPED if verdict in DIFFERING else _STATES[verdict]
        yield Outcome(
            command="bisect",
            name=module.name,
            rule=module.verdict,
            state=state,
            message=module.reason or module.verdict,
            details=(*module.history, *module.unusable),
            file=module.path,
            severity=_SEVERITIES[state],
            identity=(program_name(module.name), module.verdict),
        )
    for name in record.healthy:
        yield Outcome(command="bisect", name=name, rule="healthy", state=State.PASSED, message="healthy")


def _of_check(record: CheckRecord) -> Iterator[Outcome]:
    causes = _by_row(record.causes)
    for number, finding in enumerate(record.findings):
        yield Outcome(
            command="check",
            name=finding.module or finding.file,
            rule=finding.rule,
            state=State.FAILED,
            message=finding.message,
            details=(*finding.details, *([finding.remedy] if finding.remedy else [])),
            file=finding.file,
            line=finding.line,
            source=finding.source,
            severity=finding.severity,
            identity=finding_identity(finding, causes.get(number)),
            cause=causes[number].id if number in causes else "",
        )
    for failure in record.failures:
        yield Outcome(
            command="check",
            name=failure.module or failure.file,
            rule=UNCHECKED,
            state=State.ERROR,
            message=failure.error.message,
            details=tuple(failure.error.log.splitlines()),
            file=failure.file,
            line=failure.error.line,
            identity=(program_name(failure.module), failure.error.kind),
        )


def _of_proofs(record: ProveRecord) -> Iterator[Outcome]:
    for pair in record.pairs:
        state = _RELATIONS[pair.relation] if pair.error is None else State.ERROR
        unequal = [leaf for leaf in pair.leaves if leaf.relation == "unequal"]
        found = pair.divergence
        outputs = [output_name(leaf.index) for leaf in unequal]
        yield Outcome(
            command="prove",
            name=pair.name,
            rule=pair.relation,
            state=state,
            message=_proof_message(pair, outputs),
            details=tuple(f"{output_name(leaf.index)}: {leaf.reason}" for leaf in pair.leaves if leaf.reason),
            file=pair.right,
            line=found.source.line if found is not None else 0,
            source=found.source if found is not None else None,
            severity=_SEVERITIES[state],
            identity=(
                program_name(pair.name),
                pair.relation,
                *outputs,
                *((found.source.opcode, found.source.place) if found is not None else ()),
            ),
            seconds=pair.seconds,
        )
    yield from _unpaired("prove", record.left, record.only_left)
    yield from _unpaired("prove", record.right, record.only_right)


def _of_diff(record: DiffRecord) -> Iterator[Outcome]:
    for program in record.programs:
        yield _of_programs(program)
    for result in record.results:
        leaf = result.comparison
        state = _STATES[leaf.verdict]
        yield Outcome(
            command="diff",
            name=result.name,
            rule=leaf.verdict.value,
            state=state,
            message=leaf.reason or leaf.verdict.value,
            file=result.right,
            severity=_SEVERITIES[state],
            identity=(result.name, *leaf_identity(leaf)),
        )
    if record.layers is not None:
        yield from map(partial(_of_layer, record), enumerate(record.layers.layers))
        return
    yield from _unpaired("diff", record.left, record.only_left)
    yield from _unpaired("diff", record.right, record.only_right)


def _of_layer(record: DiffRecord, numbered: tuple[int, LayerRecord]) -> Outcome:
    """Of a layer; what is wrong behind the first wrong one follows from that, as far as is known."""
    number, layer = numbered
    assert record.layers is not None
    state = _STATES[layer.verdict]
    if record.layers.first is not None and number > record.layers.first and state is State.FAILED:
        state = State.SKIPPED
    return Outcome(
        command="diff",
        name=f"{layer.name}, {layer.right}" if layer.layers else layer.right,
        rule=layer.verdict.value,
        state=state,
        message=layer.reason,
        file=record.right,
        severity=_SEVERITIES[state],
        identity=(layer.name, layer.right, layer.verdict.value),
        source=layer.source,
    )


def _of_conformance(record: ConformanceRecord) -> Iterator[Outcome]:
    smallest = {(t.opcode, t.element_type): t for t in record.failures if t.name in record.smallest}
    refused = {(t.opcode, t.element_type): t.message for t in record.refusals}
    for cell in record.cells:
        place = cell.opcode, cell.element_type
        rule, state = _CELLS[cell.status]
        trial = smallest.get(place)
        taken = [f"{name} ×{count}" for name, count in cell.freedoms.items()]
        trials = f"{cell.passed} of {cell.compared} as expected"
        yield Outcome(
            command="conformance",
            name=" ".join(filter(None, place)),
            rule=rule,
            state=state,
            message=trial.message if trial is not None else refused.get(place, ", ".join(taken) or trials),
            details=(trials, *taken, *([f"{trial.name}: {trial.title}"] if trial is not None else [])),
            file=record.files.get(trial.name, "") if trial is not None else "",
            severity=_SEVERITIES[state],
            identity=(*place, rule),
            tested=record.backend,
            difference=f"{cell.ulps} ulps" if cell.ulps else "",
        )


def _of_programs(program: ProgramDiffRecord) -> Outcome:
    counts = {
        "changed": program.changed,
        "only left": program.only_left,
        "only right": program.only_right,
        "moved": program.moved,
        "reordered": program.reordered,
        "attributes of the module": len(program.header),
    }
    different = [f"{count} {what}" for what, count in counts.items() if count]
    state = State.PASSED if program.is_same else State.FAILED
    if program.error is not None:
        state = State.ERROR
    return Outcome(
        command="diff",
        name=program.name,
        rule=UNREAD if program.error else "same" if program.is_same else PROGRAM_DIFFERS,
        state=state,
        message=program.error.message if program.error else ", ".join(different) or "the same",
        file=program.right,
        severity=_SEVERITIES[state],
        identity=(program_name(program.name), *different),
        seconds=program.seconds,
    )


def _unpaired(command: str, side: str, names: Iterable[str]) -> Iterator[Outcome]:
    for name in names:
        yield Outcome(
            command=command,
            name=name,
            rule=ALONE,
            state=State.FAILED,
            message=f"only in {side}",
            file=side,
            identity=(program_name(name), ALONE),
        )


_KINDS: dict[type, Callable[[Any], Iterator[Outcome]]] = {
    RunRecord: _of_run,
    ExecRecord: _of_exec,
    BisectRecord: _of_bisection,
    CheckRecord: _of_check,
    ProveRecord: _of_proofs,
    DiffRecord: _of_diff,
    ConformanceRecord: _of_conformance,
}

_CELLS = {
    "passed": ("passed", State.PASSED),
    "allowed": ("allowed", State.PASSED),
    "refused": (NOT_EXECUTED, State.SKIPPED),
    "crashed": (Verdict.CRASHED.value, State.ERROR),
    "failed": (UNDOCUMENTED, State.FAILED),
}

_RELATIONS = {
    "equal": State.PASSED,
    "equal where": State.SKIPPED,
    "unequal": State.FAILED,
    "refused": State.SKIPPED,
}


def _state(verdict: Verdict) -> State:
    if verdict in AGREEING:
        return State.PASSED
    if verdict in DIFFERING:
        return State.FAILED
    return State.ERROR if verdict in FAILED or verdict is Verdict.BAD_INPUT else State.SKIPPED


_STATES = {verdict: _state(verdict) for verdict in Verdict}
_SEVERITIES = {
    State.PASSED: Severity.NOTE,
    State.FAILED: Severity.ERROR,
    State.ERROR: Severity.ERROR,
    State.SKIPPED: Severity.NOTE,
}


def state_of_kind(kind: str) -> State:
    """What the kind of a cause means: a verdict's own state; every other kind is a finding."""
    known = {verdict.value: state for verdict, state in _STATES.items()}
    return known.get(kind, State.FAILED)


def _by_row(causes: Iterable[CauseRecord]) -> dict[int, CauseRecord]:
    return {row: cause for cause in causes for row in cause.rows}


def _hlo_line(row: ModuleRecord) -> int:
    if row.error is not None:
        return row.error.line if row.error.path in (None, row.path) else 0
    source = located_source(row)
    return source.line if source is not None else 0


def _row_message(row: ModuleRecord) -> str:
    """What broke it; what became what, and why that is wrong; or the reason of the verdict."""
    if row.error is not None:
        return row.error.message
    reason = row.reason or row.verdict.value
    if row.divergence is not None and row.verdict in DIFFERING:
        return f"{what_became(row.divergence, row.verdict)}: {reason}"
    return reason


def _row_details(row: ModuleRecord) -> Iterator[str]:
    if row.tested:
        yield f"expected: {row.stage_reference} on {row.reference}"
        yield f"actual: {row.stage_tested} on {row.tested}"
    if row.inputs is not None:
        yield f"inputs: {row.inputs.description}"
    if row.divergence is not None:
        yield f"actual: {row.divergence.text}"
        yield f"expected: {row.divergence.expected_text}"
    for leaf in row.leaves:
        if leaf.verdict not in AGREEING:
            yield f"{output_name(leaf.index)} {leaf.shape} {leaf.verdict.value}: {leaf.reason}"
    if row.error is not None:
        yield from row.error.log.splitlines()


def _proof_message(pair: ProvedRecord, outputs: list[str]) -> str:
    if pair.error is not None:
        return pair.error.message
    return pair.reason or (f"not equivalent: {', '.join(outputs)}" if outputs else pair.relation)
