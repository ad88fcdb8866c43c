"""Putting the body of a call in its place, and instructions into a body of their own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from hlotool.ir.attributes import AttributeValue
from hlotool.ir.edit import Editor, Names, add_computation
from hlotool.ir.edit_clone import Cloner, own_callees
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import Shape, TupleShape
from hlotool.ir.walk import predecessors


def inline(
    module: Module,
    edit: Editor,
    call: Instruction,
    arguments: Sequence[Instruction] | None = None,
    names: Names | None = None,
) -> Instruction:
    """Put the instructions that `call` stands for in its place.

    Args:
        module: that the call is part of.
        edit: of the computation that the call is part of.
        call: a `call` or `fusion`; or whatever runs its only callee once, with `arguments`.
        arguments: one per parameter of the callee; the operands of the call when None.
        names: of the module's computations.

    Returns:
        what replaces the call. The callee stays: others may call it.
    """
    (callee,) = set(call.called)
    given = call.operands if arguments is None else arguments
    result = insert_body(module, edit, callee, given, call, names)
    edit.replace_uses(call, result)
    edit.remove(call)
    return result


def insert_body(
    module: Module,
    edit: Editor,
    body: Computation,
    arguments: Sequence[Instruction],
    before: Instruction,
    names: Names | None = None,
) -> Instruction:
    """Copy the instructions of `body` in front of `before`.

    What `before` had to wait for, the copies wait for, too; and what had to wait for `before` waits for them.

    Returns:
        what stands for the root.
    """
    return copy_body(module, edit, body, arguments, before, names)[0]


def copy_body(
    module: Module,
    edit: Editor,
    body: Computation,
    arguments: Sequence[Instruction],
    before: Instruction,
    names: Names | None = None,
) -> tuple[Instruction, list[Instruction]]:
    """`insert_body`, which also returns all copies, operands first."""
    cloner = Cloner(dict(zip(body.parameters, arguments)))
    own_callees(module, body.instructions, cloner, names)
    copies = [edit.add(cloner.instruction(i), before) for i in body.instructions if i.opcode != "parameter"]
    _hand_on_control(edit, copies, before)
    return cloner.instructions[body.root], copies


def _hand_on_control(edit: Editor, copies: Sequence[Instruction], before: Instruction) -> None:
    """The first of `copies` wait for the predecessors of `before`, its successors for the last of them."""
    members = set(copies)
    if before.control_predecessors:
        for copy in copies:
            if copy.opcode != "constant" and members.isdisjoint(copy.operands):
                needed = (*copy.control_predecessors, *before.control_predecessors)
                edit.set_control_predecessors(copy, needed)
    last = [c for c in copies if c.opcode != "constant" and members.isdisjoint(edit.users(c))]
    for following in edit.successors(before):
        edit.set_control_predecessors(following, (*following.control_predecessors, *last))


def outline(
    module: Module,
    edit: Editor,
    members: Collection[Instruction],
    opcode: str,
    attributes: Mapping[str, AttributeValue],
    *,
    callee: str = "calls",
    name: str | None = None,
    body_name: str = "outlined",
    names: Names | None = None,
) -> Instruction:
    """Move instructions into a new computation and call it where the last of them stood.

    Args:
        module: that the computation is part of.
        edit: of the computation that all members are part of.
        members: at least one of them is read from outside; no way leads out of them and back in.
        opcode: of the instruction that calls them, `call` or `fusion`.
        attributes: of the caller.
        callee: the attribute that names the new computation.
        name: of the caller; that of the last member when None.
        body_name: the name of the new computation.
        names: of the module's computations.

    Returns:
        the caller. It gives the one result that is read outside, or a tuple of them in order.
    """
    inside = operands_first(members)
    results = result_members(edit, inside)
    body, inputs = make_body(inside, results, body_name, edit.computation)
    add_computation(module, body, names)
    caller = Instruction(
        name or inside[-1].name, opcode, body.root.shape, tuple(inputs), {**attributes, callee: body},
        results[-1].metadata,
    )  # fmt: skip
    caller.control_predecessors = _waits_for(inside)
    edit.add(caller, before=inside[-1])
    _replace_members(edit, inside, results, caller)
    return caller


def operands_first(members: Iterable[Instruction]) -> list[Instruction]:
    """`members`, each after those that it needs."""
    inside = dict.fromkeys(members)
    ordered: dict[Instruction, None] = {}
    for member in inside:
        stack = [member]
        while stack:
            waiting = [n for n in predecessors(stack[-1]) if n in inside and n not in ordered]
            if waiting:
                stack += waiting
            else:
                ordered[stack.pop()] = None
    return list(ordered)


def result_members(edit: Editor, members: Sequence[Instruction]) -> list[Instruction]:
    """Those that something outside of `members` reads."""
    inside = set(members)
    return [i for i in members if i is edit.computation.root or any(u not in inside for u in edit.users(i))]


def make_body(
    members: Sequence[Instruction], results: Sequence[Instruction], name: str, home: Computation
) -> tuple[Computation, list[Instruction]]:
    """A computation of copies of `members` that returns `results`, several as a tuple.

    Args:
        members: operands first, no parameters.
        results: members, or something else of the same computation.
        name: of the computation.
        home: where the members come from.

    Returns:
        the computation, and the instructions that its parameters stand for.
    """
    inside = set(members)
    read = (o for i in members for o in i.operands)
    inputs = list(dict.fromkeys(o for o in (*read, *results) if o not in inside))
    own = Names(i.name for i in members)
    parameters = [
        Instruction(own.fresh(f"param_{n}"), "parameter", given.shape, parameter_number=n)
        for n, given in enumerate(inputs)
    ]
    cloner = Cloner(dict(zip(inputs, parameters)))
    body = [*parameters, *map(cloner.instruction, members)]
    for member in members:
        needed = (p for p in member.control_predecessors if p in inside)
        cloner.instructions[member].control_predecessors = cloner.all_of(needed)
    root = cloner.instructions[results[0]]
    if len(results) > 1:
        parts = cloner.all_of(results)
        shape: Shape = TupleShape(tuple(p.shape for p in parts))
        root = Instruction(own.fresh("tuple"), "tuple", shape, parts)
        body.append(root)
    return Computation(name, body, root, home.execution_thread), inputs


def _waits_for(members: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """What runs before the members by control dependencies."""
    inside = set(members)
    needed = (p for i in members for p in i.control_predecessors if p not in inside)
    return tuple(dict.fromkeys(needed))


def _replace_members(
    edit: Editor, members: Sequence[Instruction], results: Sequence[Instruction], caller: Instruction
) -> None:
    """Let readers and control successors turn to the caller, then take the members away."""
    inside = set(members)
    outer = {s for i in members for s in edit.successors(i)} - inside
    for following in outer:
        kept = (p for p in following.control_predecessors if p not in inside)
        edit.set_control_predecessors(following, (*kept, caller))
    for member in members:
        edit.set_control_predecessors(member, ())
    for number, result in enumerate(results):
        value = caller
        if len(results) > 1:
            part = Instruction(
                result.name, "get-tuple-element", result.shape, (caller,), {"index": number}, result.metadata
            )
            value = edit.add(part, before=result)
        edit.replace_uses(result, value, but=inside)
    for member in reversed(members):
        edit.remove(member)
