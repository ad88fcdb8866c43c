"""A program with its arguments: what a reduction makes smaller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hlotool.backends.base import Value
from hlotool.backends.registry import get_backend
from hlotool.cache.fingerprint import digest
from hlotool.errors import HlotoolError, Unsupported
from hlotool.ir.module import Instruction, Module
from hlotool.ir.walk import reachable
from hlotool.search.arrays import arrays_in

#: Bytes of values that may be held while parts of a program are replaced by them.
LIMIT = 1 << 31


@dataclass(slots=True, eq=False)
class Case:
    """A program and arguments on which it fails (or does not).

    Attributes:
        module: the program; nobody changes it, a smaller one is a copy.
        arguments: one per parameter of the entry.
        exact: the program's text where it was not made here, and must be judged as it was written.
    """

    module: Module
    arguments: tuple[Any, ...]
    exact: str = ""
    _text: str = field(default="", repr=False)

    @property
    def text(self) -> str:
        """HLO text of the program."""
        if not self._text:
            self._text = self.exact or self.module.to_text()
        return self._text

    @property
    def size(self) -> int:
        """Instructions that the entry reaches, parameters not counted."""
        return sum(
            instruction.opcode != "parameter"
            for computation in reachable(self.module.entry)
            for instruction in computation.instructions
        )

    @property
    def elements(self) -> int:
        """Elements of all arguments."""
        return sum(a.size for a in arrays_in(self.arguments))

    @property
    def key(self) -> str:
        """Everything that a judgement of the program depends on."""
        arrays = list(arrays_in(self.arguments))
        parts = [part for a in arrays for part in (str((a.dtype, a.shape)).encode(), a.tobytes())]
        return digest(self.text, *parts)


def executed(case: Case, most: int | None = None) -> int:
    """How many instructions the reference executes; raises Unsupported where they are more than `most`."""
    count = 0

    def add(instruction: Instruction, value: Value) -> None:
        nonlocal count
        count += 1
        if most is not None and count > most:
            raise Unsupported("too many instructions are executed", instruction.name)

    get_backend("numpy").compile(case.module).run(case.arguments, add)
    return count


def terminates(case: Case, limit: int) -> bool:
    """Whether the reference executes no more than `limit` instructions; also False where it cannot run it."""
    try:
        executed(case, limit)
    except HlotoolError:
        return False
    return True


def observe(case: Case, wanted: Sequence[Instruction] | None = None) -> dict[Instruction, Value]:
    """What the instructions of the entry give on the reference, parameters and constants included.

    Args:
        case: the program and its arguments.
        wanted: the instructions to look at; all of the entry when None.

    Raises:
        Unsupported: the reference cannot run it, or the values do not fit into memory.
    """
    entry = case.module.entry
    looked_at = set(entry.instructions if wanted is None else wanted)
    values: dict[Instruction, Value] = {}
    left = LIMIT

    def keep(instruction: Instruction, value: Value) -> None:
        nonlocal left
        if instruction in looked_at:
            values[instruction] = value
            left -= sum(a.nbytes for a in arrays_in(value))
            if left < 0:
                raise Unsupported("the values of all instructions do not fit into memory", instruction.name)

    get_backend("numpy").compile(case.module).run(case.arguments, keep)
    values.update(zip(entry.parameters, case.arguments))
    return values
