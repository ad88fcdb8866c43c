"""Is a failure one? Asked in fresh processes, with other draws, and of the functions of real numbers."""

from __future__ import annotations

import msgspec

from hlotool.blame.reduction.case import Case
from hlotool.blame.reduction.case_worker import FUNCTION, CaseOutcome
from hlotool.blame.reduction.oracle import asked_afresh
from hlotool.errors import BackendCrashed, BackendTimeout, KernelFault
from hlotool.facts.dataflow import is_exact, leaf_facts
from hlotool.interface.report.lab_records import FailureRecord, Kind
from hlotool.judge.verdicts import Answer
from hlotool.lab.fuzz.attribution import Blame
from hlotool.lab.fuzz.oracle import AGAIN, FLAKY, MEANT
from hlotool.runs.exact.result import Relation
from hlotool.runs.options.kept import RunOptions
from hlotool.system.executor import Limits

#: Further seeds of perturbed executions by which a result that is rounded has to be wrong: what is near the
#: threshold is on one side of it by some of them, and on the other by others.
_FURTHER_SEEDS = 3
#: What is the same function of real numbers is no fault.
EQUAL = Relation.EQUAL.value


def kind_of(outcome: CaseOutcome) -> Kind:
    """What became of a program, from how it was judged."""
    if outcome.answer is not Answer.BAD or outcome.failure is None:
        return "agree" if outcome.answer is Answer.GOOD else "unjudged"
    kinds: dict[str, Kind] = {
        BackendCrashed.__name__: "crashed",
        KernelFault.__name__: "crashed",
        BackendTimeout.__name__: "hang",
        FLAKY.kind: "nondeterministic",
    }
    return kinds.get(outcome.failure.kind, "wrong")


def confirmed(failure: FailureRecord, case: Case, options: RunOptions) -> tuple[FailureRecord, CaseOutcome]:
    """A failure, and how its program does in a fresh process.

    Where a compiler reads uninitialised memory, two runs may differ first, and be wrong alike afterwards:
    then it has to be wrong twice.
    """
    outcome = asked_again(case, options, failure.kind)
    if failure.kind == "nondeterministic" and kind_of(outcome) == "wrong":
        failure = msgspec.structs.replace(failure, kind="wrong", failure=outcome.failure)
        outcome = asked_again(case, options, failure.kind)
    return failure, outcome


def asked_again(case: Case, options: RunOptions, kind: Kind) -> CaseOutcome:
    """How a program does in a fresh process."""
    return asked_afresh(case, options, Limits(1, options.timeout, options.memory_limit), function_of(kind))


def function_of(kind: Kind) -> str:
    """What a worker calls to see whether a program fails in this way.

    Of a death it is no question what the right result is.
    """
    if kind in ("crashed", "hang"):
        return FUNCTION
    return AGAIN if kind == "nondeterministic" else MEANT


def relation_of(case: Case, options: RunOptions, blame: Blame) -> str:
    """How what the passes make of a program is related to it as a function of real numbers.

    Empty where that is not the question: where no pass is accused, and where nothing is rounded, so that
    every difference is a fault; and where the arbiter refuses.
    """
    if blame.level != "pass" or is_exact(leaf_facts(case.module)):
        return ""
    outcome = asked_again(case, msgspec.structs.replace(options, exact=True), "wrong")
    found = {leaf.exact.relation for leaf in outcome.row.leaves if leaf.exact} if outcome.row else set()
    if Relation.UNEQUAL.value in found:
        return Relation.UNEQUAL.value
    # What no point covered accuses no pass, either.
    return EQUAL if found & {EQUAL, Relation.EQUAL_WHERE.value} else ""


def by_the_draw(case: Case, options: RunOptions, kind: Kind) -> str:
    """Why a wrong result is in doubt: by perturbed executions of another seed it is none; empty where it is.

    Where nothing is rounded nothing is drawn.
    """
    if kind != "wrong" or is_exact(leaf_facts(case.module)):
        return ""
    for number in range(1, 1 + _FURTHER_SEEDS):
        outcome = asked_again(case, msgspec.structs.replace(options, seed=options.seed + number), kind)
        if kind_of(outcome) != kind:
            return f"not by other perturbed executions: {outcome.reason or outcome.answer.value}"
    return ""
