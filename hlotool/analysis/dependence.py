"""What of a program depends on its arguments, in value or in whether it runs at all.

What does not is the same in every run. Dependence goes through data (an operand, a part of a tuple, the state
of a loop) and through control (how often a loop runs, which branch is taken).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from hlotool.analysis.calls import CallGraph
from hlotool.analysis.flow import Part, handed_on
from hlotool.ir.effects import has_own_side_effect
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ShapeIndex, leaves, subshape

#: Their results are not determined by their operands, or nobody here knows how.
_UNDETERMINED = opcodes_with(Trait.UNDETERMINED)


class Dependence:
    """Answers for one program, which must not change meanwhile."""

    def __init__(self, calls: CallGraph) -> None:
        self._calls = calls
        self._varies: dict[Part, bool] = {}
        self._runs: dict[Computation, bool] = {}

    def varies(self, instruction: Instruction) -> bool:
        """Whether its value may be another one on other arguments, in the same iteration of loops."""
        parts = [(instruction, index) for index, _ in leaves(instruction.shape)]
        self._settle(parts)
        return any(self._varies[part] for part in parts)

    def runs_always_alike(self, instruction: Instruction) -> bool:
        """Whether it is executed equally often whatever the arguments are."""
        return self._is_steady(self._calls.home[instruction])

    def behind(self, instruction: Instruction, index: ShapeIndex) -> Iterator[Part]:
        """A leaf of a value, and all that it depends on: the nearest first."""
        pending = deque([(instruction, index)])
        seen = set(pending)
        while pending:
            part = pending.popleft()
            yield part
            for source in self._sources(part):
                if source not in seen:
                    seen.add(source)
                    pending.append(source)

    def _is_steady(self, computation: Computation) -> bool:
        if computation not in self._runs:
            self._runs[computation] = all(
                self._is_steady(self._calls.home[caller]) and not self._steers(caller)
                for caller in self._calls.callers[computation]
            )
        return self._runs[computation]

    def _steers(self, caller: Instruction) -> bool:
        """Whether the arguments decide how often it runs what it calls."""
        return any(self.varies(steering) for steering, _ in _steering(caller))

    def _settle(self, parts: Iterable[Part]) -> None:
        """Find out about `parts`, and about all that they depend on."""
        readers: dict[Part, list[Part]] = {}
        varying: list[Part] = []
        pending = [part for part in parts if part not in self._varies]
        seen = set(pending)
        while pending:
            part = pending.pop()
            if self._is_undetermined(part[0]):
                varying.append(part)
                continue
            for source in self._sources(part):
                if self._varies.get(source):
                    varying.append(part)
                elif source not in self._varies:
                    readers.setdefault(source, []).append(part)
                    if source not in seen:
                        seen.add(source)
                        pending.append(source)
        self._varies.update(dict.fromkeys(seen, False))
        while varying:
            part = varying.pop()
            if not self._varies[part]:
                self._varies[part] = True
                varying += readers.get(part, ())

    def _is_undetermined(self, instruction: Instruction) -> bool:
        if instruction.opcode == "parameter":
            return self._calls.home[instruction] is self._calls.module.entry
        return instruction.opcode in _UNDETERMINED or has_own_side_effect(instruction)

    def _sources(self, part: Part) -> Iterator[Part]:
        """What one part of a value depends on."""
        instruction, _ = part
        handed = [leaf for source in handed_on(part, self._calls) for leaf in _leaves(source)]
        if handed or instruction.opcode == "parameter":
            yield from handed
            yield from _steering(instruction)
            return
        for operand in instruction.operands:
            yield from _leaves((operand, ()))


def _steering(instruction: Instruction) -> Iterator[Part]:
    """What decides which computations an instruction runs, and how often."""
    if instruction.opcode == "while":
        yield instruction.computation("condition").root, ()
    elif instruction.opcode == "conditional":
        yield instruction.operands[0], ()


def _leaves(part: Part) -> Iterator[Part]:
    """The leaves of a part; of an array itself."""
    instruction, index = part
    for inner, _ in leaves(subshape(instruction.shape, index)):
        yield instruction, (*index, *inner)
