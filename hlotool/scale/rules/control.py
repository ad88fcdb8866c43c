"""Calls, loops, branches, tuples: what is given is what is taken."""

from __future__ import annotations

from hlotool.ir.module import Computation, Instruction
from hlotool.ir.walk import branches
from hlotool.scale.rules.base import Relations, place, relates


def _arguments(known: Relations, instruction: Instruction, callee: Computation, first: int = 0) -> None:
    for parameter, operand in zip(callee.parameters, instruction.operands[first:]):
        known.equal(parameter, operand)


@relates("tuple")
def tuple_(known: Relations, instruction: Instruction) -> None:
    """The operands side by side."""
    result = known.dims[instruction]
    for number, operand in enumerate(instruction.operands):
        for index, dims in known.dims[operand].items():
            known.sizes.unify_all(dims, result[number, *index])


@relates("get-tuple-element")
def element(known: Relations, instruction: Instruction) -> None:
    """One element of a tuple."""
    whole, number = known.dims[instruction.operands[0]], instruction.integer("index")
    for index, dims in known.dims[instruction].items():
        known.sizes.unify_all(dims, whole[number, *index])


@relates("call", "fusion")
def call(known: Relations, instruction: Instruction) -> None:
    """What the computation takes and returns."""
    for callee in instruction.called:
        _arguments(known, instruction, callee)
        known.equal(instruction, callee.root)


@relates("while")
def loop(known: Relations, instruction: Instruction) -> None:
    """The state is what both computations take and the body returns."""
    body, condition = instruction.computation("body"), instruction.computation("condition")
    known.equal(instruction, instruction.operands[0])
    _arguments(known, instruction, body)
    _arguments(known, instruction, condition)
    known.equal(instruction, body.root)


@relates("conditional")
def conditional(known: Relations, instruction: Instruction) -> None:
    """Each branch takes its operand, and all return the same."""
    for number, callee in enumerate(branches(instruction)):
        _arguments(known, instruction, callee, 1 + number)
        known.equal(instruction, callee.root)


@relates("async-start")
def begun(known: Relations, instruction: Instruction) -> None:
    """((operands…), result, contexts…)."""
    for callee in instruction.called:
        _arguments(known, instruction, callee)
    result = known.dims[instruction]
    for number, operand in enumerate(instruction.operands):
        for index, dims in known.dims[operand].items():
            known.sizes.unify_all(dims, result[0, number, *index])
    for callee in instruction.called:
        for index, dims in known.dims[callee.root].items():
            known.sizes.unify_all(dims, result[1, *index])


@relates("async-update")
def goes_on(known: Relations, instruction: Instruction) -> None:
    """What was begun."""
    known.equal(instruction, instruction.operands[0])


@relates("async-done", "copy-done", "all-gather-done", "collective-permute-done")
def done(known: Relations, instruction: Instruction) -> None:
    """Of what was begun the result: the second part, of a copy the first."""
    number = 0 if instruction.opcode == "copy-done" else 1
    whole = known.dims[instruction.operands[0]]
    for index, dims in known.dims[instruction].items():
        if (number, *index) not in whole:
            known.freeze_around(instruction, f"{place(instruction)}: another tuple than was begun")
            return
        known.sizes.unify_all(dims, whole[number, *index])


@relates("copy-start")
def copy_begun(known: Relations, instruction: Instruction) -> None:
    """(destination, source, context)."""
    given, result = known.of(instruction.operands[0]), known.dims[instruction]
    for number in (0, 1):
        known.sizes.unify_all(given, result[(number,)])
