"""Instructions of flattened programs as the user knows them."""

from __future__ import annotations

import msgspec

from hlotool.alignment.graph import Graph
from hlotool.findings.provenance import source_of
from hlotool.findings.records import SourceRecord
from hlotool.ir.module import Instruction
from hlotool.ir.printer import SHORT, print_instruction
from hlotool.locate.records import DeviationRecord
from hlotool.numerics.metrics import Metrics
from hlotool.replay.execution import Execution
from hlotool.replay.leaf_records import element_record
from hlotool.replay.recording import Iteration


def source_in(execution: Execution, graph: Graph, node: Instruction) -> SourceRecord:
    """Where a node comes from in the user's program, and its place in the HLO text."""
    chain = [execution.originals[i] for i in (*reversed(list(graph.enclosing(node))), node)]
    return source_of(execution.original, chain)


def text_in(execution: Execution, node: Instruction) -> str:
    """A node as HLO, on one line."""
    return print_instruction(execution.originals[node], SHORT)


def calls_around(execution: Execution, graph: Graph, node: Instruction, iteration: Iteration) -> list[str]:
    """`fusion %f`, `while %loop, iteration 3`: the calls around an instruction, innermost first."""
    texts = []
    left = list(iteration)
    for call in graph.enclosing(node):
        text = f"{call.opcode} %{execution.originals[call].name}"
        if call.opcode == "while" and left:
            text += f", iteration {left.pop() + 1}"
        texts.append(text)
    return texts


def deviation_record(metrics: Metrics | None, is_wide: bool = False) -> DeviationRecord | None:
    """A difference as a record; ulps of f64 say nothing of a program that was declared in f32."""
    if metrics is None:
        return None
    worst = element_record(metrics.top[0] if metrics.top else metrics.worst_absolute)
    if worst is not None and is_wide:
        worst = msgspec.structs.replace(worst, ulps=None)
    return DeviationRecord(
        total=metrics.total,
        mismatched=metrics.mismatched,
        absolute=float(metrics.worst_absolute.absolute) if metrics.worst_absolute else None,
        ulps=None if is_wide else metrics.max_ulp,
        worst=worst,
    )
