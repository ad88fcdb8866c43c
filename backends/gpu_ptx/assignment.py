"""Where values lie in the memory of a GPU: `…-buffer-assignment.txt`.

allocation 3: size 4, maybe-live-out:
 value: <13 loop_add_fusion @0> (size=4,offset=0): s32[]

Values have the name of what defines them, those that meet in loops and branches (`phi`) included; what
only hands on a value (tuples and their elements, bitcasts, parameters of calls) has none of its own, and is
looked through here. XLA: xla/service/buffer_assignment.cc, hlo_value.cc.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hlotool.errors import DumpError, Unsupported
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ShapeIndex, leaves
from hlotool.ir.walk import async_start, branches, call_sites, through_tuple


@dataclass(frozen=True, slots=True)
class Allocation:
    """A piece of memory.

    Attributes:
        number: as the text numbers it.
        size: in bytes.
        is_in_kernels: it holds what threads keep for themselves, and exists in no memory.
        is_constant: it holds the value of a `constant`.
    """

    number: int
    size: int
    is_in_kernels: bool
    is_constant: bool


@dataclass(frozen=True, slots=True)
class Slice:
    """Where a value lies.

    Attributes:
        allocation: the number of its allocation.
        offset: in bytes.
        size: in bytes.
    """

    allocation: int
    offset: int
    size: int


_ALLOCATION = re.compile(r"allocation (\d+): (?:0x[0-9a-f]+, )?size (\d+)(.*)")
_VALUE = re.compile(
    r"\s+value: <\d+ (?P<name>[^\s{]+)(?:\{(?P<index>[\d,]*)\})?(?: \(phi\))? @\d+> "
    r"\(size=(?P<size>\d+),\s*offset=(?P<offset>\d+)\)"
)
#: They return the memory of their operand, at the same index.
_SAME_MEMORY = opcodes_with(Trait.FORWARDS) | {"bitcast"}
#: Where in the result of a start the result of its end stands, if not behind the operands.
_STARTED: dict[str, ShapeIndex] = {"copy-done": (0,), "recv-done": (0,), "all-reduce-done": ()}


class Assignment:
    """Where each value of a program lies.

    Args:
        text: of the buffer assignment.
        module: the program after all passes.
        path: of the text, for messages.

    Attributes:
        allocations: by number.

    Raises:
        DumpError: the text is none of a buffer assignment, or its numbers make no sense.
    """

    def __init__(self, text: str, module: Module, path: str) -> None:
        self._path = path
        self.allocations: dict[int, Allocation] = {}
        self._defined: dict[tuple[str, ShapeIndex], Slice] = {}
        self._read(text)
        if not self.allocations:
            raise DumpError(f"{path}: no allocation is listed")
        self._sites = call_sites(module)
        self._homes = {i: c for c in module.computations for i in c.instructions}

    def _read(self, text: str) -> None:
        number = -1
        for line in text.splitlines():
            if found := _ALLOCATION.match(line):
                number, size, kind = int(found[1]), int(found[2]), found[3]
                self.allocations[number] = Allocation(
                    number, size, "thread-local" in kind, "constant" in kind
                )
            elif (value := _VALUE.match(line)) and number >= 0:
                place = Slice(number, int(value["offset"]), int(value["size"]))
                if place.offset + place.size > self.allocations[number].size:
                    raise DumpError(f"{self._path}: {value['name']} is larger than allocation {number}")
                self._defined[value["name"], _index(value["index"])] = place

    def defined(self, name: str) -> Slice | None:
        """Where the value lies that the array instruction of this name defines; None of what defines none."""
        return self._defined.get((name, ()))

    def slice_of(self, instruction: Instruction, index: ShapeIndex = ()) -> Slice:
        """Where a part of an instruction's result lies.

        Raises:
            Unsupported: the dump does not say.
        """
        seen: set[tuple[Instruction, ShapeIndex]] = set()
        pending = [(instruction, index)]
        while pending:
            place = pending.pop()
            if place in seen:
                continue
            seen.add(place)
            if (found := self._defined.get((place[0].name, place[1]))) is not None:
                return found
            pending += self._sources(*place)
        part = f" at {{{','.join(map(str, index))}}}" if index else ""
        raise Unsupported(
            f"{self._path} does not say where its result lies{part}", instruction.name, instruction.opcode
        )

    def slices_of(self, instruction: Instruction) -> list[Slice]:
        """Where the arrays of an instruction's result lie, in order; raises as `slice_of`."""
        return [
            self.slice_of(instruction, index)
            for index, shape in leaves(instruction.shape)
            if isinstance(shape, ArrayShape)
        ]

    def _sources(
        self, instruction: Instruction, index: ShapeIndex
    ) -> Iterator[tuple[Instruction, ShapeIndex]]:
        """What a part of a result may be the memory of."""
        if (source := through_tuple(instruction, index)) is not None:
            yield source
        elif instruction.opcode in _SAME_MEMORY:
            yield instruction.operands[0], index
        elif instruction.opcode == "parameter":
            for site in self._sites.get(self._homes[instruction], ()):
                yield from _argument(site.instruction, self._homes[instruction], instruction, index)
        elif instruction.opcode == "async-start" and index[:1] == (0,):
            yield instruction.operands[index[1]], index[2:]
        elif instruction.opcode == "async-start" and index[:1] == (1,):
            yield next(instruction.called).root, index[1:]
        elif instruction.opcode == "async-done":
            yield next(async_start(instruction).called).root, index
        elif instruction.opcode.endswith("-done"):
            yield instruction.operands[0], (*_STARTED.get(instruction.opcode, (1,)), *index)
        elif instruction.opcode == "copy-start" and index == (1,):
            yield instruction.operands[0], ()
        elif instruction.opcode.endswith("-start") and index[:1] == (0,):
            several = len(instruction.operands) > 1
            yield instruction.operands[index[1] if several else 0], index[1 + several :]
        elif instruction.opcode in ("call", "conditional", "while"):
            callees = branches(instruction) if instruction.opcode == "conditional" else instruction.called
            for callee in callees:
                if callee.root.shape == instruction.shape:
                    yield callee.root, index


def _argument(
    caller: Instruction, callee: object, parameter: Instruction, index: ShapeIndex
) -> Iterator[tuple[Instruction, ShapeIndex]]:
    """What a caller gives a parameter of what it calls."""
    number = parameter.parameter_number or 0
    if caller.opcode == "while":
        yield caller.operands[0], index
    elif caller.opcode == "conditional":
        for n, branch in enumerate(branches(caller)):
            if branch is callee:
                yield caller.operands[n + 1], index
    elif caller.opcode in ("call", "async-start"):
        yield caller.operands[number], index


def _index(text: str | None) -> ShapeIndex:
    return tuple(int(part) for part in (text or "").split(",") if part)
