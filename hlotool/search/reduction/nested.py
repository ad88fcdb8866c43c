"""Computations inside a program: each instruction gives way to an operand of its shape, or to a constant."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from hlotool.ir.dtypes import dtype_of
from hlotool.ir.edit import editing
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.edit_dead import remove_dead_code
from hlotool.ir.literal import Literal
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import ArrayShape, strip_layouts
from hlotool.ir.walk import reachable
from hlotool.search.reduction.case import Case, executed, terminates
from hlotool.search.reduction.oracle import Candidate, CaseOracle

#: Instructions of all nested computations that are tried one by one.
_MOST = 400

#: A candidate may execute so many times as many instructions as the program before.
_PATIENCE = 4


def simplify_nested(case: Case, oracle: CaseOracle) -> Case:
    """Simplify everything outside of the entry, the results of each computation first.

    A loop may lose what ends it: only candidates that the reference executes in reasonable time are judged.
    """
    position = 0
    places = _places(case)
    limit = _PATIENCE * executed(case) + _PATIENCE if places else 0
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
        if c.instructions[number].opcode not in ("parameter", "constant", "tuple", "get-tuple-element")
    ]


def _candidates(case: Case, computation: int, number: int) -> Iterator[Candidate]:
    instruction = case.module.computations[computation].instructions[number]
    plain = strip_layouts(instruction.shape)
    for operand, given in enumerate(instruction.operands):
        if strip_layouts(given.shape) == plain:
            yield partial(_with_operand, case, computation, number, operand)
    if isinstance(instruction.shape, ArrayShape) and not instruction.shape.is_dynamic:
        for value in (0, 1):
            yield partial(_with_constant, case, computation, number, value)


def _with_operand(case: Case, computation: int, number: int, operand: int) -> Case:
    module = clone_module(case.module).module
    home = module.computations[computation]
    old = home.instructions[number]
    with editing(home) as edit:
        edit.replace(old, old.operands[operand])
    remove_dead_code(module)
    return Case(module, case.arguments)


def _with_constant(case: Case, computation: int, number: int, value: int) -> Case:
    module = clone_module(case.module).module
    home = module.computations[computation]
    old = home.instructions[number]
    assert isinstance(old.shape, ArrayShape)
    with editing(home) as edit:
        edit.replace(old, edit.add(_filled(home, old.shape, value), before=old))
    remove_dead_code(module)
    return Case(module, case.arguments)


def _filled(home: Computation, shape: ArrayShape, value: int) -> Instruction:
    held = np.full(shape.dims, value, dtype_of(shape.element_type))
    return Instruction("constant", "constant", shape, literal=Literal(shape, held))
