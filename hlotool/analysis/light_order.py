"""Another order of a program's instructions in which less is alive at once, with the same bits as a result.

The order of the text is that of whoever printed it: of a trace, or of a compiler that counts other memory
than the interpreter's. Instructions move within their computation only, behind everything that they read or
are told to wait for; what acts on the outside, or draws from a hidden state, keeps its order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hlotool.analysis.memory import INTERPRETER, Machine, memory_of
from hlotool.analysis.sizes import Sizes
from hlotool.ir.edit import copied
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.effects import has_side_effect
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.walk import Context, context_of_callees, reachable, users

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
            self._bytes[instruction] = sum(n for _, n in sizes.of_leaves(instruction.shape)) if held else 0
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
