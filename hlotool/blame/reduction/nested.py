"""Smaller nested computations: calls, loops, branches flattened, instructions inside them removed.

Calls, fusions, loops and branches are replaced by what they do on the values that occurred; instructions
give way to an operand of their shape, or to a constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from hlotool.blame.reduction.case import Case, executed, terminates, traces
from hlotool.blame.reduction.oracle import Candidate, CaseOracle
from hlotool.blame.searches import minimize_tree
from hlotool.inputs.frames import Frame, branch_taken, resolve, value_in
from hlotool.ir.arrays import Literal, dtype_of
from hlotool.ir.edit import Editor, editing
from hlotool.ir.edit_calls import inline, insert_body
from hlotool.ir.edit_programs import (
    add_entry_parameter,
    clone_module,
    drop_entry_parameters,
    remove_dead_code,
)
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, strip_layouts
from hlotool.ir.walk import branches, reachable

#: Iterations of a loop that are tried on their own.
_ITERATIONS = 8


def flatten(case: Case, oracle: CaseOracle) -> Case:
    """Inline calls and fusions, keep one iteration of loops and the branch taken, where the failure stays."""
    while True:
        found = oracle.first_failing(list(_candidates(case)), "inline")
        if found is None:
            return case
        case = found[1]


def _candidates(case: Case) -> Iterator[Candidate]:
    entry = case.module.entry
    calls = [i for i in entry.instructions if i.opcode in ("call", "fusion")]
    if len(calls) > 1:
        yield partial(_inlined, case, calls)
    for call in calls:
        yield partial(_inlined, case, [call])
    control = [i for i in entry.instructions if i.opcode in ("while", "conditional")]
    if not control:
        return
    frames = traces(case)
    for instruction in control:
        if instruction.opcode == "conditional":
            yield partial(_taken, case, instruction, frames)
        else:
            yield from _loop_candidates(case, instruction, frames)


def _loop_candidates(case: Case, loop: Instruction, frames: Sequence[Frame]) -> Iterator[Candidate]:
    """The body once, at several iterations; then the loop from a later iteration on."""
    count = min(len(frame.bodies.get(loop, ())) for frame in frames)
    tried = sorted({round(n * (count - 1) / max(_ITERATIONS - 1, 1)) for n in range(_ITERATIONS)})
    for number in tried if count else ():
        yield partial(_from_iteration, case, loop, frames, number, once=True)
    starts = sorted({count - 1, count // 2} - {0, -1}, reverse=True)
    for number in starts:
        yield partial(_from_iteration, case, loop, frames, number, once=False)


def _state(frame: Frame, loop: Instruction, iteration: int) -> Any:
    """What the body of a loop gets at an iteration."""
    if iteration == 0:
        return value_in(frame, loop.operands[0])
    last = frame.bodies[loop][iteration - 1]
    return value_in(last, last.computation.root)


def _inlined(case: Case, calls: Sequence[Instruction]) -> Case:
    clone = clone_module(case.module)
    with editing(clone.module.entry) as edit:
        for call in calls:
            inline(clone.module, edit, clone.instructions[call])
    return _cleaned(case, clone.module, case.rows)


def _taken(case: Case, conditional: Instruction, frames: Sequence[Frame]) -> Case | None:
    """The branch in place of the conditional, where all devices take the same."""
    selectors = [resolve(frame, conditional.operands[0]).value for frame in frames]
    taken, *others = {branch_taken(selector, conditional) for selector in selectors}
    if others:
        return None
    clone = clone_module(case.module)
    own = clone.instructions[conditional]
    with editing(clone.module.entry) as edit:
        _replace(clone.module, edit, own, branches(own)[taken], [own.operands[1 + taken]])
    return _cleaned(case, clone.module, case.rows)


def _from_iteration(case: Case, loop: Instruction, frames: Sequence[Frame], number: int, once: bool) -> Case:
    """The loop from a later iteration on, or this one iteration in its place."""
    given_rows = case.rows if len(case.rows) == len(frames) else case.rows * len(frames)
    rows = [(*row, _state(frame, loop, number)) for row, frame in zip(given_rows, frames)]
    clone = clone_module(case.module)
    own = clone.instructions[loop]
    with editing(clone.module.entry) as edit:
        given = add_entry_parameter(clone.module, edit, own.operands[0].shape, "state")
        if once:
            _replace(clone.module, edit, own, own.computation("body"), [given])
        else:
            edit.set_operands(own, [given])
    return _cleaned(case, clone.module, rows)


def _replace(
    module: Module, edit: Editor, old: Instruction, body: Computation, arguments: Sequence[Instruction]
) -> None:
    """The instructions of a body in place of what called it."""
    result = insert_body(module, edit, body, arguments, old)
    edit.replace_uses(old, result)
    edit.remove(old)


def _cleaned(case: Case, module: Module, rows: Sequence[Sequence[Any]]) -> Case:
    """Without dead code and unread parameters."""
    remove_dead_code(module)
    read = {o for i in module.entry.instructions for o in i.operands} | {module.entry.root}
    dead = [n for n, p in enumerate(module.entry.parameters) if p not in read]
    drop_entry_parameters(module, dead)
    return case.with_rows(module, [[a for n, a in enumerate(row) if n not in set(dead)] for row in rows])


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
        candidates = [partial(_in_time, c, limit) for c in _nested_candidates(case, computation, number)]
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


def _nested_candidates(case: Case, computation: int, number: int) -> Iterator[Candidate]:
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
