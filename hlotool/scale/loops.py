"""Loops over stacks: as many iterations as a dimension has elements, so that both change together.

A layer stack is a `while` whose body takes, in every iteration, one slice of arrays with a leading
dimension as long as the loop. The length then stands in integer constants of condition and body: as a
bound, as an offset of negative indices, less one as the last index of a loop that runs backwards. Programs
in which a stack is walked by a loop on one side only (on the other it was unrolled) keep the length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hlotool.analysis.constants import integer_constant
from hlotool.analysis.trip_counts import trip_count
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.walk import reachable
from hlotool.scale.rules.base import Number, Relations, place
from hlotool.scale.terms import Size

#: Shorter loops stay as they are: their lengths are numbers like any others, and cost little.
SHORTEST = 9


@dataclass(frozen=True, slots=True)
class SizeConstant:
    """A constant whose value is a size plus an offset.

    Attributes:
        size: of a dimension.
        offset: what is added to it.
    """

    size: Size
    offset: int

    @property
    def sizes(self) -> tuple[Size, ...]:
        """What it is made of."""
        return (self.size,)

    def value(self, number: Number) -> int:
        """Its value when sizes are other numbers."""
        return number(self.size) + self.offset


@dataclass(frozen=True, slots=True)
class _Stack:
    """A loop over slices of arrays.

    Attributes:
        loop: the `while`.
        length: its iterations.
        size: of the dimension that it walks along.
    """

    loop: Instruction
    length: int
    size: Size


def relate_loops(known: Relations, modules: Sequence[Module]) -> dict[Instruction, SizeConstant]:
    """Find loops over stacks in all programs, and the constants that hold their lengths."""
    stacks = [list(_stacks(known, module)) for module in modules]
    # Loops of one length that are over different dimensions could not be told apart by their constants.
    by_length: dict[int, Size] = {}
    for stack in (stack for found in stacks for stack in found):
        known.sizes.unify(by_length.setdefault(stack.length, stack.size), stack.size)
    sides = [{known.sizes.root(stack.size) for stack in found} for found in stacks]
    for size in set().union(*sides):
        if any(size not in found for found in sides):
            known.sizes.freeze(size, "walked by a loop in one of the programs only")
    constants: dict[Instruction, SizeConstant] = {}
    for stack in (stack for found in stacks for stack in found):
        held = dict(_constants(stack))
        if stack.length not in {constant.size.value + constant.offset for constant in held.values()}:
            where = place(stack.loop)
            known.sizes.freeze(stack.size, f"{where}: its bound is no constant of condition or body")
        constants.update(held)
    return constants


def _stacks(known: Relations, module: Module) -> Iterator[_Stack]:
    for instruction in module.instructions():
        if instruction.opcode != "while":
            continue
        length = trip_count(instruction)
        if length is None or length < SHORTEST:
            continue
        walked = list(_walked(known, instruction.computation("body"), length))
        for size in walked[1:]:
            known.sizes.unify(walked[0], size)
        if walked:
            yield _Stack(instruction, length, walked[0])


def _walked(known: Relations, body: Computation, length: int) -> Iterator[Size]:
    """Dimensions as long as the loop of which the body takes, or writes, one element at a place that
    moves."""
    for computation in reachable(body):
        for instruction in computation.instructions:
            if instruction.opcode not in ("dynamic-slice", "dynamic-update-slice"):
                continue
            is_slice = instruction.opcode == "dynamic-slice"
            part = instruction.dims if is_slice else instruction.operands[1].dims
            places = instruction.operands[1:] if is_slice else instruction.operands[2:]
            for whole, size, where in zip(known.of(instruction.operands[0]), part, places):
                if whole.value == length and size == 1 and integer_constant(where) is None:
                    yield whole


def _constants(stack: _Stack) -> Iterator[tuple[Instruction, SizeConstant]]:
    computations = (
        *reachable(stack.loop.computation("condition")),
        *reachable(stack.loop.computation("body")),
    )
    for computation in computations:
        for instruction in computation.instructions:
            if instruction.opcode != "constant":
                continue
            offset = (integer_constant(instruction) or 0) - stack.length
            if offset in (0, -1) and not instruction.dims:
                yield instruction, SizeConstant(stack.size, offset)
