"""Every stage is right and the result is wrong: which kernel or library call of the compiled program made it.

Nothing of the values in between is known, but which outputs are right and which are wrong is: what only wrong
outputs need comes first.
"""

from __future__ import annotations

from collections.abc import Iterable

from hlotool.findings.provenance import producers
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ShapeIndex
from hlotool.ir.walk import reachable
from hlotool.search.bisection.records import Level

#: No code of their own runs for these.
_NO_KERNEL = opcodes_with(Trait.STRUCTURE, Trait.SAME_ORDER) - {"reshape"} | {"opt-barrier", "after-all"}

#: Handed to a library where they stand alone.
_LIBRARY = frozenset(
    {"custom-call", "dot", "convolution", "fft", "sort", "topk", "cholesky", "triangular-solve", "ragged-dot"}
)


def suspects(module: Module, wrong: Iterable[ShapeIndex], right: Iterable[ShapeIndex]) -> list[Instruction]:
    """Kernels of the entry that may have made wrong outputs, the likeliest first.

    Args:
        module: the program as compiled.
        wrong: leaves of its result that are wrong.
        right: leaves that are as they should be.
    """
    innocent = set(_needed(module, right))
    needed = [i for i in _needed(module, wrong) if i.opcode not in _NO_KERNEL]
    return [i for i in needed if i not in innocent] or needed


def _needed(module: Module, outputs: Iterable[ShapeIndex]) -> list[Instruction]:
    """What the outputs are computed from, breadth first."""
    found = dict.fromkeys(producers(module.entry, index)[0] for index in outputs)
    queue = list(found)
    for instruction in queue:
        fresh = [o for o in instruction.operands if o not in found]
        found.update(dict.fromkeys(fresh))
        queue += fresh
    return queue


def level_of(kernel: Instruction) -> Level:
    """Whether a library runs it, or code that the compiler made."""
    if kernel.opcode == "fusion":
        return "runtime-library" if kernel.attributes.get("kind") == "kCustom" else "codegen"
    return "runtime-library" if kernel.opcode in _LIBRARY else "codegen"


def opcodes_within(kernel: Instruction) -> list[str]:
    """The operations that a kernel does, each once."""
    bodies = [i for c in kernel.called for inner in reachable(c) for i in inner.instructions]
    found = dict.fromkeys(i.opcode for i in bodies if i.opcode not in _NO_KERNEL)
    return list(found) or [kernel.opcode]
