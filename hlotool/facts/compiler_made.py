"""Values that a compiler may have computed in place of the program, and rounded in their declared types.

A rewrite merges constants, folds whole tables, and multiplies by a reciprocal instead of dividing. The new
constants are rounded, so even an execution in wider types differs by that much. Where two versions of a
program are at hand, a constant that occurs in both was not touched, nor was what both compute of such
constants. And where each constant that only one version has lies beside one that only the other has, a few
ulps of a narrow type away, nothing was merged or folded: they are simply other constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from hlotool.facts import thresholds
from hlotool.facts.float_order import ulp_distance
from hlotool.facts.flow import INLINED, CallGraph
from hlotool.ir.arrays import Array, Literal
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, Shape, array_shapes, strip_layouts

#: They pass values through computations: what they return is looked at inside.
_CALLERS = opcodes_with(Trait.CONTROL_FLOW, Trait.INLINED)


def uncertain_values(module: Module, other: Module | None = None) -> frozenset[Instruction]:
    """Float instructions of `module` whose value a rewrite may have rounded anew.

    These are: constants that `other` does not have (all constants, without another version), what is computed
    from constants only unless `other` computes it, too, and quotients with such a divisor. Calls hand
    constants on.
    """
    known = frozenset[bytes]() if other is None else _constant_values(other) | _replaced(module, other)
    computed = frozenset[int]() if other is None else frozenset(_computed(other).values())
    own = _computed(module)
    found: set[Instruction] = set()
    fixed = _fixed(module)
    for instruction in module.instructions():
        if instruction in fixed and instruction.opcode != "parameter":
            is_known = own.get(instruction) in computed or _is_known(instruction, known)
            if _holds_floats(instruction.shape) and not is_known:
                found.add(instruction)
        elif instruction.opcode == "divide" and instruction.operands[1] in fixed:
            found.add(instruction)
    return frozenset(found)


def _fixed(module: Module) -> set[Instruction]:
    """What a compiler may fold to constants, also in functions: it inlines their calls."""
    calls = CallGraph(module)
    fixed: set[Instruction] = set()
    known = -1
    while known < len(fixed):
        known = len(fixed)
        for instruction in calls.home:
            if instruction not in fixed and _is_fixed(instruction, fixed, calls):
                fixed.add(instruction)
    return fixed


def _with_arguments(module: Module) -> Iterator[tuple[Instruction, Sequence[Instruction]]]:
    """All instructions, callers before callees; parameters with what all calls give them, where calls do."""
    calls = CallGraph(module)
    for computation in reversed(calls.computations):
        callers = calls.callers[computation]
        is_called = bool(callers) and all(caller.opcode in INLINED for caller in callers)
        for instruction in computation.instructions:
            if instruction.opcode == "parameter" and is_called:
                number = instruction.parameter_number or 0
                yield instruction, [caller.operands[number] for caller in callers]
            else:
                yield instruction, ()


def _computed(module: Module) -> dict[Instruction, int]:
    """What is computed from constants only, by what is done to which constants."""
    found: dict[Instruction, int] = {}
    constants = set()
    for instruction, given in _with_arguments(module):
        if given:
            # What several calls give is one value only where it is the same.
            if len(keys := {found.get(argument) for argument in given}) == 1 and None not in keys:
                found[instruction] = found[given[0]]
                constants.add(instruction)
        elif instruction.literal is not None and isinstance(instruction.literal.value, np.ndarray):
            constants.add(instruction)
            found[instruction] = hash(
                (instruction.literal.value.tobytes(), str(strip_layouts(instruction.shape)))
            )
        elif _is_plain(instruction) and all(operand in found for operand in instruction.operands):
            shapes = tuple((part.element_type, part.dims) for part in array_shapes(instruction.shape))
            operands = tuple(found[operand] for operand in instruction.operands)
            attributes = str(sorted(instruction.attributes.items()))
            found[instruction] = hash((instruction.opcode, shapes, operands, attributes))
    return {i: key for i, key in found.items() if i not in constants}


def _is_plain(instruction: Instruction) -> bool:
    """Whether its opcode, attributes and operands say all that it does."""
    is_source = not instruction.operands and instruction.opcode != "iota"
    return not is_source and instruction.opcode not in _CALLERS and not list(instruction.called)


def _replaced(module: Module, other: Module) -> frozenset[bytes]:
    """The narrow constants of `module` in whose place `other` has neighbours; none where one has none."""
    mine, theirs = _narrow_constants(module), _narrow_constants(other)
    new, gone = ({k: v for k, v in a.items() if k not in b} for a, b in ((mine, theirs), (theirs, mine)))
    if len(new) != len(gone):
        return frozenset()
    pairs = {
        key: next((k for k, v in gone.items() if _are_neighbours(one, v)), None) for key, one in new.items()
    }
    is_bijective = None not in pairs.values() and len(set(pairs.values())) == len(pairs)
    return frozenset(pairs) if is_bijective else frozenset()


def _narrow_constants(module: Module) -> dict[bytes, Literal]:
    """One literal for each value of a narrow float type."""
    literals = (i.literal for i in module.instructions() if i.literal is not None)
    return {
        key: literal
        for literal in literals
        if isinstance(literal.shape, ArrayShape) and literal.shape.element_type.is_narrow_float
        for key in _keys(literal)
    }


def _are_neighbours(one: Literal, other: Literal) -> bool:
    """Whether every element is within a few ulps of the other's, in the same type."""
    if not isinstance(one.shape, ArrayShape) or not isinstance(other.shape, ArrayShape):
        return False
    kind = one.shape.element_type
    if kind is not other.shape.element_type or one.array.size != other.array.size:
        return False
    distance = ulp_distance(one.array.reshape(-1), other.array.reshape(-1), kind)
    return bool((distance <= thresholds.NEIGHBOURS.value).all())


def _is_fixed(instruction: Instruction, fixed: set[Instruction], calls: CallGraph) -> bool:
    """Whether its value is known to a compiler, since those that it is made of are."""
    if instruction.opcode in ("constant", "iota"):
        return True
    if instruction.opcode == "parameter":
        callers = calls.callers[calls.home[instruction]]
        number = instruction.parameter_number or 0
        return bool(callers) and all(c.opcode in INLINED and c.operands[number] in fixed for c in callers)
    if instruction.opcode in INLINED:
        return next(instruction.called).root in fixed
    if instruction.opcode in _CALLERS or not instruction.operands:
        return False
    return all(operand in fixed for operand in instruction.operands)


def _is_known(instruction: Instruction, known: frozenset[bytes]) -> bool:
    if instruction.opcode == "iota":
        return True
    return instruction.literal is not None and set(_keys(instruction.literal)) <= known


def _holds_floats(shape: Shape) -> bool:
    return any(part.element_type.is_inexact for part in array_shapes(shape))


def _constant_values(module: Module) -> frozenset[bytes]:
    literals = (i.literal for i in module.instructions() if i.literal is not None)
    return frozenset(key for literal in literals for key in _keys(literal))


def _keys(literal: Literal) -> Iterator[bytes]:
    """The float values of a literal, comparable between types and shapes."""
    for wide in float_values(literal):
        yield (wide[:1] if wide.size and np.all(wide == wide[0]) else wide).tobytes()


def float_values(literal: Literal) -> Iterator[Array]:
    """The float arrays of a literal that are not elided, each in one dimension, in f64 or c128."""
    if isinstance(literal.value, tuple):
        for element in literal.value:
            yield from float_values(element)
    elif literal.value is not None and _holds_floats(literal.shape):
        is_complex = isinstance(literal.shape, ArrayShape) and literal.shape.element_type.is_complex
        with np.errstate(all="ignore"):
            yield literal.value.astype(np.complex128 if is_complex else np.float64).reshape(-1)
