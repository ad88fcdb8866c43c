"""What follows from constants alone: as a compiler folds it, in the declared types, and what it stands for.

1 - 1e-38 is 1 to a compiler, and 3 · 0.044715 in f32 is 0.134145007. Where a program has the folded number,
its original has the operation. Fusions and calls are looked into: a constant operand is one inside, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from hlotool.backends.field.marked import is_marked
from hlotool.backends.field.tables import SMALL
from hlotool.backends.numpy.lowering import Lowering, literal_value
from hlotool.backends.numpy.registry import Calling, Reading
from hlotool.errors import HlotoolError
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import Class
from hlotool.ir.types import ArrayShape

Floats: TypeAlias = npt.NDArray[np.float64]

#: They repeat or regroup elements.
_MOVES = frozenset({"broadcast", "copy", "reshape", "transpose"})
#: What they make of constants is the same at every point, and exact.
RATIONAL = _MOVES | frozenset({"add", "convert", "divide", "multiply", "negate", "rsqrt", "sqrt", "subtract"})


@dataclass(frozen=True, slots=True)
class Folded:
    """A value that follows from constants.

    Attributes:
        value: in the declared type.
        off: by how much roundings on the way may have moved each element, to first order; 0 where none were.
        held: as the field holds it: words of floats, anything else as it is.
    """

    value: Array
    off: Floats
    held: Any


class Meaning(Protocol):
    """What a value that follows from constants stands for."""

    def __call__(
        self, instruction: Instruction, value: Array, off: Floats, operands: Sequence[Folded]
    ) -> Any:
        """As the field holds it: words of floats, anything else as it is.

        Args:
            instruction: that computes it, or a constant.
            value: in the declared type.
            off: see `Folded`.
            operands: of the instruction.
        """


class Folding:
    """The folded values of the computation that is being compiled.

    Args:
        numbers: executes instructions in their declared types.
        meaning: of what they give.
        sizes: elements of the tables that are folded, too; larger arrays are not otherwise.
    """

    def __init__(self, numbers: Lowering, meaning: Meaning, sizes: frozenset[int]) -> None:
        self._numbers = numbers
        self._sizes = sizes
        self._meaning = meaning
        self._known: dict[Instruction, Folded] = {}

    @contextmanager
    def of(self, computation: Computation, arguments: Mapping[int, Folded]) -> Iterator[None]:
        """While it lasts, the other methods answer for `computation`, called with `arguments`, by number."""
        outer = self._known
        parameters = ((p, arguments.get(p.parameter_number or 0)) for p in computation.parameters)
        self._known = {p: value for p, value in parameters if value is not None}
        try:
            yield
        finally:
            self._known = outer

    def known(self, operands: Sequence[Instruction]) -> dict[int, Folded]:
        """The values of those operands that are known, by number."""
        return {n: self._known[o] for n, o in enumerate(operands) if o in self._known}

    def value(self, instruction: Instruction) -> Folded | None:
        """What `instruction` always is; None where that is not known."""
        if not self._is_wanted(instruction):
            return None
        if instruction.opcode == "constant":
            if instruction.literal is None or instruction.literal.has_elided:
                return None
            value = literal_value(instruction.literal)
            if is_marked(value):
                return None
            self._note(instruction, value, np.zeros(np.shape(value)), ())
        elif self._folds(instruction) and (kernel := self._kernel(instruction)) is not None:
            operands = [self._known[operand] for operand in instruction.operands]
            with np.errstate(all="ignore"):
                value = kernel(*(operand.value for operand in operands))
                off = _off(kernel, operands, value, instruction)
            self._note(instruction, value, off, operands)
        return self._known.get(instruction)

    def _note(self, instruction: Instruction, value: Array, off: Floats, operands: Sequence[Folded]) -> None:
        self._known[instruction] = Folded(value, off, self._meaning(instruction, value, off, operands))

    def _is_wanted(self, instruction: Instruction) -> bool:
        shape = instruction.shape
        if not isinstance(shape, ArrayShape) or shape.element_type.is_complex:
            return False
        is_exact = instruction.opcode == "constant" or instruction.opcode in RATIONAL
        return shape.size <= SMALL or (is_exact and shape.size in self._sizes)

    def _folds(self, instruction: Instruction) -> bool:
        opcode = instruction.opcode
        is_elementwise = instruction.row.opcode_class is Class.ELEMENTWISE and opcode != "map"
        if not instruction.operands or not (is_elementwise or opcode in _MOVES):
            return False
        return all(operand in self._known for operand in instruction.operands)

    def _kernel(self, instruction: Instruction) -> Callable[..., Array] | None:
        try:
            kernel = self._numbers.kernel(instruction)
        except HlotoolError:
            return None
        return None if isinstance(kernel, Calling | Reading) else kernel


def _off(
    kernel: Callable[..., Array], operands: Sequence[Folded], value: Array, instruction: Instruction
) -> Floats:
    """What becomes of the errors of the operands, one after the other, and an ulp of the operation's own."""
    if not instruction.element_type.is_floating:
        return np.zeros(np.shape(value))
    wide = np.asarray(value).astype(np.float64)
    info: Any = ml_dtypes.finfo(np.asarray(value).dtype)  # type: ignore[no-untyped-call]
    off = np.zeros(wide.shape) if instruction.opcode in _MOVES else np.abs(wide) * float(info.eps)
    values = [operand.value for operand in operands]
    for number, operand in enumerate(operands):
        if operand.off.any():
            moved = (np.asarray(operand.value).astype(np.float64) + operand.off).astype(operand.value.dtype)
            result = kernel(*values[:number], moved, *values[number + 1 :])
            off = off + np.abs(np.asarray(result).astype(np.float64) - wide)
    return np.where(np.isfinite(off), off, 0.0)
