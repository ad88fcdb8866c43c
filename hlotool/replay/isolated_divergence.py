"""The first wrong instruction of a program on a backend that shows its results only, such as real XLA."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from hlotool.backends.base import Value
from hlotool.backends.registry import get_backend
from hlotool.findings.verdict import Verdict
from hlotool.ir.module import Module
from hlotool.ir.types import ShapeIndex, strip_layouts
from hlotool.locate.records import DivergenceRecord, OperandRecord
from hlotool.numerics.compare import compare_values
from hlotool.numerics.dataflow import join_leaves, leaf_facts
from hlotool.replay.divergence_words import calls_around, deviation_record, source_in, text_in
from hlotool.replay.execution import Execution, execute
from hlotool.replay.first_divergence import NotFound, first_divergence
from hlotool.replay.isolation import Isolated, Isolation
from hlotool.replay.recording import Budget

_REFERENCE = "numpy"


def divergence_on(
    backend: str,
    reference: Module,
    tested: Module,
    arguments: Sequence[Value],
    outputs: Sequence[ShapeIndex],
    budget: Budget,
) -> DivergenceRecord:
    """Find what a backend computes wrong, or what is wrong in the program that it was given.

    Where the two programs differ on the reference already, the fault is in the HLO, and the instruction is
    looked for there. Else every instruction of the tested program is run alone on the backend, on the values
    that the reference has for its operands.

    Args:
        backend: in question.
        reference: the program as it should be, for one device.
        tested: what the backend was given; the same program, or another stage of it.
        arguments: that both are run on.
        outputs: shape indices of results that differ.
        budget: how much may be kept, and how many seconds each part of the search may take.

    Raises:
        NotFound: every instruction is right by itself.
        OutOfTime: recording an execution takes too long.
        Unsupported: the calls of a program cannot be flattened, or it cannot be executed.
    """
    if wrong := _wrong_already(reference, tested, arguments, outputs):
        return first_divergence(reference, tested, arguments, wrong, budget)
    with closing(execute(tested, arguments, _REFERENCE, budget)) as execution:
        isolation = Isolation(execution, backend, budget.seconds)
        found = isolation.first()
        note = f"instructions run alone on {backend}, each on right operands: {isolation.compared}"
        if isolation.skipped:
            note += f"; {isolation.skipped} could not be"
        if found is None and isolation.doubtful is None:
            raise NotFound(f"{note}; all are right: the fault lies in how they work together")
        return _record(execution, isolation, found, len(outputs), note)


def _wrong_already(
    reference: Module, tested: Module, arguments: Sequence[Value], outputs: Sequence[ShapeIndex]
) -> list[ShapeIndex]:
    """Outputs of two programs that differ on the reference by more than a tolerance."""
    if tested is reference:
        return []
    engine = get_backend(_REFERENCE)
    expected, actual = (engine.compile(module).run(arguments) for module in (reference, tested))
    shapes = [module.entry.root.shape for module in (reference, tested)]
    facts = join_leaves(leaf_facts(reference), leaf_facts(tested))
    compared = compare_values(shapes[0], expected, actual, actual_shape=shapes[1], facts=facts)
    wrong = {leaf.index for leaf in compared.leaves if leaf.verdict is Verdict.WRONG}
    return [index for index in outputs if index in wrong]


def _record(
    execution: Execution, isolation: Isolation, certain: Isolated | None, outputs: int, note: str
) -> DivergenceRecord:
    found = certain or isolation.doubtful
    assert found is not None
    node = found.instruction
    source = source_in(execution, isolation.graph, node)
    text = text_in(execution, node)
    operands = [
        OperandRecord(
            instruction=execution.originals[operand].name,
            shape=str(strip_layouts(operand.shape)),
            state="as expected",
        )
        for operand in node.operands
    ]
    return DivergenceRecord(
        finding="wrong" if certain else "suspected",
        source=source,
        text=text,
        expected_source=source,
        expected_text=text,
        around=calls_around(execution, isolation.graph, node, found.iteration),
        operands=operands,
        local=deviation_record(found.metrics),
        outputs=outputs,
        notes=[note],
    )
