"""What becomes of an exception that a kernel raised: a typed error that names the instruction."""

from __future__ import annotations

from hlotool.errors import BackendCrashed, BackendOutOfMemory, HlotoolError
from hlotool.ir.module import Instruction


def failure(instruction: Instruction, error: Exception) -> HlotoolError:
    """The error to raise in place of `error`; one that is typed already stays as it is."""
    if isinstance(error, HlotoolError):
        return error
    if isinstance(error, MemoryError):
        return BackendOutOfMemory("numpy", f"out of memory at {describe(instruction)}: {error}", here=True)
    return BackendCrashed("numpy", f"{type(error).__name__} at {describe(instruction)}: {error}")


def describe(instruction: Instruction) -> str:
    """An instruction as errors name it: `add %sum f32[4] (line 7)`."""
    where = f" (line {instruction.line})" if instruction.line else ""
    return f"{instruction.opcode} %{instruction.name} {instruction.shape}{where}"
