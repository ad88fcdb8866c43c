"""What a search found as a record."""

from __future__ import annotations

from collections.abc import Sequence

from hlotool.ir.module import Instruction
from hlotool.ir.printer import SHORT, print_instruction
from hlotool.ir.printing.literals import literal_text
from hlotool.ir.types import ArrayShape, ShapeIndex, strip_layouts, subshape
from hlotool.locate.embedded import embedded_difference
from hlotool.locate.evaluation import Evaluator, fitted, part_of
from hlotool.locate.execution import Subject
from hlotool.locate.frames import FORMS, Node, made, operand_nodes, operand_uses
from hlotool.locate.locator import Found, Search
from hlotool.locate.neighbourhood import neighbourhood
from hlotool.locate.nonfinite import births
from hlotool.locate.pairing import Pairing
from hlotool.locate.records import DivergenceRecord, OperandRecord
from hlotool.locate.store import Budget
from hlotool.locate.words import around, deviation_record, difference, source_in, text_in
from hlotool.numerics.metrics import Metrics

#: Instructions without a counterpart that are named.
_NAMED = 8


def first_divergence(
    reference: Subject,
    tested: Subject,
    outputs: Sequence[ShapeIndex],
    budget: Budget,
    is_wide: bool = False,
) -> DivergenceRecord:
    """Find where two programs part, on the numpy reference; see `Search`.

    Args:
        reference: the program as it should be.
        tested: the same program at another stage.
        outputs: shape indices of results that differ.
        budget: how much may be kept, and how many seconds each part of the search may take.
        is_wide: compute in f64.

    Raises:
        NotFound: no instruction is known to differ.
        OutOfTime: recording an execution takes too long.
        Unsupported: the calls of a program cannot be flattened, or it cannot be executed.
    """
    search = Search(reference, tested, budget, is_wide)
    try:
        return divergence_record(search, search.first(outputs), outputs)
    finally:
        search.close()


def divergence_record(search: Search, found: Found, outputs: Sequence[ShapeIndex]) -> DivergenceRecord:
    """What was found, with what made NaNs and infinities of the outputs."""
    blame, tested = found.blame, found.tested
    one, other = blame.amplified if found.is_amplified and blame.amplified else (blame.before, blame.after)
    place = found.place
    local, shown = _local(found, one, other), _shown(one, other)
    inside = None
    if one.instruction.opcode == other.instruction.opcode and blame.wiring is None:
        inside = embedded_difference(one.instruction, other.instruction)
    return DivergenceRecord(
        finding=_finding(found, local),
        source=source_in(tested, place),
        text=text_in(tested, place),
        expected_source=source_in(found.reference, shown),
        expected_text=text_in(found.reference, shown),
        around=around(tested, place),
        inside=print_instruction(inside[1], SHORT) if inside else "",
        inside_expected=print_instruction(inside[0], SHORT) if inside else "",
        operands=[_operand(found, use) for use in operand_uses(place)] if blame.wiring is None else [],
        accumulated=deviation_record(difference(found.value(one), found.value(other), other), tested.is_wide),
        local=deviation_record(local, tested.is_wide),
        repair=found.repair,
        repaired=found.repaired,
        outputs=found.outputs,
        unaligned=_names(found),
        not_finite=list(births(found.on_numbers[1], outputs)),
        notes=list(search.notes()),
        instructions=to_blame(found),
        device=found.device,
        neighbours=neighbourhood(tested, place, lambda use: _state(found, use)),
        expected_neighbours=neighbourhood(found.reference, shown),
    )


def _shown(one: Node, other: Node) -> Node:
    """The operation of the right program that does what `other` should, behind what only changes its form."""
    shown = one
    while shown.instruction.opcode != other.instruction.opcode:
        if shown.instruction.opcode not in FORMS:
            return one
        [shown] = operand_nodes(shown)
    return shown


def to_blame(found: Found) -> list[str]:
    """Names of the operations to blame, operands first."""
    return list(dict.fromkeys(found.tested.originals[node.instruction].name for node in found.suspects))


def _finding(found: Found, local: Metrics | None) -> str:
    if found.is_amplified:
        return "amplifies"
    if found.blame.wiring is not None or found.blame.after.instruction.opcode == "constant":
        return "wrong"
    return "wrong" if found.repaired or (local is not None and local.mismatched) else "suspected"


def _names(found: Found) -> list[str]:
    """What else is to blame, in the order of the text, constants last."""
    others = [node.instruction for node in found.suspects if node not in (found.place, found.blame.after)]
    place = {instruction: number for number, instruction in enumerate(found.tested.module.instructions())}
    ordered = sorted(dict.fromkeys(others), key=lambda i: (i.opcode == "constant", place[i]))
    names = [_name(found.tested.originals[i]) for i in ordered[:_NAMED]]
    more = len(ordered) - len(names)
    return [*names, f"{more} more"] if more > 0 else names


def _name(instruction: Instruction) -> str:
    """`broadcast %b.3`, `constant %c.7 = 1e-05`."""
    name = f"{instruction.opcode} %{instruction.name}"
    literal = instruction.literal
    if (
        literal is None
        or literal.has_elided
        or not isinstance(literal.shape, ArrayShape)
        or literal.shape.rank
    ):
        return name
    return f"{name} = {literal_text(literal)}"


def _operand(found: Found, use: Node) -> OperandRecord:
    original = found.tested.originals[use.instruction]
    return OperandRecord(
        instruction=original.name,
        shape=str(strip_layouts(subshape(original.shape, use.index))),
        state=_state(found, use),
    )


def _state(found: Found, use: Node) -> str:
    """`agrees`, `differs` or `unknown`, compared with what the reference has there."""
    node = made(use)
    if any(node in (one, other) for one, other in found.blame.inputs):
        return "agrees"
    expected = _expected(found.pairing, found, node)
    if expected is None:
        return "unknown"
    return "agrees" if found.pairing.agree(expected, node) else "differs"


def _expected(pairing: Pairing, found: Found, node: Node) -> Node | None:
    """What the reference has for an operand of the accused operation."""
    pairs = ((one, other) for one, other in found.blame.inputs if one is not None)
    paired = next((one for one, other in pairs if other == node), None)
    return paired or pairing.twin_before(node) or pairing.equal_value(node, found.blame.before)


def _local(found: Found, one: Node, other: Node) -> Metrics | None:
    """The value of the accused operation on the operands that the reference had, against the expected one."""
    operands = [made(use) for use in operand_uses(other)]
    if found.blame.wiring is not None or not operands:
        return None
    expected: Sequence[Node | None] = [_expected(found.pairing, found, operand) for operand in operands]
    if found.is_amplified:
        expected = [made(use) for use in operand_uses(one)]
    device = found.device or 0
    given = [
        (twin and found.in_numbers(twin), found.in_numbers(operand))
        for twin, operand in zip(expected, operands)
    ]
    values = [fitted(twin.value, operand, device) if twin and operand else None for twin, operand in given]
    known = [value for value in values if value is not None]
    place = found.in_numbers(other)
    if place is None or len(known) < len(values):
        return None
    value = Evaluator().apply(place, known)
    for i in other.index:
        value = value[i] if isinstance(value, tuple) else None
    return None if value is None else difference(part_of(found.value(one), device), value, other)
