"""Sorts in the wrong order, or of half of the data."""

from __future__ import annotations

from hlotool.faults.attrs import ints
from hlotool.faults.edit import Edit
from hlotool.faults.fits import array_of, both, is_opcode
from hlotool.faults.kind import FaultKind, Place
from hlotool.ir.module import Instruction


def _descending(edit: Edit, target: Instruction) -> None:
    """The result of every operand is read from the other end."""
    edit.after()
    (dimension,) = ints(target, "dimensions")
    if len(target.operands) == 1:
        edit.replace(edit.op("reverse", target, shape=target.shape, dimensions=(dimension,)))
        return
    parts = [
        edit.op("get-tuple-element", target, shape=o.shape, index=n) for n, o in enumerate(target.operands)
    ]
    turned = [edit.op("reverse", p, shape=p.shape, dimensions=(dimension,)) for p in parts]
    edit.replace(edit.op("tuple", *turned, shape=target.shape))


def _payload(edit: Edit, target: Instruction) -> None:
    """One of the operands that follow the keys stays as it was."""
    edit.after()
    parts = [
        edit.op("get-tuple-element", target, shape=o.shape, index=n) for n, o in enumerate(target.operands)
    ]
    stale = edit.choose(range(1, len(parts)))
    parts[stale] = target.operands[stale]
    edit.replace(edit.op("tuple", *parts, shape=target.shape))


def _has_payload(place: Place) -> bool:
    return len(place.instruction.operands) > 1


def _sorts_something(place: Place) -> bool:
    (dimension,) = ints(place.instruction, "dimensions")
    return array_of(place.instruction.operands[0]).dims[dimension] > 1


KINDS = (
    FaultKind(
        "sorted the other way",
        "a comparator negated",
        both(is_opcode("sort"), _sorts_something),
        _descending,
        "reversed",
    ),
    FaultKind(
        "payload not sorted",
        "keys sorted, and one of the values that go with them not",
        both(is_opcode("sort"), _sorts_something, _has_payload),
        _payload,
    ),
)
