"""A spot where two programs part, with what stands around it: what a pass has to see to go wrong there.

The values of one iteration do not tell what a pass does to a loop, nor two parameters what it does to the
tuple that hands them on. So the instructions of the entry that hold the spot are cut out whole, with loops,
calls and fusions; of the right program with one level of producers more, for a pass matches patterns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, TypeAlias

from hlotool.errors import Unsupported
from hlotool.ir.edit import Names
from hlotool.ir.edit_calls import operands_first
from hlotool.ir.edit_extract import Extraction, extract
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ShapeIndex, leaves, strip_layouts
from hlotool.locate.cut import Spot
from hlotool.locate.frames import Node, calls_around, made, value_in
from hlotool.locate.locator import Found
from hlotool.locate.pairing import Pairing
from hlotool.locate.store import Sample

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
    pairs += [(_part(roots[0], index), _part(roots[1], index)) for index in outputs]
    for left, right in pairs:
        is_computed = left.opcode != "parameter" and right.opcode != "parameter"
        if is_computed and spot <= _needed(left).keys() and _differ(found.pairing, left, right):
            yield left, right


def _part(root: Instruction, index: ShapeIndex) -> Instruction:
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
