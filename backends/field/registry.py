"""Opcode → what it means in the field.

A meaning is a lowering like those of the numpy backend (`backends.numpy.registry`): it runs once per
instruction and returns a kernel, but one on words. It is asked only where floats are concerned: an
instruction on integers and preds alone runs on the numpy backend's kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from hlotool.backends.numpy.registry import Calling, Kernel, Reading
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import by_name, by_opcode

if TYPE_CHECKING:
    from hlotool.backends.field.lowering import FieldLowering

#: What makes the kernel of an instruction on words.
Meaning: TypeAlias = "Callable[[Instruction, FieldLowering], Kernel]"

MEANINGS: dict[str, Meaning] = {}

#: Custom calls by target.
CALL_MEANINGS: dict[str, Meaning] = {}


def means(*opcodes: str) -> Callable[[Meaning], Meaning]:
    """Register a function as the meaning of `opcodes`; a second one for the same opcode is an error."""
    return by_opcode(MEANINGS, opcodes)


def call_means(*targets: str) -> Callable[[Meaning], Meaning]:
    """Register a function as the meaning of custom calls of `targets`."""
    return by_name(CALL_MEANINGS, targets)


def plain(kernel: Kernel) -> Callable[..., Any]:
    """A kernel that neither calls computations nor reads other values than its operands."""
    assert not isinstance(kernel, Calling | Reading)
    return kernel
