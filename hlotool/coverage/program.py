"""The decisions of one program, with what is known of them before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from hlotool.analysis.calls import CallGraph
from hlotool.analysis.decisions import Decision, decisions
from hlotool.analysis.dependence import Dependence
from hlotool.analysis.unreachable import unreachable_outcomes
from hlotool.ir.module import Module


class ProgramDecisions:
    """Facts about a module, which must not change meanwhile.

    Args:
        module: the program.

    Attributes:
        module: the program.
        calls: who calls whom in it.
        decisions: all of them, in textual order.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.calls = CallGraph(module)
        self.decisions = tuple(decisions(self.calls))

    @cached_property
    def settled(self) -> frozenset[Decision]:
        """Decisions that have the same outcomes in every run: they depend on no argument."""
        dependence = Dependence(self.calls)
        return frozenset(
            d
            for d in self.decisions
            if dependence.runs_always_alike(d.instruction)
            and not any(dependence.varies(d.instruction.operands[number]) for number in d.operands)
        )

    @cached_property
    def unreachable(self) -> Mapping[Decision, frozenset[str]]:
        """Outcomes that ranges and constants exclude, of the decisions that have such."""
        return unreachable_outcomes(self.calls, self.decisions)
