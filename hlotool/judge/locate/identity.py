"""What a value of an execution is known by: its name, the user's name, its bits, its dimensions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

from hlotool.inputs.frames import (
    Frame,
    Node,
    Spread,
    all_frames,
    calls_around,
    is_made_there,
    iteration_of,
)
from hlotool.inputs.recorded_values import Sample
from hlotool.ir.types import ArrayShape, leaves, subshape
from hlotool.ir.walk import reachable

#: Name, opcode, iteration, and place in a tuple.
Name: TypeAlias = tuple[str, str, tuple[int, ...], tuple[int, ...]]
#: The last part of the frontend's name, and the iteration.
Path: TypeAlias = tuple[str, tuple[int, ...]]
#: Element type and dimensions.
Dims: TypeAlias = tuple[str, tuple[int, ...]]


def operations(entry: Frame) -> frozenset[tuple[str, str]]:
    """Names and opcodes of all that a program does."""
    return frozenset(
        (i.name, i.opcode) for c in reachable(entry.computation) for i in c.instructions if i.operands
    )


def digests(kept: Sample | Spread) -> Any:
    """Of the bits of a value, or of those of all its parts."""
    return kept.digest if isinstance(kept, Sample) else tuple(sample.digest for sample in kept.samples)


def dims_of(node: Node) -> Dims:
    """Those that a value had; where it was not kept, those of its shape."""
    kept = node.kept
    shape = subshape(node.instruction.shape, node.index)
    assert isinstance(shape, ArrayShape)
    first = kept.samples[0] if isinstance(kept, Spread) else kept
    return shape.element_type.name, first.dims if first is not None else shape.dims


def size_of(node: Node) -> int:
    """How many elements it has, on one device."""
    return prod(dims_of(node)[1])


def _nodes(entry: Frame) -> Iterator[Node]:
    """Every array that was computed, parts of tuples among them, and the parameters of the entry."""
    for frame in all_frames(entry):
        constants = [i for i in frame.computation.instructions if i.literal is not None]
        for instruction in dict.fromkeys((*constants, *frame.values)):
            arrays = (index for index, part in leaves(instruction.shape) if isinstance(part, ArrayShape))
            yield from (node for index in arrays if is_made_there(node := Node(frame, instruction, index)))


def name_of(node: Node) -> Name:
    """What identifies an operation in another version of the program: its name, and which iteration."""
    if node.instruction.opcode == "parameter":
        return str(node.instruction.parameter_number), "parameter", (), node.index
    return node.instruction.name, node.instruction.opcode, iteration_of(node.frame), node.index


def by_name(frame: Frame) -> dict[Name, list[Node]]:
    """All arrays of an execution."""
    found: dict[Name, list[Node]] = {}
    for node in _nodes(frame):
        found.setdefault(name_of(node), []).append(node)
    return found


def by_bits(named: Mapping[Name, Sequence[Node]]) -> dict[Any, list[Node]]:
    """The same by their bits, those that were kept."""
    found: dict[Any, list[Node]] = {}
    for node in (node for nodes in named.values() for node in nodes):
        if (kept := node.kept) is not None:
            found.setdefault(digests(kept), []).append(node)
    return found


def same_call(named: Sequence[Node], node: Node) -> Node | None:
    """Of values of one name, that of the same calls; a function that is called twice has two of each."""
    if len(named) <= 1:
        return next(iter(named), None)
    calls = _calls(node)
    return next((each for each in named if _calls(each) == calls), None)


def _calls(node: Node) -> list[str]:
    return [call.name for _, call in calls_around(node.frame)]


def path_of(node: Node) -> Path | None:
    """The last part of the frontend's name, and the iteration; None without such a name."""
    metadata = node.instruction.metadata
    tail = metadata.op_name.rpartition("/")[2] if metadata is not None else ""
    return (tail, iteration_of(node.frame)) if tail else None
