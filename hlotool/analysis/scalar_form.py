"""Scalar computations in a normal form, so that they can be recognised and evaluated on arrays.

The computations that reduce, map, scatter, sort and their kin apply work on scalars only. Frontends and
compiler passes write the same thing in many ways: through calls and fusions, with reshapes of scalars,
tuples in the middle, conditionals. The normal form is a flat computation of elementwise instructions in which
equal expressions are one object.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from hlotool.ir.literal import Literal
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape
from hlotool.ir.walk import branches

#: What an instruction stands for during normalisation.
_Value: TypeAlias = "Instruction | tuple[_Value, ...]"

#: Move or regroup a single element, that is, do nothing.
_IDENTITIES = opcodes_with(Trait.REGROUPS) | {"opt-barrier", "reverse"}
#: Their result is that of the computation that they call.
_CALLS = opcodes_with(Trait.INLINED) | {"map"}

#: Not elementwise in general, but on scalars.
_SCALAR_ONLY = frozenset({"bitcast-convert", "constant"})

_PRED = ArrayShape(ElementType.PRED, ())


class _NotScalar(Exception):
    """The computation does something that has no elementwise form."""


@dataclass(frozen=True, slots=True, eq=False)
class ScalarForm:
    """A scalar computation in normal form.

    Attributes:
        parameters: by number, all of them, used or not.
        operations: constants and elementwise instructions, operands first.
        outputs: what it returns, one for each element of its tuple.
    """

    parameters: tuple[Instruction, ...]
    operations: tuple[Instruction, ...]
    outputs: tuple[Instruction, ...]

    @property
    def computation(self) -> Computation:
        """The form as a computation that returns a tuple of its outputs."""
        shape = TupleShape(tuple(o.shape for o in self.outputs))
        root = Instruction("outputs", "tuple", shape, self.outputs)
        return Computation("scalar", [*self.parameters, *self.operations, root], root)


def scalar_form(computation: Computation) -> ScalarForm | None:
    """The normal form of `computation`, or None when it is not made of scalar elementwise operations."""
    builder = _Builder()
    try:
        parameters = [builder.parameter(p) for p in computation.parameters]
        result = builder.inline(computation, parameters)
        outputs = _leaves(result)
    except _NotScalar:
        return None
    return select_outputs(ScalarForm(tuple(parameters), tuple(builder.order), outputs), outputs)


def select_outputs(form: ScalarForm, outputs: Sequence[Instruction]) -> ScalarForm:
    """The part of `form` that computes `outputs`, which may be any of its instructions."""
    needed: set[Instruction] = set(outputs)
    for instruction in reversed(form.operations):
        if instruction in needed:
            needed.update(instruction.operands)
    operations = tuple(i for i in form.operations if i in needed)
    return ScalarForm(form.parameters, operations, tuple(outputs))


def _leaves(value: _Value) -> tuple[Instruction, ...]:
    if isinstance(value, Instruction):
        return (value,)
    if not all(isinstance(v, Instruction) for v in value):
        raise _NotScalar
    return tuple(v for v in value if isinstance(v, Instruction))


class _Builder:
    """Rewrites instructions one by one; equal ones come out as the same object."""

    def __init__(self) -> None:
        self.order: list[Instruction] = []
        self._known: dict[object, Instruction] = {}

    def parameter(self, parameter: Instruction) -> Instruction:
        """A copy of a scalar parameter."""
        _check_scalar(parameter.shape)
        return Instruction(
            parameter.name, "parameter", parameter.shape, parameter_number=parameter.parameter_number
        )

    def inline(self, computation: Computation, arguments: Sequence[_Value]) -> _Value:
        """The value of `computation` for `arguments`."""
        values: dict[Instruction, _Value] = {}
        for instruction in computation.instructions:
            operands = [values[o] for o in instruction.operands]
            values[instruction] = self._value(instruction, operands, arguments)
        return values[computation.root]

    def _value(self, instruction: Instruction, operands: list[_Value], arguments: Sequence[_Value]) -> _Value:
        opcode = instruction.opcode
        if opcode == "parameter":
            return arguments[instruction.parameter_number or 0]
        if opcode == "tuple":
            return tuple(operands)
        if opcode == "get-tuple-element":
            return _element(operands[0], instruction.integer("index"))
        if opcode in _CALLS:
            return self.inline(next(instruction.called), operands)
        if opcode == "conditional":
            return self._conditional(instruction, operands)
        if opcode == "bitcast" and instruction.element_type is not _scalar(operands[0]).element_type:
            # XLA's algebraic simplifier writes the bitcast-convert of a scalar like this.
            return self._elementwise(replace(instruction, opcode="bitcast-convert"), operands)
        if opcode in _IDENTITIES:
            return _identity(instruction, operands[0])
        return self._elementwise(instruction, operands)

    def _elementwise(self, instruction: Instruction, operands: list[_Value]) -> Instruction:
        if instruction.opcode not in _SCALAR_ONLY and instruction.row.opcode_class is not Class.ELEMENTWISE:
            raise _NotScalar
        return self._intern(instruction, tuple(_scalar(o) for o in operands))

    def _intern(self, instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction:
        _check_scalar(instruction.shape)
        if instruction.opcode == "select" and (chosen := _chosen(instruction, operands)) is not None:
            return chosen
        attributes = {k: v for k, v in instruction.attributes.items() if k in instruction.row.attributes}
        key = (
            instruction.opcode,
            instruction.element_type,
            tuple(map(id, operands)),
            tuple(sorted(attributes.items(), key=lambda item: item[0])),
            _constant_bytes(instruction),
        )
        if key not in self._known:
            copy = Instruction(
                instruction.name,
                instruction.opcode,
                instruction.shape,
                operands,
                attributes,
                instruction.metadata,
                instruction.literal,
                line=instruction.line,
            )
            self._known[key] = copy
            self.order.append(copy)
        return self._known[key]

    def _conditional(self, instruction: Instruction, operands: list[_Value]) -> _Value:
        """All branches, then selects: branches of scalar computations have no side effects.

        An index out of range takes the last branch. XLA: operation_semantics.md#conditional.
        """
        index = _scalar(operands[0])
        inlined = [self.inline(c, (o,)) for c, o in zip(branches(instruction), operands[1:])]
        if index.element_type is ElementType.PRED:
            return self._select(index, inlined[0], inlined[1], instruction)
        chosen = inlined[-1]
        for number, branch in enumerate(inlined[:-1]):
            chosen = self._select(self._equals(index, number, instruction), branch, chosen, instruction)
        return chosen

    def _select(self, condition: Instruction, yes: _Value, no: _Value, source: Instruction) -> _Value:
        if isinstance(yes, tuple) and isinstance(no, tuple):
            return tuple(self._select(condition, a, b, source) for a, b in zip(yes, no))
        operands = (condition, _scalar(yes), _scalar(no))
        return self._intern(Instruction(source.name, "select", operands[1].shape, line=source.line), operands)

    def _equals(self, index: Instruction, number: int, source: Instruction) -> Instruction:
        literal = Literal(index.shape, np.array(number, np.int32))
        constant = self._intern(Instruction(source.name, "constant", index.shape, literal=literal), ())
        compare = Instruction(source.name, "compare", _PRED, (), {"direction": "EQ"}, line=source.line)
        return self._intern(compare, (index, constant))


def _check_scalar(shape: Shape) -> None:
    if not isinstance(shape, ArrayShape) or shape.rank:
        raise _NotScalar


def _scalar(value: _Value) -> Instruction:
    if isinstance(value, tuple):
        raise _NotScalar
    return value


def _element(value: _Value, index: object) -> _Value:
    if not isinstance(value, tuple) or not isinstance(index, int):
        raise _NotScalar
    return value[index]


def _identity(instruction: Instruction, operand: _Value) -> _Value:
    """`operand`; a copy that changes the element type is none."""
    if isinstance(operand, Instruction):
        _check_scalar(instruction.shape)
        if instruction.element_type is not operand.element_type:
            raise _NotScalar
    return operand


def _chosen(select: Instruction, operands: Sequence[Instruction]) -> Instruction | None:
    """What a `select` by a constant gives, unless it also converts; None where its predicate varies."""
    predicate, yes, no = operands
    if predicate.literal is None or predicate.literal.value is None:
        return None
    chosen = yes if predicate.literal.array else no
    return chosen if chosen.element_type is select.element_type else None


def _constant_bytes(instruction: Instruction) -> bytes | int | None:
    """What makes two constants equal; one without a value equals none."""
    if instruction.opcode != "constant":
        return None
    literal = instruction.literal
    return id(instruction) if literal is None or literal.value is None else literal.array.tobytes()
