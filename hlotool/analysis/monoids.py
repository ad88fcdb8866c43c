"""Recognition of the reducers that everybody writes: sums, products, extrema, logic, and choices (argmax).

A monoid may be reduced in any order. A choice returns one of its own two arguments for every output, so any
bracketing of it is allowed while the order of elements is kept.
"""

from __future__ import annotations

from hlotool.analysis.scalar_form import ScalarForm
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ElementType

#: Opcodes that are associative and commutative, but for rounding.
_MONOIDS = opcodes_with(Trait.ASSOCIATIVE)


def monoid_opcodes(form: ScalarForm) -> list[str | None]:
    """For every output of f(accumulators…, elements…), the opcode that combines its own two arguments.

    None stands for any other function of them.
    """
    return [_match(*component) for component in _components(form)] or [None] * len(form.outputs)


def is_choice(form: ScalarForm) -> bool:
    """Whether every output is always one of its own two arguments: argmax, argmin, first, last, …"""
    components = _components(form)
    return bool(components) and all(_chooses(o, {a, e}, set()) for o, a, e in components)


def _components(form: ScalarForm) -> list[tuple[Instruction, Instruction, Instruction]]:
    """(output, its accumulator, its element); empty when the parameters do not pair up in number and type."""
    count = len(form.outputs)
    if len(form.parameters) != 2 * count:
        return []
    rows = list(zip(form.outputs, form.parameters[:count], form.parameters[count:]))
    same = all(o.element_type is a.element_type is e.element_type for o, a, e in rows)
    return rows if same else []


def _match(output: Instruction, accumulator: Instruction, element: Instruction) -> str | None:
    """Also through converts to a wider type and back, as frontends write sums of bf16."""
    inner = output
    if output.opcode == "convert":
        inner = output.operands[0]
        if not _holds_all(inner.element_type, output.element_type):
            return None
    if inner.opcode not in _MONOIDS or {_unconvert(o) for o in inner.operands} != {accumulator, element}:
        return None
    return inner.opcode


def _unconvert(instruction: Instruction) -> Instruction:
    return instruction.operands[0] if instruction.opcode == "convert" else instruction


def _holds_all(wide: ElementType, narrow: ElementType) -> bool:
    """Whether converting `narrow` to `wide` and back changes nothing, order included."""
    if wide.family is not narrow.family or wide.is_narrow_float:
        return False
    return wide.bits > narrow.bits


def _chooses(value: Instruction, candidates: set[Instruction], seen: set[Instruction]) -> bool:
    if value in candidates or value in seen:
        return True
    seen.add(value)
    is_choice = value.opcode == "select" or value.opcode in opcodes_with(Trait.EXTREMUM)
    parts = value.operands[1:] if value.opcode == "select" else value.operands
    return is_choice and all(_chooses(p, candidates, seen) for p in parts)
