"""Reductions with planted judges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import hlotool
from hlotool.blame.reduction.case import Case
from hlotool.blame.reduction.case_worker import CaseOutcome
from hlotool.blame.reduction.oracle import CaseOracle
from hlotool.blame.reduction.reducer import Reduction, reduce_case
from hlotool.blame.steps import Steps
from hlotool.errors import HlotoolError
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.module import Module
from hlotool.ir.partitioning import own_arguments
from hlotool.judge.failures import Signature
from hlotool.judge.verdicts import Answer
from hlotool.system.cache import Journal

#: How a program fails; empty when it does not.
Opinion = Callable[[Module, Sequence[object]], str]


class PlantedJudge:
    """Runs a program on the reference and then has an opinion."""

    name = "planted"
    width = 1

    def __init__(self, opinion: Opinion) -> None:
        self.opinion = opinion
        self.judged: list[Case] = []

    def run(self, cases: Sequence[Case]) -> Iterator[tuple[int, CaseOutcome]]:
        for number, case in enumerate(cases):
            self.judged.append(case)
            try:
                module = hlotool.parse(case.text)
                run(module, case.arguments)
            except HlotoolError as error:
                yield number, CaseOutcome(answer=Answer.UNUSABLE, reason=str(error))
            else:
                kind = self.opinion(module, case.arguments)
                failure = Signature(kind=kind) if kind else None
                yield number, CaseOutcome(answer=Answer.BAD if kind else Answer.GOOD, failure=failure)


def run(module: Module, arguments: Sequence[object]) -> list[Any]:
    """What a program returns, or each device that has arguments of its own."""
    if own_arguments(module) == 1:
        return hlotool.run(module, arguments)
    grid = {"replicas": module.replica_count, "partitions": module.num_partitions}
    return hlotool.run(module, arguments, **grid)


def holds(*opcodes: str) -> Opinion:
    """Bad where the program has all the opcodes."""
    return lambda module, _: "bad" if set(opcodes) <= {i.opcode for i in module.instructions()} else ""


def reduced(
    module: Module,
    opinion: Opinion,
    arguments: Sequence[object] | None = None,
    journal: Journal | None = None,
) -> tuple[Reduction, PlantedJudge]:
    judge = PlantedJudge(opinion)
    given = tuple(arguments if arguments is not None else generate_inputs(module, 0).values)
    return reduce_case(Case(module, given), CaseOracle(judge, Steps(journal))), judge
