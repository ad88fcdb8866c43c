"""What was located of a finding: where two programs part, and what makes NaN and infinity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType, RenderResult, group
from rich.padding import Padding
from rich.text import Text

from hlotool.interface.report.console import facts, user_line_text
from hlotool.interface.report.finding import PLACE_STYLE, quoted_source, what_became
from hlotool.interface.report.words import at, number, plural, share
from hlotool.judge.records import DeviationRecord, DivergenceRecord, NonFiniteRecord, OperandRecord
from hlotool.judge.verdicts import Verdict
from hlotool.runs.records import ModuleRecord
from hlotool.system.records import SourceRecord

#: Lines on what makes NaN and infinity, where results are not shown in full.
_BIRTHS = 3


@group()
def first_divergence(
    divergence: DivergenceRecord, verdict: Verdict = Verdict.WRONG, verbose: bool = False
) -> RenderResult:
    """What became what, the user's line, the instruction of both sides, a value of it, its confirmation.

    Args:
        divergence: what was found.
        verdict: on the result.
        verbose: with everything that is known of it.
    """
    yield Text(what_became(divergence, verdict), "bold")
    yield from (Padding(line, (0, 0, 0, 2)) for line in quoted_source(divergence.source))
    yield Padding(facts(divergence_facts(divergence, is_brief=not verbose)), (0, 0, 0, 2))
    for made in divergence.not_finite:
        yield first_not_finite(made)


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
        yield Text.assemble((f"first {kind}", "bold"), f" of {name}: ", (where, PLACE_STYLE), f"  {text}")
    if len(said) > _BIRTHS:
        yield Text(f"and {plural(len(said) - _BIRTHS, 'more')} that make NaN or infinity (--verbose)", "dim")


def _headline(source: SourceRecord) -> Text:
    """The user's own line where it is known, else the frontend's name, else the HLO name."""
    if source.file:
        return user_line_text(source, PLACE_STYLE)
    return Text(source.op_name or f"{source.opcode} %{source.instruction}", PLACE_STYLE)


def divergence_facts(divergence: DivergenceRecord, is_brief: bool = False) -> Iterator[tuple[str, str]]:
    """What is known of it, by name; without operands that are right, and the frontend's name, if brief."""
    if divergence.source.file and divergence.source.op_name and not is_brief:
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
        yield "value", _deviation(divergence.accumulated)
    if divergence.local:
        yield "alone", _local(divergence.local)
    others = divergence.operands
    if is_brief:
        others = [one for one in others if one.value or one.state == "differs"]
    if others:
        yield "reads", ", ".join(map(_operand, others))
    if divergence.unaligned:
        yield "not checked", f"{', '.join(divergence.unaligned)}: no counterpart before optimization"
    if divergence.repair:
        yield "confirmed", _confirmation(divergence)
        if left := divergence.outputs - divergence.repaired:
            verb = "stays" if left == 1 else "stay"
            yield "also", f"{plural(left, 'output')} {verb} wrong: repair this first, then run again"
    yield from (("note", note) for note in divergence.notes)


def device_facts(divergence: DivergenceRecord) -> Iterator[tuple[str, str]]:
    """The device that is wrong, in a program for several."""
    if divergence.device is not None:
        yield "device", f"{divergence.device}, the first with another value"


def _located(text: str, source: SourceRecord) -> str:
    return f"{text}  (line {source.line})" if source.line else text


def _deviation(deviation: DeviationRecord) -> str:
    worst = deviation.worst
    values = "" if worst is None else f"expected {worst.expected}, actual {worst.actual}{at(worst.index)}"
    if not deviation.mismatched:
        return "; ".join(filter(None, [values, "no further off than rounding one operation"]))
    if deviation.total == 1:
        return values or "differs"
    return "; ".join(
        filter(None, [values, f"differs in {share(deviation.mismatched, deviation.total)} elements"])
    )


def _local(deviation: DeviationRecord) -> str:
    if not deviation.mismatched:
        return "given correct operands it computes the right value"
    error = "" if deviation.absolute is None else f", by up to {number(deviation.absolute)}"
    amount = share(deviation.mismatched, deviation.total)
    return f"given correct operands it still computes wrong values ({amount}{error})"


#: What is known of an operand's value.
_STATES = {"unknown": "no counterpart before optimization", "differs": "differs", "agrees": "right"}


def _operand(operand: OperandRecord) -> str:
    state = operand.value or _STATES.get(operand.state, operand.state)
    return f"%{operand.instruction} {operand.shape} ({state})"


def _confirmation(divergence: DivergenceRecord) -> str:
    is_value = divergence.repair == "the expected value"
    what = "replacing this value" if is_value else f"replacing it with {divergence.repair}"
    if divergence.repaired == divergence.outputs == 1:
        return f"{what} repairs the output"
    return f"{what} repairs {divergence.repaired} of {plural(divergence.outputs, 'differing output')}"


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
