"""Scalar computations in a normal form: recognised as sums, extrema, choices; evaluated on arrays.

The computations that reduce, map, scatter, sort and their kin apply work on scalars only. Frontends and
compiler passes write the same thing in many ways: through calls and fusions, with reshapes of scalars,
tuples in the middle, conditionals. The normal form is a flat computation of elementwise instructions in
which equal expressions are one object.

A monoid may be reduced in any order; its identity is read off its computation. A choice (argmax) returns
one of its own two arguments for every output, so any bracketing of it is allowed while the order of
elements is kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from msgspec import Struct

from hlotool.ir.arrays import Literal, dtype_of, integer_limits
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import OPCODES, Class, Identity, Trait, opcodes_with
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


class ScalarForm(Struct, frozen=True, eq=False):
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


#: Opcodes that are associative and commutative, but for rounding.
_MONOIDS = opcodes_with(Trait.ASSOCIATIVE)


def monoid_opcodes(form: ScalarForm) -> list[str | None]:
    """For every output of f(accumulators…, elements…), the opcode that combines its own two arguments.

    None stands for any other function of them.
    """
    return [_match(*component) for component in _components(form)] or [None] * len(form.outputs)


def is_choice(form: ScalarForm) -> bool:
    """Whether every output is always one of its own two arguments: argmax, argmin, first, last, …"""
    components = _components(form)
    return bool(components) and all(_chooses(o, {a, e}, set()) for o, a, e in components)


def _components(form: ScalarForm) -> list[tuple[Instruction, Instruction, Instruction]]:
    """(output, its accumulator, its element); empty when the parameters do not pair up in number and type."""
    count = len(form.outputs)
    if len(form.parameters) != 2 * count:
        return []
    rows = list(zip(form.outputs, form.parameters[:count], form.parameters[count:]))
    same = all(o.element_type is a.element_type is e.element_type for o, a, e in rows)
    return rows if same else []


def _match(output: Instruction, accumulator: Instruction, element: Instruction) -> str | None:
    """Also through converts to a wider type and back, as frontends write sums of bf16."""
    inner = output
    if output.opcode == "convert":
        inner = output.operands[0]
        if not _holds_all(inner.element_type, output.element_type):
            return None
    if inner.opcode not in _MONOIDS or {_unconvert(o) for o in inner.operands} != {accumulator, element}:
        return None
    return inner.opcode


def _unconvert(instruction: Instruction) -> Instruction:
    return instruction.operands[0] if instruction.opcode == "convert" else instruction


def _holds_all(wide: ElementType, narrow: ElementType) -> bool:
    """Whether converting `narrow` to `wide` and back changes nothing, order included."""
    if wide.family is not narrow.family or wide.is_narrow_float:
        return False
    return wide.bits > narrow.bits


def _chooses(value: Instruction, candidates: set[Instruction], seen: set[Instruction]) -> bool:
    if value in candidates or value in seen:
        return True
    seen.add(value)
    is_choice = value.opcode == "select" or value.opcode in opcodes_with(Trait.EXTREMUM)
    parts = value.operands[1:] if value.opcode == "select" else value.operands
    return is_choice and all(_chooses(p, candidates, seen) for p in parts)


def identities(reducer: Computation, count: int) -> list[Identity | None]:
    """The identity of each of `count` reductions done together; None where it is not recognised.

    Recognised are the elementwise monoids, alone or side by side, and the pair that finds an extremum and its
    position, where the position starts at 0.
    """
    form = scalar_form(reducer)
    if form is None or len(form.outputs) != count:
        return [None] * count
    extremum = _extremum(form.outputs[0]) if count > 1 else None
    if extremum is not None:
        return [extremum, *[Identity.ZERO] * (count - 1)]
    return [None if opcode is None else OPCODES[opcode].identity for opcode in monoid_opcodes(form)]


def _extremum(value: Instruction) -> Identity | None:
    """`select(accumulated > element, accumulated, element)`, however the comparison treats NaN and ties."""
    if value.opcode != "select" or value.element_type is ElementType.PRED:
        return None
    directions = set(_directions(value.operands[0], depth=4))
    if directions & {"GT", "GE"}:
        return Identity.LOWEST
    return Identity.HIGHEST if directions & {"LT", "LE"} else None


def _directions(predicate: Instruction, depth: int) -> list[str]:
    """Directions of the comparisons of floats or keys that a predicate is made of."""
    if predicate.opcode == "compare":
        return [predicate.text("direction")]
    if depth == 0:
        return []
    return [d for operand in predicate.operands for d in _directions(operand, depth - 1)]


def neutral(opcode: str, element_type: ElementType) -> Any:
    """The neutral element of a monoid, in its dtype.

    Raises:
        ValueError: `opcode` is none.
    """
    identity = OPCODES[opcode].identity
    if identity is None:
        raise ValueError(f"{opcode} has no neutral element")
    return neutral_value(element_type, identity)


def neutral_value(element_type: ElementType, identity: Identity) -> Any:
    """The neutral element in the dtype."""
    dtype = dtype_of(element_type)
    if identity in (Identity.ZERO, Identity.ONE):
        return dtype.type(int(identity is Identity.ONE))
    sign = -1 if identity is Identity.LOWEST else 1
    if not element_type.is_integer and element_type is not ElementType.PRED:
        return _infinity(dtype, sign)
    low, high = integer_limits(element_type)
    if identity is Identity.ALL_BITS and element_type.is_signed:
        return dtype.type(-1)
    return dtype.type(low if sign < 0 else high)


def _infinity(dtype: np.dtype[Any], sign: int) -> Any:
    """Infinity, or the largest finite value of types that have none."""
    infinity = np.asarray(sign * math.inf).astype(dtype)
    return infinity if np.isinf(infinity) else dtype.type(sign * float(ml_dtypes.finfo(dtype).max))  # type: ignore[no-untyped-call]
