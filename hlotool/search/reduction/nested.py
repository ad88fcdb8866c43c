"""Computations inside a program: instructions give way to an operand of their shape, or to a constant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np

from hlotool.ir.dtypes import dtype_of
from hlotool.ir.edit import editing
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.edit_dead import remove_dead_code
from hlotool.ir.literal import Literal
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, strip_layouts
from hlotool.ir.walk import reachable
from hlotool.search.ddmin import minimize_tree
from hlotool.search.reduction.case import Case, executed, terminates
from hlotool.search.reduction.oracle import Candidate, CaseOracle

#: Instructions of all nested computations that are tried one by one.
_MOST = 400

#: What computations are held together by.
_STRUCTURE = opcodes_with(Trait.STRUCTURE)

#: A candidate may execute so many times as many instructions as the program before.
_PATIENCE = 4


def simplify_nested(case: Case, oracle: CaseOracle) -> Case:
    """Simplify everything outside of the entry: whole parts at first, then one instruction after the other.

    A loop may lose what ends it: only candidates that the reference executes in reasonable time are judged.
    """
    if not _places(case):
        return case
    limit = _PATIENCE * executed(case) + _PATIENCE
    return _one_by_one(_by_parts(case, oracle, limit), oracle, limit)


def _by_parts(case: Case, oracle: CaseOracle, limit: int) -> Case:
    """Keep as few nested instructions as fail; the others give way, with all that they call."""
    best = case

    def first_failing(candidates: Sequence[frozenset[Instruction]]) -> int | None:
        nonlocal best
        made = [partial(_in_time, partial(_with_only, case, kept), limit) for kept in candidates]
        found = oracle.first_failing(made, "parts")
        if found is None:
            return None
        best = found[1]
        return found[0]

    minimize_tree(dict.fromkeys(_inside(case.module.entry.instructions)), _children, first_failing)
    return best


def _children(instruction: Instruction) -> list[Instruction]:
    return list(_inside([instruction]))


def _inside(callers: Iterable[Instruction]) -> Iterator[Instruction]:
    """What the computations that `callers` call do."""
    for caller in callers:
        for computation in caller.called:
            yield from (i for i in computation.instructions if _may_give_way(i))


def _may_give_way(instruction: Instruction) -> bool:
    shape = instruction.shape
    return instruction.opcode not in _STRUCTURE and isinstance(shape, ArrayShape) and not shape.is_dynamic


def _with_only(case: Case, kept: frozenset[Instruction]) -> Case:
    """The program in which nested instructions outside of `kept` give way to an operand, or to zeros."""
    clone = clone_module(case.module)
    for computation in reachable(case.module.entry)[:-1]:
        home = clone.computations[computation]
        with editing(home) as edit:
            for original in computation.instructions:
                if original in kept or not _may_give_way(original):
                    continue
                old = clone.instructions[original]
                plain = strip_layouts(old.shape)
                stand_in = next((o for o in old.operands if strip_layouts(o.shape) == plain), None)
                edit.replace(old, stand_in or edit.add(_filled(old.array_shape, 0), before=old))
    remove_dead_code(clone.module)
    return case.changed(clone.module)


def _one_by_one(case: Case, oracle: CaseOracle, limit: int) -> Case:
    position = 0
    places = _places(case)
    while position < min(len(places), _MOST):
        computation, number = places[position]
        candidates = [partial(_in_time, c, limit) for c in _candidates(case, computation, number)]
        found = oracle.first_failing(candidates, "nested")
        if found is None:
            position += 1
        else:
            case = found[1]
            places = _places(case)
    return case


def _in_time(candidate: Candidate, limit: int) -> Case | None:
    made = candidate()
    return made if made is not None and terminates(made, limit) else None


def _places(case: Case) -> list[tuple[int, int]]:
    """Computation and instruction by number, from the callers in and from the root up."""
    nested = [c for c in reversed(reachable(case.module.entry)) if c is not case.module.entry]
    return [
        (case.module.computations.index(c), number)
        for c in nested
        for number in reversed(range(len(c.instructions)))
        if c.instructions[number].opcode not in _STRUCTURE
    ]


def _candidates(case: Case, computation: int, number: int) -> Iterator[Candidate]:
    instruction = case.module.computations[computation].instructions[number]
    plain = strip_layouts(instruction.shape)
    for operand, given in enumerate(instruction.operands):
        if strip_layouts(given.shape) == plain:
            yield partial(_without, case, computation, number, operand)
    if _may_give_way(instruction):
        for value in (0, 1):
            yield partial(_without, case, computation, number, None, value)


def _without(case: Case, computation: int, number: int, operand: int | None, value: int = 0) -> Case:
    """The program with an operand of an instruction in its place, or where that is None a constant."""
    module = clone_module(case.module).module
    home = module.computations[computation]
    old = home.instructions[number]
    with editing(home) as edit:
        if operand is None:
            edit.replace(old, edit.add(_filled(old.array_shape, value), before=old))
        else:
            edit.replace(old, old.operands[operand])
    remove_dead_code(module)
    return case.changed(module)


def _filled(shape: ArrayShape, value: int) -> Instruction:
    held = np.full(shape.dims, value, dtype_of(shape.element_type))
    return Instruction("constant", "constant", shape, literal=Literal(shape, held))
