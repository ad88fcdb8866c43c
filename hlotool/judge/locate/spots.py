"""A spot where two programs part, cut out: as small programs, alone or with what stands around it.

Cut out alone, both programs take the same arguments, the values that occurred. The one computes what the
right program computed at this spot, the other one what the wrong program did.

The values of one iteration do not show what a pass does to a loop, nor two parameters what it does to the
tuple that hands them on. So the instructions of the entry that hold the spot are cut out whole, too, with
loops, calls and fusions; of the right program with one level of producers more, for a pass matches
patterns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from hlotool.errors import Unsupported
from hlotool.inputs.frames import Node, calls_around, made, operand_nodes, resolve, value_in
from hlotool.inputs.recorded_values import Sample
from hlotool.ir.attributes import AttributeValue
from hlotool.ir.edit import Names, copied
from hlotool.ir.edit_calls import Extraction, extract, operands_first
from hlotool.ir.edit_programs import clone_module
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ArrayShape, Shape, ShapeIndex, leaves, strip_layouts, subshape
from hlotool.ir.walk import reachable
from hlotool.judge.locate.locator import Found
from hlotool.judge.locate.pairing import Pairing
from hlotool.judge.locate.recording import Execution


@dataclass(frozen=True, slots=True)
class Spot:
    """Two small programs that should compute the same.

    Attributes:
        before: the right one.
        after: the wrong one.
        arguments: values that occurred, for both; of programs for several devices a tuple of them per device.
        copies: how many devices have values of their own.
    """

    before: Module
    after: Module
    arguments: tuple[Any, ...]
    copies: int = 1


def cut_out(found: Found) -> Spot | None:
    """The operations to blame as a program of their own, and what should stand in their place as another.

    None where one program is for several devices and the other is not, or where some values were not kept.
    """
    blame = found.blame
    values, left, right = _parameters(found)
    copies, others = (len(each.entry.trace.stores) for each in (found.tested, found.reference))
    if copies != others or any(value is None for value in values):
        return None
    arguments = values if copies == 1 else tuple(tuple(v[device] for v in values) for device in range(copies))
    return Spot(
        _module(found.reference, "before", blame.before, blame.members_before, left, copies),
        _module(found.tested, "after", blame.after, blame.members_after, right, copies),
        arguments,
        copies,
    )


#: The header of a program that says for how many devices it is.
_DEVICES = ("replica_count", "num_partitions")

#: The parameters of one of the two programs: a shape each, and which node it stands for.
_Slots = list[tuple[Shape, Node | None]]


def _parameters(found: Found) -> tuple[tuple[Any, ...], _Slots, _Slots]:
    """The values of the common parameters, and what they are in each program."""
    blame = found.blame
    used_before = {blame.before, *(o for n in blame.members_before for o in operand_nodes(n))}
    used_after = {blame.after, *(o for n in blame.members_after for o in operand_nodes(n))}
    values: list[Any] = []
    left: _Slots = []
    right: _Slots = []
    for one, other in blame.inputs:
        if one not in used_before and other not in used_after:
            continue
        value = next(found.value(node) for node in (one, other) if node is not None)
        shapes = [subshape(node.instruction.shape, node.index) for node in (one, other) if node is not None]
        values.append(value)
        left.append((shapes[0], one))
        right.append((shapes[-1], other))
    return tuple(values), left, right


def _module(
    origin: Execution, name: str, root: Node, members: Sequence[Node], slots: _Slots, copies: int
) -> Module:
    """A module that computes `root` from what the slots stand for, on so many devices."""
    names = Names(())
    made: dict[Node, Instruction] = {}
    instructions: list[Instruction] = []
    for number, (shape, node) in enumerate(slots):
        wanted = node.instruction.name if node is not None else "unused"
        parameter = Instruction(names.fresh(wanted), "parameter", shape, parameter_number=number)
        instructions.append(parameter)
        if node is not None:
            made[node] = parameter
    for node in members:
        if node in made:
            continue
        whole = Node(node.frame, node.instruction)
        if whole not in made:
            copy = copied(node.instruction, _operands(whole, made, instructions, names))
            copy.name = names.fresh(copy.name)
            instructions.append(copy)
            made[whole] = copy
        made[node] = _part(made[whole], node.index, instructions, names)
    body = Computation("main", instructions, made[root])
    program = origin.original
    header = _DEVICES if copies > 1 else ()
    attributes: dict[str, AttributeValue] = {k: v for k, v in program.attributes.items() if k in header}
    module = Module(f"{program.name}_{name}", reachable(body), body, attributes, program.stack_frames)
    module.has_stand_ins = program.has_stand_ins
    return clone_module(module).module


def _operands(
    node: Node, made: dict[Node, Instruction], instructions: list[Instruction], names: Names
) -> list[Instruction]:
    """The copies of what an operation reads; tuples are put together again."""
    found: list[Instruction] = []
    for operand in node.instruction.operands:
        if isinstance(operand.shape, ArrayShape):
            found.append(_matching(made[resolve(node.frame, operand)], operand.shape, instructions, names))
            continue
        parts = [made[resolve(node.frame, operand, index)] for index, _ in leaves(operand.shape)]
        whole = Instruction(names.fresh("tuple"), "tuple", operand.shape, tuple(parts))
        instructions.append(whole)
        found.append(whole)
    return found


def _matching(
    given: Instruction, wanted: ArrayShape, instructions: list[Instruction], names: Names
) -> Instruction:
    """`given`, copied to another layout where a copy that was looked through did that."""
    layout = given.shape.layout if isinstance(given.shape, ArrayShape) else None
    if wanted.layout is None or layout == wanted.layout:
        return given
    copy = Instruction(names.fresh("copy"), "copy", wanted, (given,))
    instructions.append(copy)
    return copy


def _part(
    whole: Instruction, index: ShapeIndex, instructions: list[Instruction], names: Names
) -> Instruction:
    for i in index:
        shape = subshape(whole.shape, (i,))
        whole = Instruction(names.fresh("part"), "get-tuple-element", shape, (whole,), {"index": i})
        instructions.append(whole)
    return whole


#: They only hand values on: a pass that looks for what made a value looks through them.
_PLUMBING = opcodes_with(Class.TUPLE, Trait.SAME_ORDER) - {"reshape"} | {"opt-barrier"}

#: Levels of producers that come along in the right program.
_LEVELS = 1

#: Bits, element type and dimensions of a value.
_Key: TypeAlias = tuple[bytes, tuple[int, ...]]

#: A parameter of both programs: what it stands for in each, None where one has no use for it.
_Slot: TypeAlias = tuple[Instruction | None, Instruction | None]


def with_surroundings(found: Found, outputs: Sequence[ShapeIndex]) -> Spot | None:
    """The instructions of the entry around a spot, as two programs that take the same arguments.

    Args:
        found: the spot.
        outputs: shape indices of the results that differ.

    Returns:
        None where nothing in the two entries is known to stand for each other and to differ, where a program
        is for several devices, or where some values were not kept.
    """
    right, wrong = found.reference, found.tested
    if len(right.entry.trace.stores) > 1 or len(wrong.entry.trace.stores) > 1:
        return None
    spot = _spot(found)
    ends = next(_ends(found, outputs, spot), None)
    if ends is None:
        return None
    own = _with_producers(ends[0], spot)
    matches = _Matches(found.pairing, own)
    inside = _made_here(ends[1], matches)
    before = extract(right.module, operands_first(own), [ends[0]], f"{right.original.name}_before")
    after = extract(wrong.module, operands_first(inside), [ends[1]], f"{wrong.original.name}_after")
    slots = _slots(before, after, matches)
    try:
        values = [_value(found, one, other) for one, other in slots]
    except Unsupported:
        return None
    _arrange(before, slots)
    _arrange(after, [(other, one) for one, other in slots])
    return Spot(before.module, after.module, tuple(values))


def _spot(found: Found) -> set[Instruction]:
    """The instructions of the right entry that hold what is to blame; none where only wiring is wrong."""
    blame = found.blame
    if blame.wiring is not None:
        return set()
    return {i for i in map(_holder, (*blame.members_before, blame.before)) if i.opcode != "parameter"}


def _holder(node: Node) -> Instruction:
    """The instruction of the entry that a node is, or is inside of."""
    around = calls_around(node.frame)
    return around[0][1] if around else node.instruction


def _ends(
    found: Found, outputs: Sequence[ShapeIndex], spot: set[Instruction]
) -> Iterator[tuple[Instruction, Instruction]]:
    """Instructions of the two entries that stand for each other and differ; the nearest to the spot first."""
    entries = found.pairing.before, found.pairing.after
    one, other = _holder(found.blame.before), _holder(found.place)
    pairs = [(one, other)]
    pairs += [(i, other) for i in entries[0].computation.instructions if i.name == other.name]
    pairs += [(one, i) for i in entries[1].computation.instructions if i.name == one.name]
    roots = [frame.computation.root for frame in entries]
    pairs += [(_surroundings_part(roots[0], index), _surroundings_part(roots[1], index)) for index in outputs]
    for left, right in pairs:
        is_computed = left.opcode != "parameter" and right.opcode != "parameter"
        if is_computed and spot <= _needed(left).keys() and _differ(found.pairing, left, right):
            yield left, right


def _surroundings_part(root: Instruction, index: ShapeIndex) -> Instruction:
    """What the entry returns at `index`, as far as tuples show it."""
    for i in index:
        if root.opcode != "tuple":
            break
        root = root.operands[i]
    return root


def _differ(pairing: Pairing, left: Instruction, right: Instruction) -> bool:
    """Whether two instructions of the entries have values of the same shape that differ."""
    shapes = [list(leaves(strip_layouts(i.shape))) for i in (left, right)]
    if shapes[0] != shapes[1]:
        return False
    return any(
        pairing.differ(made(Node(pairing.before, left, index)), made(Node(pairing.after, right, index)))
        for index, shape in shapes[0]
        if isinstance(shape, ArrayShape)
    )


def _needed(end: Instruction) -> dict[Instruction, None]:
    """An instruction and all that it is computed from, in an order that only the program decides about."""
    found = {end: None}
    stack = [end]
    while stack:
        fresh = dict.fromkeys(o for o in stack.pop().operands if o not in found)
        found.update(fresh)
        stack += fresh
    return found


def _with_producers(end: Instruction, spot: Collection[Instruction]) -> list[Instruction]:
    """What lies between the spot and `end`, with its producers and all that is made of constants only."""
    # Sets of instructions are in the order of their places in memory: the same search would find other texts.
    inside: dict[Instruction, None] = {}
    fixed: set[Instruction] = set()
    for instruction in operands_first(_needed(end)):
        operands = instruction.operands
        if instruction in spot or instruction is end or any(o in inside for o in operands):
            inside[instruction] = None
        if instruction.opcode in ("constant", "iota") or (operands and all(o in fixed for o in operands)):
            fixed.add(instruction)
    depth = {i: 0 for i in inside if i.opcode != "parameter"}
    queue = list(depth)
    for instruction in queue:
        for operand in instruction.operands:
            step = operand.opcode not in _PLUMBING and operand not in fixed
            level = depth[instruction] + step
            if level <= _LEVELS and operand.opcode != "parameter" and level < depth.get(operand, level + 1):
                depth[operand] = level
                queue.append(operand)
    return list(depth)


class _Matches:
    """Which instructions of the right entry have the values of those of the wrong one.

    Args:
        pairing: of the two executions.
        own: instructions of the right entry that are computed, and stand for no argument.
    """

    def __init__(self, pairing: Pairing, own: Collection[Instruction]) -> None:
        self._pairing = pairing
        self._by_key: dict[_Key, list[Instruction]] = {}
        inside = set(own)
        entry = pairing.before.computation
        self._parameters = {p.parameter_number: p for p in entry.parameters}
        for instruction in entry.instructions:
            key = _key(made(Node(pairing.before, instruction))) if instruction not in inside else None
            if key is not None and isinstance(instruction.shape, ArrayShape):
                self._by_key.setdefault(key, []).append(instruction)

    def of(self, instruction: Instruction) -> Instruction | None:
        """The one that an instruction of the wrong entry stands for; by chance equal ones do not count."""
        if instruction.opcode == "parameter":
            return self._parameters.get(instruction.parameter_number)
        if not isinstance(instruction.shape, ArrayShape):
            return None
        node = made(Node(self._pairing.after, instruction))
        key = _key(node)
        same = self._by_key.get(key, []) if key is not None else []
        named = [i for i in same if i.name == instruction.name]
        return next(iter(named or (same if self._pairing.is_telling(node) else [])), None)


def _key(node: Node) -> _Key | None:
    kept = node.kept
    return (kept.digest, kept.dims) if isinstance(kept, Sample) else None


def _made_here(end: Instruction, matches: _Matches) -> list[Instruction]:
    """What the wrong program makes `end` of, up to values that are arguments of the right one."""
    inside = {end: None}
    queue = [end]
    for instruction in queue:
        for operand in instruction.operands:
            is_free = operand.opcode in ("constant", "iota")
            is_given = operand.opcode == "parameter" or (not is_free and matches.of(operand) is not None)
            if operand not in inside and not is_given:
                inside[operand] = None
                queue.append(operand)
    return list(inside)


def _slots(before: Extraction, after: Extraction, matches: _Matches) -> list[_Slot]:
    """The parameters of both programs, those of the right one first."""
    wanted: dict[Instruction, Instruction] = {}
    others: list[Instruction] = []
    for given in after.inputs:
        match = matches.of(given)
        if match in before.inputs and match not in wanted:
            wanted[match] = given
        else:
            others.append(given)
    return [*((one, wanted.get(one)) for one in before.inputs), *((None, other) for other in others)]


def _value(found: Found, one: Instruction | None, other: Instruction | None) -> Any:
    """What stands for a parameter: an instruction of the right program, or else one of the wrong one."""
    right, wrong = found.on_numbers
    if one is not None:
        return value_in(right.entry, one)
    assert other is not None
    return value_in(wrong.entry, other)


def _arrange(cut: Extraction, slots: Sequence[_Slot]) -> None:
    """Give a program the parameters in `slots`, by number, each first with what it stands for there."""
    entry = cut.module.entry
    known = dict(zip(cut.inputs, entry.parameters))
    rest = [i for i in entry.instructions if i.opcode != "parameter"]
    names = Names(i.name for i in rest)
    parameters: list[Instruction] = []
    for number, (own, other) in enumerate(slots):
        origin = own or other
        assert origin is not None
        parameter = known[own] if own is not None else Instruction("", "parameter", origin.shape)
        parameter.name = names.fresh(origin.name)
        parameter.parameter_number = number
        parameters.append(parameter)
    entry.instructions = [*parameters, *rest]
