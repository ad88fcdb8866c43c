"""Where a NaN or an infinity of a result comes from: the first instruction that makes one of finite ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from hlotool.alignment.graph import Graph
from hlotool.alignment.ports import Port, Ports
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ShapeIndex
from hlotool.replay.execution import Execution
from hlotool.replay.recording import Iteration, Sample
from hlotool.replay.trail import GOOD, UNKNOWN, Judgement, origins

Kind: TypeAlias = Literal["NaN", "infinity"]


@dataclass(frozen=True, slots=True)
class Birth:
    """The first value of its kind on the way to a result.

    Attributes:
        kind: what was made.
        instruction: of the flattened program.
        iteration: in which it was first made.
        index: of the first element of the kind, None when the value was not kept.
        operands: the operands, each with its value at that element where it has one, else as a range.
    """

    kind: Kind
    instruction: Instruction
    iteration: Iteration
    index: Sequence[int] | None
    operands: tuple[tuple[Instruction, str], ...]


def births(execution: Execution, graph: Graph, outputs: Sequence[ShapeIndex]) -> list[Birth]:
    """What made the NaNs and infinities of some results, the earliest of each kind.

    Args:
        execution: of the program.
        graph: of the program that was executed.
        outputs: shape indices of the results.
    """
    found = (_birth(execution, graph, outputs, kind) for kind in _KINDS)
    return [birth for birth in found if birth is not None]


def _has_nan(sample: Sample) -> bool:
    return sample.nan


def _has_infinity(sample: Sample) -> bool:
    return sample.inf


_KINDS: dict[Kind, Callable[[Sample], bool]] = {"NaN": _has_nan, "infinity": _has_infinity}


def _birth(execution: Execution, graph: Graph, outputs: Sequence[ShapeIndex], kind: Kind) -> Birth | None:
    ports, has = Ports(graph), _KINDS[kind]

    def judge(port: Port) -> Judgement:
        node = ports.node(port)
        samples = execution.recording.samples.get(node) if node is not None else None
        if not samples:
            return UNKNOWN
        first = next((sample for sample in samples.values() if has(sample)), None)
        return GOOD if first is None else Judgement(True, first.order)

    starts = [ports.of(execution.module.entry.root, index) for index in outputs]
    for origin in origins(ports, starts, judge):
        node = ports.node(origin.port)
        if node is not None and node.opcode not in ("parameter", "constant"):
            return _described(execution, graph, node, kind)
    return None


def _described(execution: Execution, graph: Graph, node: Instruction, kind: Kind) -> Birth:
    samples = execution.recording.samples[node]
    at = next(iteration for iteration, sample in samples.items() if _KINDS[kind](sample))
    value = execution.recording.value(node, at)
    index = None if value is None else _first(value, kind)
    operands = [(o, _operand_text(execution, o, at, index, node)) for o in graph.operands[node]]
    return Birth(kind, node, at, index, tuple(operands))


def _first(value: Array, kind: Kind) -> Sequence[int]:
    numbers = value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
    flags = np.isnan(numbers) if kind == "NaN" else np.isinf(numbers)
    return [int(n) for n in np.unravel_index(int(flags.argmax()), value.shape)]


def _operand_text(
    execution: Execution, operand: Instruction, at: Iteration, index: Sequence[int] | None, node: Instruction
) -> str:
    samples = execution.recording.samples.get(operand, {})
    value = execution.recording.value(operand, at[: len(next(iter(samples), ()))])
    if value is None or value.dtype.kind == "c":
        return ""
    if index is not None and value.shape == _dims(execution, node, at):
        return f"{value[tuple(index)]}"
    if value.ndim == 0:
        return f"{value[()]}"
    numbers = value.astype(np.float64)
    return f"{np.nanmin(numbers):.6g} … {np.nanmax(numbers):.6g}" if value.size else "empty"


def _dims(execution: Execution, node: Instruction, at: Iteration) -> tuple[int, ...] | None:
    value = execution.recording.value(node, at)
    return None if value is None else value.shape
