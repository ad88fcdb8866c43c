"""Bodies of calls put in their place, and instructions cut out into bodies or modules of their own.

cut = extract(module, cone([result]), [result])   # result and all that it needs, down to the parameters
cut.module, cut.inputs                            # inputs[i] is what parameter i stands for
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hlotool.ir.attributes import AttributeValue
from hlotool.ir.edit import Editor, Names, add_computation
from hlotool.ir.edit_programs import Cloner, clone_module, own_callees
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import Shape, TupleShape
from hlotool.ir.walk import predecessors, reachable


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


#: What of the header also holds for a part of the program.
_INHERITED = ("is_scheduled", "replica_count", "num_partitions", "frontend_attributes")


@dataclass(frozen=True, slots=True)
class Extraction:
    """A module cut out of another one.

    Attributes:
        module: it shares no instruction with the original.
        inputs: instructions of the original; parameter i of the module stands for `inputs[i]`.
        results: instructions of the original whose values the module returns; several as a tuple.
        copies: the copy of each instruction of the original that the entry holds.
    """

    module: Module
    inputs: tuple[Instruction, ...]
    results: tuple[Instruction, ...]
    copies: Mapping[Instruction, Instruction]


def cone(
    results: Sequence[Instruction],
    boundary: Collection[Instruction] = (),
    height: int | None = None,
) -> list[Instruction]:
    """`results` and what they need, operands first.

    Args:
        results: of one computation.
        boundary: instructions that stay outside, with all that only they need.
        height: so many steps back from the results; None goes back to the parameters. Constants and iotas
            that are operands of what is inside come along all the same.
    """
    depth = dict.fromkeys(results, 0)
    queue = list(depth)
    for instruction in queue:
        for operand in instruction.operands:
            near = height is None or depth[instruction] < height or operand.opcode in ("constant", "iota")
            if near and operand not in depth and operand not in boundary and operand.opcode != "parameter":
                depth[operand] = depth[instruction] + 1
                queue.append(operand)
    return operands_first(queue)


def extract(
    module: Module, members: Sequence[Instruction], results: Sequence[Instruction], name: str | None = None
) -> Extraction:
    """Copy `members` of one computation into a module of their own that returns `results`.

    What the members read from outside becomes a parameter. Control dependencies among them stay, and so does
    the order of a scheduled program; layouts of parameters and results are those of the instructions.

    Args:
        module: they are part of; its name, devices and source positions are handed on.
        members: operands first, no parameters; see `cone`.
        results: members, or something else of their computation, which is then handed through.
        name: of the new module.

    Raises:
        ValueError: they are not all in one computation of the module.
    """
    home = _home(module, [*members, *results])
    body, inputs = make_body(members, results, module.entry.name, home)
    body.execution_thread = "main"
    attributes: dict[str, AttributeValue] = {k: v for k, v in module.attributes.items() if k in _INHERITED}
    shallow = Module(name or module.name, reachable(body), body, attributes, module.stack_frames, module.path)
    shallow.has_stand_ins = module.has_stand_ins
    copies = dict(zip(members, (i for i in body.instructions if i.opcode != "parameter")))
    clone = clone_module(shallow)
    return Extraction(
        clone.module,
        tuple(inputs),
        tuple(results),
        {original: clone.instructions[copy] for original, copy in copies.items()},
    )


def part_for(module: Module, result: Instruction) -> Module:
    """What a program does for one value of its entry, which is what it returns.

    It takes all arguments, and shares its instructions and their computations with the program.
    """
    needed = set(cone([result]))
    entry = module.entry
    kept = [i for i in entry.instructions if i in needed or i.opcode == "parameter"]
    entry = replace(entry, instructions=kept, root=result)
    attributes = {k: v for k, v in module.attributes.items() if k in _INHERITED}
    return replace(module, computations=reachable(entry), entry=entry, attributes=attributes)


def _home(module: Module, members: Sequence[Instruction]) -> Computation:
    for computation in module.computations:
        if any(i is members[0] for i in computation.instructions):
            inside = set(computation.instructions)
            strangers = [m.name for m in members if m not in inside]
            if strangers:
                raise ValueError(f"{strangers[0]} is not in {computation.name} like {members[0].name}")
            return computation
    raise ValueError(f"{members[0].name} is not in {module.name}")
