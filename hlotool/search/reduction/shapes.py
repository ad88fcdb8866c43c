"""Smaller dimensions: all dimensions of one size shrink together, wherever they appear."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hlotool.ir.attributes import AttributeValue, SliceDim, Window
from hlotool.ir.literal import Literal
from hlotool.ir.module import Instruction
from hlotool.ir.shape_inference import can_infer, infer_shape
from hlotool.ir.types import ArrayShape, Shape, TupleShape, array_shapes
from hlotool.search.reduction.case import Case
from hlotool.search.reduction.oracle import Candidate, CaseOracle
from hlotool.search.reduction.values import rewritten

#: Sizes that are tried for a dimension, the smallest first.
_SIZES = (1, 2, 3, 4, 8, 16)

#: Attributes that speak of sizes of dimensions.
_SIZE_LISTS = ("slice_sizes", "dynamic_slice_sizes")


def shrink_shapes(case: Case, oracle: CaseOracle) -> Case:
    """Shrink one size after the other, the largest first, as far as the failure stays."""
    tried: set[int] = set()
    while untried := sorted(_sizes(case) - tried, reverse=True):
        size = untried[0]
        tried.add(size)
        found = oracle.first_failing(list(_candidates(case, size)), f"size {size}")
        if found is not None:
            case = found[1]
    return case


def _candidates(case: Case, size: int) -> Iterator[Candidate]:
    smaller = [s for s in _SIZES if s < size]
    if size // 2 > _SIZES[-1]:
        smaller.append(size // 2)
    for new in smaller:
        yield partial(resized, case, size, new)


def _sizes(case: Case) -> set[int]:
    """Sizes larger than 1 of all dimensions."""
    shapes = (i.shape for i in case.module.instructions())
    return {d for shape in shapes for part in array_shapes(shape) for d in part.dims if d > 1}


def resized(case: Case, old: int, new: int) -> Case | None:
    """The program with dimensions of size `new` instead of `old`; None where that makes no valid program."""
    return rewritten(case, partial(_resize, old=old, new=new), partial(_crop, old=old, new=new))


def _resize(instruction: Instruction, old: int, new: int) -> None:
    instruction.attributes = _resized_attributes(instruction.attributes, old, new)
    instruction.shape = _resized_shape(instruction.shape, old, new)
    if instruction.literal is not None:
        instruction.literal = _resized_literal(instruction.literal, instruction.shape, old, new)
    elif isinstance(instruction.shape, ArrayShape) and can_infer(instruction.opcode):
        operands = [o.shape for o in instruction.operands]
        inferred = infer_shape(instruction.opcode, operands, instruction.attributes)
        if isinstance(inferred, ArrayShape) and inferred.rank == instruction.shape.rank:
            instruction.shape = replace(instruction.shape, dims=inferred.dims)


def _resized_shape(shape: Shape, old: int, new: int) -> Shape:
    if isinstance(shape, ArrayShape):
        return replace(shape, dims=tuple(new if d == old else d for d in shape.dims))
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(_resized_shape(element, old, new) for element in shape.elements))
    return shape


def _resized_attributes(
    attributes: Mapping[str, AttributeValue], old: int, new: int
) -> dict[str, AttributeValue]:
    changed = dict(attributes)
    for name, value in attributes.items():
        if name in _SIZE_LISTS and isinstance(value, tuple):
            changed[name] = tuple(new if size == old else size for size in value if isinstance(size, int))
        elif name == "slice" and isinstance(value, tuple):
            changed[name] = tuple(_resized_slice(s, old, new) for s in value if isinstance(s, SliceDim))
        elif isinstance(value, Window):
            dims = tuple(replace(d, size=new if d.size == old else d.size) for d in value.dims)
            changed[name] = Window(dims)
    return changed


def _resized_slice(piece: SliceDim, old: int, new: int) -> SliceDim:
    limit = new if piece.limit == old else piece.limit
    return replace(piece, start=min(piece.start, max(limit - 1, 0)), limit=limit)


def _resized_literal(literal: Literal, shape: Shape, old: int, new: int) -> Literal:
    if not isinstance(shape, ArrayShape) or not isinstance(literal.value, np.ndarray):
        return literal
    return Literal(shape, np.ascontiguousarray(_crop(literal.value, old, new)).reshape(shape.dims))


def _crop(array: Any, old: int, new: int) -> Any:
    """The first `new` elements along every axis of size `old`."""
    return array[tuple(slice(new) if size == old else slice(None) for size in array.shape)]
