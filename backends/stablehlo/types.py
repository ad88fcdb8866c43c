"""Programs whose parameters and results have types that NumPy's buffers know.

Narrow floats travel as f32 and narrow integers as s8 or u8, which hold all their values; complex numbers as
pairs of their parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import numpy as np

from hlotool.backends.xla.signature import arrays_of
from hlotool.ir.dtypes import Array, dtype_of
from hlotool.ir.edit import Editor, editing
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, ElementType, TupleShape

_PARTS = {ElementType.C64: ElementType.F32, ElementType.C128: ElementType.F64}


def plain_types(module: Module) -> Module:
    """A copy of a program with a flat signature that takes and returns plain arrays only."""
    copy = clone_module(module).module
    copy.attributes = {}
    with editing(copy.entry) as edit:
        numbers = count()
        for parameter in copy.entry.parameters:
            _take_plain(edit, parameter, numbers)
        root = copy.entry.root
        results = [part for array in list(arrays_of(edit, root)) for part in _plain_parts(edit, array)]
        shape = TupleShape(tuple(result.shape for result in results))
        copy.entry.root = edit.add(Instruction("plain", "tuple", shape, tuple(results)))
        edit.changed = True
    for instruction in copy.instructions():
        # The importer has a word of its own for copies, which the interpreter does not know.
        if instruction.opcode == "copy" and isinstance(instruction.shape, ArrayShape):
            instruction.opcode = "reshape"
    return copy


def _carriers(kind: ElementType) -> tuple[ElementType, ...]:
    """The types of the arrays that stand for one of `kind`."""
    if kind in _PARTS:
        return (_PARTS[kind],) * 2
    if kind.is_narrow_float and kind is not ElementType.F16:
        return (ElementType.F32,)
    if kind.is_integer and kind.bits < 8:
        return (ElementType.S8 if kind.is_signed else ElementType.U8,)
    return (kind,)


def _take_plain(edit: Editor, old: Instruction, numbers: Iterator[int]) -> None:
    """Turn a parameter into what is made of plain ones."""
    shape = old.array_shape
    carriers = _carriers(shape.element_type)
    if carriers == (shape.element_type,):
        old.parameter_number = next(numbers)
        return
    made = []
    for kind in carriers:
        parameter = Instruction(old.name, "parameter", replace(shape, element_type=kind))
        parameter.parameter_number = next(numbers)
        made.append(edit.add(parameter, before=old))
    old.opcode, old.parameter_number, old.attributes = "complex" if len(made) == 2 else "convert", None, {}
    edit.set_operands(old, made)


def _plain_parts(edit: Editor, array: Instruction) -> list[Instruction]:
    shape = array.array_shape
    carriers = _carriers(shape.element_type)
    if carriers == (shape.element_type,):
        return [array]
    opcodes = ("real", "imag") if len(carriers) == 2 else ("convert",)
    return [
        edit.add(Instruction(opcode, opcode, replace(shape, element_type=kind), (array,)))
        for opcode, kind in zip(opcodes, carriers)
    ]


def to_plain(kind: ElementType, array: Array) -> list[Array]:
    """The arrays that stand for one of `kind`."""
    if kind in _PARTS:
        return [array.real.copy(), array.imag.copy()]
    [carrier] = _carriers(kind)
    return [array.astype(dtype_of(carrier), copy=False)]


def from_plain(kind: ElementType, arrays: Iterator[Array]) -> Array:
    """The array of `kind` that the next of `arrays` stand for."""
    dtype = dtype_of(kind)
    first = next(arrays)
    if kind in _PARTS:
        whole = np.empty(first.shape, dtype)
        whole.real, whole.imag = first, next(arrays)
        return whole
    return first.astype(dtype)
