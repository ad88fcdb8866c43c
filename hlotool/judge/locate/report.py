"""What a search found as a record; and which operation first makes a NaN or infinity of finite values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Literal, TypeAlias

import numpy as np

from hlotool.inputs.evaluation import Evaluator, fitted, part_of
from hlotool.inputs.frames import FORMS, Node, Parts, Spread, made, operand_nodes, operand_uses
from hlotool.inputs.recorded_values import Budget, Sample
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction
from hlotool.ir.printed_literals import literal_text
from hlotool.ir.printer import SHORT, print_instruction
from hlotool.ir.types import ArrayShape, ShapeIndex, strip_layouts, subshape
from hlotool.judge.locate.blame import (
    around,
    deviation_record,
    difference,
    neighbourhood,
    source_in,
    text_in,
)
from hlotool.judge.locate.likeness import embedded_difference
from hlotool.judge.locate.locator import Found, Search
from hlotool.judge.locate.pairing import Pairing
from hlotool.judge.locate.recording import Execution, Subject
from hlotool.judge.metrics import Metrics, scalar_text
from hlotool.judge.records import DivergenceRecord, NonFiniteRecord, OperandRecord

Kind: TypeAlias = Literal["NaN", "infinity"]


#: What a sample remembers of each kind.
_KINDS: dict[Kind, Callable[[Sample], bool]] = {"NaN": attrgetter("nan"), "infinity": attrgetter("inf")}


def births(execution: Execution, outputs: Sequence[ShapeIndex]) -> Iterator[NonFiniteRecord]:
    """What made the NaNs and infinities of some results, the earliest of each kind.

    Of a NaN that is made of infinities, what made these; of what no operation makes, the argument or constant
    that has it.

    Args:
        execution: of the program.
        outputs: shape indices of the results.
    """
    entry = execution.entry
    ends = [made(Node(entry, entry.computation.root, output)) for output in outputs]
    nan = _birth(ends, "NaN")
    if nan is not None:
        yield _record(execution, nan, "NaN")
    infinity = _birth(ends, "infinity") or (_birth(operand_nodes(nan), "infinity") if nan else None)
    if infinity is not None:
        yield _record(execution, infinity, "infinity")


def _birth(ends: Sequence[Node], kind: Kind) -> Node | None:
    """The earliest operation that makes a value of the kind on the way to some; None where none has it."""
    found = list(_origins(ends, kind))
    computed = [node for node in found if node.instruction.opcode not in ("parameter", "constant")]
    return min(computed or found, key=lambda node: node.order, default=None)


def _origins(ends: Sequence[Node], kind: Kind) -> Iterator[Node]:
    """What makes a value of the kind of values that are not; arguments and constants that have it."""
    queue = list(dict.fromkeys(ends))
    seen = set(queue)
    for node in queue:
        if not _holds(node, kind):
            continue
        sources = [operand for operand in operand_nodes(node) if _holds(operand, kind)]
        if not sources:
            yield node
        queue += [source for source in dict.fromkeys(sources) if source not in seen]
        seen.update(sources)


def _holds(node: Node, kind: Kind) -> bool:
    return any(_holders(node, kind))


def _holders(node: Node, kind: Kind) -> list[bool]:
    """Whether each device has a value of the kind there; nothing of what was not seen."""
    kept = node.kept
    samples = kept.samples if isinstance(kept, Spread) else [kept] if isinstance(kept, Sample) else []
    return list(map(_KINDS[kind], samples))


def _record(execution: Execution, node: Node, kind: Kind) -> NonFiniteRecord:
    holders = _holders(node, kind)
    device = holders.index(True)
    value = _shown(node, device)
    index = None if value is None else _first(value, kind)
    return NonFiniteRecord(
        kind=kind,
        source=source_in(execution, node),
        text=text_in(execution, node),
        around=around(execution, node),
        device=None if all(holders) else device,
        index=None if index is None else list(index),
        operands=[
            OperandRecord(
                instruction=execution.originals[operand.instruction].name,
                shape=str(strip_layouts(subshape(operand.instruction.shape, operand.index))),
                value=_operand_text(_shown(operand, device), value, index),
            )
            for operand in operand_nodes(node)
        ],
    )


def _shown(node: Node, device: int) -> Any:
    """The value; of several devices that of the one in question."""
    value = node.value
    return value[device] if isinstance(value, Parts) else value


def _first(value: Array, kind: Kind) -> Sequence[int] | None:
    numbers = value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
    flags = np.isnan(numbers) if kind == "NaN" else np.isinf(numbers)
    return [int(n) for n in np.unravel_index(int(flags.argmax()), value.shape)] if flags.any() else None


def _operand_text(value: Any, result: Any, index: Sequence[int] | None) -> str:
    """The value at an element of the result where the operand has one, else its range or its modulus'."""
    if value is None:
        return ""
    at = tuple(index) if index is not None and value.shape == result.shape else ()
    if len(at) == value.ndim:
        element = value[at]
        return scalar_text(complex(element)) if value.dtype.kind == "c" else f"{element}"
    if not value.size:
        return "empty"
    is_complex = value.dtype.kind == "c"
    numbers = np.abs(value) if is_complex else value.astype(np.float64)
    return f"{'modulus ' if is_complex else ''}{np.nanmin(numbers):.6g} … {np.nanmax(numbers):.6g}"


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
    local, shown = _local(found, one, other), _report_shown(one, other)
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


def _report_shown(one: Node, other: Node) -> Node:
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
