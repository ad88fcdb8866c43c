"""Opcode → lowering function.

A lowering runs once per instruction, reads its attributes, and returns the kernel: a function from operand
values to the result value. Everything that does not depend on data belongs into the lowering.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import by_opcode

if TYPE_CHECKING:
    from hlotool.backends.numpy.lowering import Lowering
    from hlotool.backends.numpy.plan import Run


@dataclass(frozen=True, slots=True)
class Calling:
    """A kernel that runs computations or needs the state of the run.

    Attributes:
        function: takes over the *list* of operand values, so that the computations it calls can free them
            or update them in place, and gets the run that these share.
    """

    function: Callable[[list[Any], Run], Any]


@dataclass(frozen=True, slots=True)
class Reading:
    """A kernel that reads other values than those of the operands.

    Attributes:
        function: takes the values of `operands`.
        operands: instructions before this one, of the same computation.
    """

    function: Callable[..., Any]
    operands: tuple[Instruction, ...]


#: From operand values, in order, to the result. Kernels never modify operands they do not own.
Executed: TypeAlias = Callable[..., Any] | Calling
#: What a lowering returns.
Kernel: TypeAlias = Executed | Reading
Rule: TypeAlias = "Callable[[Instruction, Lowering], Kernel]"

RULES: dict[str, Rule] = {}


def lowers(*opcodes: str) -> Callable[[Rule], Rule]:
    """Register a function as the lowering of `opcodes`; a second one for the same opcode is an error."""
    return by_opcode(RULES, opcodes)
