"""Calls, fusions, loops and branches replaced by what they do on the values that occurred."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from hlotool.ir.edit import Editor, editing
from hlotool.ir.edit_calls import inline, insert_body
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.edit_dead import add_entry_parameter, drop_entry_parameters, remove_dead_code
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.walk import branches
from hlotool.locate.frames import Frame, branch_taken, resolve, value_in
from hlotool.search.reduction.case import Case, traces
from hlotool.search.reduction.oracle import Candidate, CaseOracle

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
    """Without dead code and parameters that nobody reads."""
    remove_dead_code(module)
    read = {o for i in module.entry.instructions for o in i.operands} | {module.entry.root}
    dead = [n for n, p in enumerate(module.entry.parameters) if p not in read]
    drop_entry_parameters(module, dead)
    return case.with_rows(module, [[a for n, a in enumerate(row) if n not in set(dead)] for row in rows])
