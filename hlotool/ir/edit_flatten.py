"""A copy of a program in which every computation that runs step by step has one caller.

Then an instruction stands for one place of the program, and what a probe sees of it in one iteration of the
loops around it is one value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hlotool.ir.edit import Names
from hlotool.ir.edit_clone import Cloner
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.walk import Context, context_of_callees, reachable

#: Instructions of a flattened program: beyond it, functions call functions too often.
MOST_INSTRUCTIONS = 400_000


@dataclass(frozen=True, slots=True)
class Flattened:
    """The copy.

    Attributes:
        module: the copy; scalar computations (`to_apply` of a reduction) are those of the original.
        originals: what each of its instructions is a copy of.
    """

    module: Module
    originals: dict[Instruction, Instruction]


def flatten_calls(module: Module) -> Flattened:
    """Give every call a computation of its own.

    Raises:
        ValueError: a computation calls itself, or there would be more than MOST_INSTRUCTIONS.
    """
    reachable(module.entry)  # raises where a computation calls itself
    flattener = _Flattener()
    entry = flattener.copy(module.entry)
    copy = replace(module, computations=reachable(entry), entry=entry)
    return Flattened(copy, flattener.originals)


def _runs(instruction: Instruction) -> bool:
    """Whether what it calls runs step by step."""
    return context_of_callees(instruction) is not Context.EMBEDDED


class _Flattener:
    def __init__(self) -> None:
        self.originals: dict[Instruction, Instruction] = {}
        self._names = Names(())

    def copy(self, original: Computation) -> Computation:
        """A copy with copies of what it calls."""
        cloner = Cloner()
        if len(self.originals) > MOST_INSTRUCTIONS:
            raise ValueError(f"more than {MOST_INSTRUCTIONS} instructions when every call is counted")
        for instruction in original.instructions:
            if _runs(instruction):
                cloner.computations.update((c, self.copy(c)) for c in dict.fromkeys(instruction.called))
            self.originals[cloner.instruction(instruction)] = instruction
        return replace(
            original,
            name=self._names.fresh(original.name),
            instructions=[cloner.instructions[i] for i in original.instructions],
            root=cloner.instructions[original.root],
        )
