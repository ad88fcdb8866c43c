"""Orders of instructions: one with less alive at once, and ones that overwrite what is still needed.

The order of the text is that of its printer: of a trace, or of a compiler that counts other memory
than the interpreter's. A lighter order gives the same bits: instructions move within their computation
only, behind everything that they read or have to wait for; what acts on the outside, or draws from a
hidden state, keeps its order.

Past copy insertion an operation that works in place writes where its operand lies: a dynamic-update-slice
or a scatter outside of fusions, a loop, for what its body changes of its state, and a custom call, for what
it says that it aliases. A later read of the operand reads what was written. An interpreter computes
values and never sees it.

XLA: hlo_dataflow_analysis.cc (GetInPlaceInputOutputPairs), copy_insertion.cc.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hlotool.facts.buffers import Sizes, handed_on
from hlotool.facts.memory import INTERPRETER, Machine, memory_of, parameter_aliases
from hlotool.ir.attributes import OperandAlias
from hlotool.ir.edit import copied
from hlotool.ir.edit_programs import clone_module
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ShapeIndex, leaves
from hlotool.ir.walk import Context, context_of_callees, contexts, has_side_effect, reachable, users

#: Opcodes whose result is the memory of their operands, for the choice of what comes next.
_SHOWING: Final = opcodes_with(Trait.FORWARDS, Trait.SAME_ORDER, Class.TUPLE) | INTERPRETER.views
#: Every step looks at all instructions that may come next; a larger computation keeps its order.
_MOST: Final = 20_000
#: A smaller value is held, though it could be made again from what is alive anyway.
_LEAST: Final = 1 << 20


def lightened(module: Module, machine: Machine = INTERPRETER) -> Module:
    """The program in an order that needs less memory, and with conversions made again instead of held.

    Args:
        module: stays as it is.
        machine: whose memory counts.

    Returns:
        a copy with another order; `module` itself where none was found to be better.
    """
    best, least = module, memory_of(module, machine).peak
    for change in (_reorder, _repeat_conversions):
        tried = clone_module(best).module
        change(tried)
        peak = memory_of(tried, machine).peak
        if peak < least:
            best, least = tried, peak
    return best


def _reorder(module: Module) -> None:
    sizes = Sizes()
    for computation in _stepwise(module):
        if 2 < len(computation.instructions) <= _MOST:
            computation.instructions = _ordered(computation, sizes)


def _stepwise(module: Module) -> Iterator[Computation]:
    """The computations whose values lie in memory: the entry, and what it calls as control flow."""
    found = {module.entry}
    for computation in reachable(module.entry):
        for instruction in computation.instructions:
            if context_of_callees(instruction) is Context.CONTROL_FLOW:
                found.update(instruction.called)
    yield from (one for one in module.computations if one in found)


def _ordered(computation: Computation, sizes: Sizes) -> list[Instruction]:
    """Of what may come next, what leaves the least memory taken; among equals the order of the text."""
    waits = _waits(computation.instructions)
    after: dict[Instruction, list[Instruction]] = {}
    missing = {}
    for instruction, first in waits.items():
        missing[instruction] = len(first)
        for one in first:
            after.setdefault(one, []).append(instruction)
    lives = _Lives(computation, sizes)
    number = {instruction: n for n, instruction in enumerate(computation.instructions)}
    ready = {i for i, count in missing.items() if not count}
    order = []
    while ready:
        chosen = min(ready, key=lambda i: (lives.growth(i), number[i]))
        ready.remove(chosen)
        order.append(chosen)
        lives.execute(chosen)
        for later in after.get(chosen, ()):
            missing[later] -= 1
            if not missing[later]:
                ready.add(later)
    return order


def _waits(instructions: Sequence[Instruction]) -> Mapping[Instruction, set[Instruction]]:
    """What each instruction must come after."""
    waits: dict[Instruction, set[Instruction]] = {}
    acted: Instruction | None = None
    for instruction in instructions:
        first = {*instruction.operands, *instruction.control_predecessors}
        if has_side_effect(instruction):
            if acted is not None:
                first.add(acted)
            acted = instruction
        waits[instruction] = first
    return waits


class _Lives:
    """How many readers the values of a computation still have."""

    def __init__(self, computation: Computation, sizes: Sizes) -> None:
        self._shown: dict[Instruction, tuple[Instruction, ...]] = {}
        self._bytes: dict[Instruction, int] = {}
        self._readers: dict[Instruction, int] = {}
        for instruction in computation.instructions:
            shown = tuple(dict.fromkeys(one for o in instruction.operands for one in self._shown[o]))
            for one in shown:
                self._readers[one] += 1
            if instruction.opcode in _SHOWING:
                self._shown[instruction] = shown
                self._bytes[instruction] = 0
                continue
            held = instruction.opcode not in ("parameter", "constant")
            self._shown[instruction] = (instruction,)
            self._bytes[instruction] = sum(n for _, n, _ in sizes.of_leaves(instruction.shape)) if held else 0
            self._readers[instruction] = 0
        # The result outlives everything.
        for one in self._shown[computation.root]:
            self._readers[one] += 1
        self._reads = {
            i: tuple(dict.fromkeys(one for o in i.operands for one in self._shown[o]))
            for i in computation.instructions
        }

    def growth(self, instruction: Instruction) -> int:
        """Bytes that are taken after it and were not before."""
        freed = sum(self._bytes[one] for one in self._reads[instruction] if self._readers[one] == 1)
        return self._bytes[instruction] - freed

    def execute(self, instruction: Instruction) -> None:
        """It comes next."""
        for one in self._reads[instruction]:
            self._readers[one] -= 1


def _repeat_conversions(module: Module) -> None:
    """Convert arguments and constants, which are alive anyway, anew for every reader."""
    for computation in _stepwise(module):
        readers = users(computation)
        repeated: dict[Instruction, list[Instruction]] = {}
        for instruction in computation.instructions:
            if (
                _is_cheap(instruction)
                and len(readers[instruction]) > 1
                and instruction is not computation.root
            ):
                for reader in readers[instruction][1:]:
                    repeated.setdefault(reader, []).append(instruction)
        if repeated:
            computation.instructions = list(_with_copies(computation.instructions, repeated))


def _is_cheap(instruction: Instruction) -> bool:
    """A conversion of what lives to the end: made in one pass, and alive where it is read."""
    if instruction.opcode != "convert" or not instruction.operands:
        return False
    source = instruction.operands[0]
    while source.opcode in _SHOWING and len(source.operands) == 1:
        source = source.operands[0]
    return source.opcode in ("parameter", "constant") and instruction.array_shape.byte_size >= _LEAST


def _with_copies(
    instructions: Sequence[Instruction], repeated: Mapping[Instruction, Sequence[Instruction]]
) -> Iterator[Instruction]:
    """The instructions, each of the readers right behind conversions of its own."""
    taken = {instruction.name for instruction in instructions}
    for instruction in instructions:
        for old in repeated.get(instruction, ()):
            name = _free_name(f"{old.name}.again", taken)
            again = replace(copied(old), name=name)
            yield again
            instruction.operands = tuple(again if o is old else o for o in instruction.operands)
        yield instruction


def _free_name(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}{number}"
    taken.add(name)
    return name


_UPDATES = frozenset({"dynamic-update-slice", "scatter"})


@dataclass(frozen=True, slots=True)
class MissingCopy:
    """A value that is overwritten and needed.

    Attributes:
        writer: works in place.
        value: what made the value that it overwrites.
        reader: reads it all the same, later; the writer itself where it overwrites the value twice; None
            where the value is a constant, or an argument that the caller keeps.
    """

    writer: Instruction
    value: Instruction
    reader: Instruction | None

    def __str__(self) -> str:
        if self.reader is None:
            kept = "a constant" if self.value.opcode == "constant" else "an argument that is not donated"
        elif self.reader is self.writer:
            kept = "which it has twice"
        else:
            kept = f"which {self.reader.opcode} %{self.reader.name} reads later"
        writer = f"{self.writer.opcode} %{self.writer.name}"
        return f"{writer} overwrites %{self.value.name}, {kept}: a copy is missing"


@dataclass(eq=False, slots=True)
class _Buffer:
    """What lies at one place, until something is written there."""

    made_by: Instruction
    is_kept: bool = False
    written_by: Instruction | None = None


def missing_copies(module: Module) -> Iterator[MissingCopy]:
    """The values of a scheduled program that are overwritten and needed; nothing of other programs."""
    if not module.is_scheduled:
        return
    donated = {(alias.parameter, alias.parameter_index) for alias in parameter_aliases(module)}
    for computation, found in contexts(module).items():
        if Context.CONTROL_FLOW in found:
            yield from _in_sequence(computation, donated if computation is module.entry else None)


def _in_sequence(
    computation: Computation, donated: Collection[tuple[int, ShapeIndex]] | None
) -> Iterator[MissingCopy]:
    """Those of one computation, whose instructions run in the order of the text.

    Args:
        computation: in question.
        donated: of the entry, the parts of arguments that may be overwritten; None elsewhere: what a caller
            hands on is judged there.
    """
    values: dict[Instruction, list[_Buffer]] = {}
    for instruction in computation.instructions:
        handed = _shared(instruction, values)
        changed = _written(instruction, values)
        if not handed or changed:
            yield from _read(instruction, values)
        for place in changed.values():
            buffer = _at(place, values)
            if buffer.is_kept:
                yield MissingCopy(instruction, buffer.made_by, None)
            elif buffer.written_by is None:
                buffer.written_by = instruction
                # An update of an array with itself changes nothing.
                if instruction.opcode not in _UPDATES and _times(buffer, instruction, values) > 1:
                    yield MissingCopy(instruction, buffer.made_by, instruction)
        values[instruction] = [
            _Buffer(instruction, _is_kept(instruction, index, donated))
            if index in changed or index not in handed
            else handed[index]
            for index, _ in leaves(instruction.shape)
        ]
    for buffer in values[computation.root]:
        if buffer.written_by is not None:
            yield MissingCopy(buffer.written_by, buffer.made_by, computation.root)


def _shared(
    instruction: Instruction, values: Mapping[Instruction, Sequence[_Buffer]]
) -> dict[ShapeIndex, _Buffer]:
    """Which leaves of the result are buffers of operands: a reshape that layouts leave moves its elements."""
    return {} if instruction.opcode == "reshape" else handed_on(instruction, values)


def _is_kept(
    made_by: Instruction, index: ShapeIndex, donated: Collection[tuple[int, ShapeIndex]] | None
) -> bool:
    """Whether nothing may be written there."""
    if made_by.opcode == "parameter" and donated is not None:
        return (made_by.parameter_number or 0, index) not in donated
    return made_by.opcode == "constant"


def _read(reader: Instruction, values: Mapping[Instruction, Sequence[_Buffer]]) -> Iterator[MissingCopy]:
    seen = {id(b): b for operand in reader.operands for b in values[operand] if b.written_by is not None}
    for buffer in seen.values():
        assert buffer.written_by is not None
        yield MissingCopy(buffer.written_by, buffer.made_by, reader)


def _times(buffer: _Buffer, reader: Instruction, values: Mapping[Instruction, Sequence[_Buffer]]) -> int:
    return sum(other is buffer for operand in reader.operands for other in values[operand])


#: An operand, and the leaf of it.
_Place = tuple[Instruction, ShapeIndex]


def _at(place: _Place, values: Mapping[Instruction, Sequence[_Buffer]]) -> _Buffer:
    operand, index = place
    return next(b for (at, _), b in zip(leaves(operand.shape), values[operand]) if at == index)


def _written(
    instruction: Instruction, values: Mapping[Instruction, Sequence[_Buffer]]
) -> dict[ShapeIndex, _Place]:
    """By leaf of the result what an operation overwrites."""
    if instruction.opcode in _UPDATES and isinstance(instruction.shape, ArrayShape):
        return {(): (instruction.operands[0], ())}
    if instruction.opcode == "fusion":
        return dict(_written_by_fusion(instruction))
    if instruction.opcode == "while":
        [state] = instruction.operands
        return {index: (state, index) for index in _changed_state(instruction, values[state])}
    if instruction.opcode == "custom-call":
        aliases = instruction.listed("output_to_operand_aliasing", OperandAlias, ())
        return {a.output_index: (instruction.operands[a.operand], a.operand_index) for a in aliases}
    return {}


def _written_by_fusion(fusion: Instruction) -> Iterator[tuple[ShapeIndex, _Place]]:
    """The results that are updates of a parameter, and the operand that they overwrite.

    XLA: hlo_dataflow_analysis.cc (GetFusionInstructionInPlaceInputOutputPairs).
    """
    root = next(fusion.called).root
    results = enumerate(root.operands) if root.opcode == "tuple" else [(None, root)]
    for number, result in results:
        if result.opcode in _UPDATES and isinstance(result.shape, ArrayShape):
            source = result.operands[0]
            source = source.operands[0] if source.opcode == "bitcast" else source
            if source.opcode == "parameter" and isinstance(source.shape, ArrayShape):
                operand = fusion.operands[source.parameter_number or 0]
                yield (() if number is None else (number,)), (operand, ())


def _changed_state(loop: Instruction, state: Sequence[_Buffer]) -> Iterator[ShapeIndex]:
    """The arrays of a loop's state that its body changes.

    One that is handed on where it was stays, and so does one for which another comes that is the same buffer.

    Args:
        loop: in question.
        state: what it begins with, leaf by leaf.
    """
    body = loop.computation("body")
    [parameter] = body.parameters
    values: dict[Instruction, list[ShapeIndex | None]] = {}
    for instruction in body.instructions:
        handed = handed_on(instruction, values)
        places = [index for index, _ in leaves(instruction.shape)]
        values[instruction] = [*places] if instruction is parameter else [handed.get(i) for i in places]
    places = [index for index, _ in leaves(loop.shape)]
    buffers = dict(zip(places, state))
    comes_from = dict(zip(places, values[body.root]))
    stays = {i for i, source in comes_from.items() if source is not None and buffers[source] is buffers[i]}
    while gone := {index for index in stays if comes_from[index] not in stays}:
        stays -= gone
    for index, shape in leaves(loop.shape):
        if index not in stays and isinstance(shape, ArrayShape):
            yield index
