"""Who calls whom: the computations that a program runs, and where each instruction stands."""

from __future__ import annotations

from collections.abc import Iterator

from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.walk import Context, context_of_callees, reachable


class CallGraph:
    """What the entry of a module reaches; computations that nobody calls are left out.

    The module must not change meanwhile.

    Attributes:
        module: the program.
        computations: callees before callers; the entry is the last.
        home: the computation that each instruction stands in, in that order.
        callers: the instructions that call each computation, each once; none for the entry.

    Raises:
        ValueError: a computation calls itself.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.computations = reachable(module.entry)
        self.home = {i: c for c in self.computations for i in c.instructions}
        self.callers: dict[Computation, list[Instruction]] = {c: [] for c in self.computations}
        for instruction in self.home:
            for callee in dict.fromkeys(instruction.called):
                self.callers[callee].append(instruction)

    def only_caller(self, computation: Computation) -> Instruction | None:
        """The one instruction that calls `computation`; None where there are several, or none."""
        callers = self.callers[computation]
        return callers[0] if len(callers) == 1 else None

    def enclosing(self, instruction: Instruction) -> Iterator[Instruction]:
        """The calls that run an instruction, innermost first, as far as there is a single one.

        What is applied to elements, such as a reducer, is not run step by step and has none.
        """
        call = self.only_caller(self.home[instruction])
        while call is not None and context_of_callees(call) is not Context.EMBEDDED:
            yield call
            call = self.only_caller(self.home[call])

    def in_order_of_execution(self) -> Iterator[Instruction]:
        """All instructions that run step by step, those of a computation after the first call to it."""
        seen = {self.module.entry}
        stack = [iter(self.module.entry.instructions)]
        while stack:
            instruction = next(stack[-1], None)
            if instruction is None:
                stack.pop()
                continue
            yield instruction
            if context_of_callees(instruction) is not Context.EMBEDDED:
                new = [callee for callee in dict.fromkeys(instruction.called) if callee not in seen]
                seen.update(new)
                stack += [iter(callee.instructions) for callee in reversed(new)]
