"""What becomes of an exception that a kernel raised: a typed error that names the instruction."""

from __future__ import annotations

from hlotool.errors import BackendCrashed, BackendOutOfMemory, HlotoolError
from hlotool.ir.module import Instruction


def failure(instruction: Instruction, error: Exception) -> HlotoolError:
    """The error to raise in place of `error`; one that is typed already stays as it is."""
    if isinstance(error, HlotoolError):
        return error
    if isinstance(error, MemoryError):
        return BackendOutOfMemory("numpy", f"out of memory at {_describe(instruction)}: {error}", here=True)
    return BackendCrashed("numpy", f"{type(error).__name__} at {_describe(instruction)}: {error}")


def _describe(instruction: Instruction) -> str:
    where = f" (line {instruction.line})" if instruction.line else ""
    return f"{instruction.opcode} %{instruction.name} {instruction.shape}{where}"
