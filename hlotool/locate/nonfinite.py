"""Where a NaN or an infinity of a result comes from: the first operation that makes one of finite values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Literal, TypeAlias

import numpy as np

from hlotool.ir.dtypes import Array
from hlotool.ir.types import ShapeIndex, strip_layouts, subshape
from hlotool.locate.execution import Execution
from hlotool.locate.frames import Node, Parts, Spread, made, operand_nodes
from hlotool.locate.records import NonFiniteRecord, OperandRecord
from hlotool.locate.store import Sample
from hlotool.locate.words import around, source_in, text_in

Kind: TypeAlias = Literal["NaN", "infinity"]


#: What a sample remembers of each kind.
_KINDS: dict[Kind, Callable[[Sample], bool]] = {"NaN": attrgetter("nan"), "infinity": attrgetter("inf")}


def births(execution: Execution, outputs: Sequence[ShapeIndex]) -> Iterator[NonFiniteRecord]:
    """What made the NaNs and infinities of some results, the earliest of each kind.

    Of a NaN that is made of infinities, what made these; of what no operation makes, the argument or constant
    that has it.

    Args:
        execution: of the program.
        outputs: shape indices of the results.
    """
    entry = execution.entry
    ends = [made(Node(entry, entry.computation.root, output)) for output in outputs]
    nan = _birth(ends, "NaN")
    if nan is not None:
        yield _record(execution, nan, "NaN")
    infinity = _birth(ends, "infinity") or (_birth(operand_nodes(nan), "infinity") if nan else None)
    if infinity is not None:
        yield _record(execution, infinity, "infinity")


def _birth(ends: Sequence[Node], kind: Kind) -> Node | None:
    """The earliest operation that makes a value of the kind on the way to some; None where none has it."""
    found = list(_origins(ends, kind))
    computed = [node for node in found if node.instruction.opcode not in ("parameter", "constant")]
    return min(computed or found, key=lambda node: node.order, default=None)


def _origins(ends: Sequence[Node], kind: Kind) -> Iterator[Node]:
    """What makes a value of the kind of values that are not; arguments and constants that have it."""
    queue = list(dict.fromkeys(ends))
    seen = set(queue)
    for node in queue:
        if not _holds(node, kind):
            continue
        sources = [operand for operand in operand_nodes(node) if _holds(operand, kind)]
        if not sources:
            yield node
        queue += [source for source in dict.fromkeys(sources) if source not in seen]
        seen.update(sources)


def _holds(node: Node, kind: Kind) -> bool:
    return any(_holders(node, kind))


def _holders(node: Node, kind: Kind) -> list[bool]:
    """Whether each device has a value of the kind there; nothing of what was not seen."""
    kept = node.kept
    samples = kept.samples if isinstance(kept, Spread) else [kept] if isinstance(kept, Sample) else []
    return list(map(_KINDS[kind], samples))


def _record(execution: Execution, node: Node, kind: Kind) -> NonFiniteRecord:
    holders = _holders(node, kind)
    device = holders.index(True)
    value = _shown(node, device)
    index = None if value is None else _first(value, kind)
    return NonFiniteRecord(
        kind=kind,
        source=source_in(execution, node),
        text=text_in(execution, node),
        around=around(execution, node),
        device=None if all(holders) else device,
        index=None if index is None else list(index),
        operands=[
            OperandRecord(
                instruction=execution.originals[operand.instruction].name,
                shape=str(strip_layouts(subshape(operand.instruction.shape, operand.index))),
                value=_operand_text(_shown(operand, device), value, index),
            )
            for operand in operand_nodes(node)
        ],
    )


def _shown(node: Node, device: int) -> Any:
    """The value; of several devices that of the one in question."""
    value = node.value
    return value[device] if isinstance(value, Parts) else value


def _first(value: Array, kind: Kind) -> Sequence[int] | None:
    numbers = value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
    flags = np.isnan(numbers) if kind == "NaN" else np.isinf(numbers)
    return [int(n) for n in np.unravel_index(int(flags.argmax()), value.shape)] if flags.any() else None


def _operand_text(value: Any, result: Any, index: Sequence[int] | None) -> str:
    """The operand's value at an element of the result where it has one, else its range."""
    if value is None or value.dtype.kind == "c":
        return ""
    if index is not None and value.shape == result.shape:
        return f"{value[tuple(index)]}"
    if value.ndim == 0:
        return f"{value[()]}"
    numbers = value.astype(np.float64)
    return f"{np.nanmin(numbers):.6g} … {np.nanmax(numbers):.6g}" if value.size else "empty"
