"""The decisions of one program, with what is known of them before it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

from hlotool.analysis.calls import CallGraph
from hlotool.analysis.decisions import Decision, decisions
from hlotool.analysis.dependence import Dependence
from hlotool.analysis.unreachable import unreachable_outcomes
from hlotool.errors import Unsupported
from hlotool.findings.provenance import source_of
from hlotool.findings.records import SourceRecord
from hlotool.ir.edit_flatten import flatten_calls
from hlotool.ir.module import Instruction, Module


class ProgramDecisions:
    """Facts about a program, which must not change meanwhile.

    A function that is called from several places decides in each of them: a copy in which every call has a
    computation of its own is what is looked at, and what runs to be observed.

    Args:
        module: the program.

    Attributes:
        original: the program.
        module: the copy.
        originals: what each instruction of the copy stands for.
        calls: who calls whom in the copy.
        decisions: all of them, of the copy, in textual order.

    Raises:
        Unsupported: functions call functions so often that they cannot be told apart.
    """

    def __init__(self, module: Module) -> None:
        try:
            flat = flatten_calls(module)
        except ValueError as error:
            raise Unsupported(str(error)) from error
        self.original = module
        self.module = flat.module
        self.originals = flat.originals
        self.calls = CallGraph(flat.module)
        self.decisions = tuple(decisions(self.calls))

    def keep(self, wanted: Callable[[Decision], bool]) -> None:
        """Look at some of the decisions only, from now on."""
        self.decisions = tuple(filter(wanted, self.decisions))

    def source(self, instruction: Instruction) -> SourceRecord:
        """Where an instruction of the copy stands in the program, and in the user's."""
        chain = [*reversed(list(self.calls.enclosing(instruction))), instruction]
        return source_of(self.original, [self.originals[one] for one in chain])

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
