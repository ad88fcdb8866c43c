"""The first instruction at which a tested program parts from the reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType, RenderResult, group
from rich.padding import Padding
from rich.text import Text

from hlotool.findings.records import SourceRecord
from hlotool.locate.records import DeviationRecord, DivergenceRecord, NonFiniteRecord, OperandRecord
from hlotool.replay.records import ModuleRecord
from hlotool.report.links import user_line_text
from hlotool.report.tables import facts
from hlotool.report.words import at, number, plural, share, ulps

#: What is said of a finding.
_FINDINGS = {
    "wrong": "first wrong instruction",
    "amplifies": "first instruction where rounding grows into a difference",
    "suspected": "first instruction that is known to differ",
}
#: Lines on what makes NaN and infinity, where results are not shown in full.
_BIRTHS = 3
#: The style of what accuses a place.
_PLACE = "bold cyan"


@group()
def first_divergence(divergence: DivergenceRecord, is_accused: bool = True) -> RenderResult:
    """The user's line, the instruction of both sides, how far off it is, what it reads.

    Args:
        divergence: what was found.
        is_accused: False where the programs are known to mean different things, and no more.
    """
    finding = finding_text(divergence, is_accused)
    yield Text.assemble((finding, "bold"), "  ", _headline(divergence.source))
    yield Padding(facts(divergence_facts(divergence)), (0, 0, 0, 2))
    for made in divergence.not_finite:
        yield first_not_finite(made)


def finding_text(divergence: DivergenceRecord, is_accused: bool = True) -> str:
    """What is said of the instruction, before its place."""
    return _FINDINGS[divergence.finding] if is_accused else "first instruction of another function"


@group()
def first_not_finite(made: NonFiniteRecord) -> RenderResult:
    """The user's line that made a NaN or an infinity, and of what."""
    yield Text.assemble((f"first {made.kind}", "bold"), "  ", _headline(made.source))
    yield Padding(facts(_not_finite_facts(made)), (0, 0, 0, 2))


def births_of(modules: Sequence[ModuleRecord]) -> Iterator[RenderableType]:
    """What made the first NaN and infinity of results that are not shown in full, a line each."""
    said: dict[tuple[str, str, str], str] = {}
    for module in modules:
        for made in module.origins:
            where = made.source.user_line or made.source.op_name
            said.setdefault((made.kind, where, _located(made.text, made.source)), module.name)
    for (kind, where, text), name in list(said.items())[:_BIRTHS]:
        yield Text.assemble((f"first {kind}", "bold"), f" of {name}: ", (where, _PLACE), f"  {text}")
    if len(said) > _BIRTHS:
        yield Text(f"and {plural(len(said) - _BIRTHS, 'more')} that make NaN or infinity (--verbose)", "dim")


def _headline(source: SourceRecord) -> Text:
    """The user's own line where it is known, else the frontend's name, else the HLO name."""
    if source.file:
        return user_line_text(source, _PLACE)
    return Text(source.op_name or f"{source.opcode} %{source.instruction}", _PLACE)


def divergence_facts(divergence: DivergenceRecord) -> Iterator[tuple[str, str]]:
    """What is known of it, by name."""
    if divergence.source.file and divergence.source.op_name:
        yield "operation", divergence.source.op_name
    if divergence.expected_source == divergence.source:
        yield "instruction", _located(divergence.text, divergence.source)
    else:
        yield "expected", _located(divergence.expected_text, divergence.expected_source)
        yield "actual", _located(divergence.text, divergence.source)
    if divergence.inside:
        yield "inside", f"expected {divergence.inside_expected}"
        yield "", f"actual   {divergence.inside}"
    if divergence.around:
        yield "in", ", in ".join(divergence.around)
    yield from device_facts(divergence)
    if divergence.accumulated:
        yield "off by", _deviation(divergence.accumulated)
    if divergence.local:
        yield "by itself", _local(divergence.local)
    if divergence.operands:
        yield "reads", ", ".join(map(_operand, divergence.operands))
    if divergence.unaligned:
        yield "unknown", f"{', '.join(divergence.unaligned)}: on the way to it, not in the reference"
    if divergence.repair:
        yield "confirmed", _confirmation(divergence)
        if left := divergence.outputs - divergence.repaired:
            yield (
                "another cause",
                f"{plural(left, 'output')} stays wrong: mend this one first, then replay again",
            )
    yield from (("note", note) for note in divergence.notes)


def device_facts(divergence: DivergenceRecord) -> Iterator[tuple[str, str]]:
    """The device that is wrong, in a program for several."""
    if divergence.device is not None:
        yield "device", f"{divergence.device}, the first with another value"


def _located(text: str, source: SourceRecord) -> str:
    return f"{text}  (line {source.line})" if source.line else text


def _deviation(deviation: DeviationRecord) -> str:
    amount = f"{share(deviation.mismatched, deviation.total)} elements"
    if not deviation.mismatched:
        amount = "no more than rounding one operation does"
    worst = deviation.worst
    if worst is None:
        return amount
    distance = f", {ulps(worst.ulps)}" if worst.ulps is not None else ""
    return f"{amount}; expected {worst.expected}, actual {worst.actual}{at(worst.index)}{distance}"


def _local(deviation: DeviationRecord) -> str:
    if not deviation.mismatched:
        return "right: from the expected operands it computes the expected value"
    error = "" if deviation.absolute is None else f", by up to {number(deviation.absolute)}"
    amount = share(deviation.mismatched, deviation.total)
    return f"wrong: from the expected operands {amount} elements differ{error}"


def _operand(operand: OperandRecord) -> str:
    return f"%{operand.instruction} {operand.shape} ({operand.value or operand.state})"


def _confirmation(divergence: DivergenceRecord) -> str:
    if divergence.repaired == divergence.outputs == 1:
        return f"with {divergence.repair} in its place the output is right"
    right = plural(divergence.outputs, "differing output")
    return f"with {divergence.repair} in its place {divergence.repaired} of {right} are right"


def _not_finite_facts(made: NonFiniteRecord) -> Iterator[tuple[str, str]]:
    if made.source.file and made.source.op_name:
        yield "operation", made.source.op_name
    yield "instruction", _located(made.text, made.source)
    if made.around:
        yield "in", ", in ".join(made.around)
    if made.device is not None:
        yield "device", f"{made.device}, the first that has it"
    if made.operands:
        where = at(made.index) if made.index else ""
        yield f"made{where} of", ", ".join(map(_operand, made.operands))
