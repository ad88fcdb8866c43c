"""What shape rules share: which shapes count as the same, what a rule sees, how it is registered.

XLA: Shape::Equal, ShapeUtil::Compatible, primitive_util.h.

The TPU's compiler writes floats of unequal width around one instruction that is no conversion. One that
only moves elements then converts them on the way, one that computes does so in the widest of its operands'
types and rounds the result. XLA: hlo_verifier.h (allow_mixed_precision); measured on texts that libtpu
0.0.42 ends with: `f32 broadcast(bf16)`, `bf16 reshape(f32)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import ml_dtypes
import numpy as np
from msgspec import Struct

from hlotool.ir.arrays import dtype_of
from hlotool.ir.attributes import AttributeValue, Ints
from hlotool.ir.module import AttributeAccess, Computation, Instruction
from hlotool.ir.opcodes import Class, by_opcode
from hlotool.ir.types import (
    UNBOUNDED,
    ArrayShape,
    BufferShape,
    ElementType,
    Shape,
    TokenShape,
    TupleShape,
)


def same_type(a: ElementType, b: ElementType, mixed_precision: bool = False) -> bool:
    """Equal, or with `mixed_precision` both floating point of any width."""
    return a is b or (mixed_precision and a.is_floating and b.is_floating)


def same_sizes(a: int, b: int) -> bool:
    """Equal, or one is unbounded."""
    return a == b or UNBOUNDED in (a, b)


def same_dimensions(a: ArrayShape, b: ArrayShape) -> bool:
    """Equal rank and sizes; dynamic flags do not matter, and an unbounded size fits any."""
    return a.dims == b.dims or (a.rank == b.rank and all(map(same_sizes, a.dims, b.dims)))


def compatible(a: Shape, b: Shape, mixed_precision: bool = False, any_type: bool = False) -> bool:
    """Whether a value of shape `a` may stand where `b` is expected: layouts and dynamic flags do not matter.

    Args:
        a: one shape.
        b: the other one.
        mixed_precision: floating-point types of different widths count as equal.
        any_type: element types do not matter at all.
    """
    if a is b:
        return True
    match a, b:
        case ArrayShape(), ArrayShape():
            typed = any_type or same_type(a.element_type, b.element_type, mixed_precision)
            return typed and same_dimensions(a, b)
        case TupleShape(), TupleShape():
            return len(a.elements) == len(b.elements) and all(
                compatible(x, y, mixed_precision, any_type) for x, y in zip(a.elements, b.elements)
            )
        case BufferShape(), BufferShape():
            return compatible(a.array, b.array, mixed_precision, any_type)
        case _:
            return type(a) is type(b) and not isinstance(a, (ArrayShape, TupleShape, BufferShape))


def higher_precision(a: ElementType, b: ElementType) -> ElementType:
    """The type that holds more of the two, range before digits; `a` when they are the same."""
    return b if _precision(b) > _precision(a) else a


def _precision(element_type: ElementType) -> tuple[bool, int, int, int, bool]:
    part = element_type.real_part
    exponent, digits = -1, -1
    if part.is_floating:
        info = (np.finfo if part.bits >= 32 else ml_dtypes.finfo)(dtype_of(part))
        exponent, digits = int(info.maxexp), int(info.nmant)
    return element_type.is_complex, exponent, digits, part.bits, part.is_signed


_CLASSES = frozenset((Class.DATA_MOVEMENT, Class.ELEMENTWISE, Class.INDEXING))
#: Their types differ by what they are, or are no numbers to them.
_CONVERSIONS = frozenset(("bitcast", "bitcast-convert", "convert", "stochastic-convert"))


def implied_source(instruction: Instruction) -> ElementType | None:
    """The float type that an instruction converts from without saying so; None where it converts nothing."""
    shape = instruction.shape
    if not isinstance(shape, ArrayShape) or not shape.element_type.is_floating:
        return None
    if instruction.opcode in _CONVERSIONS or instruction.row.opcode_class not in _CLASSES:
        return None
    own = shape.element_type
    types = [o.shape.element_type for o in instruction.operands if isinstance(o.shape, ArrayShape)]
    if types.count(own) == len(types):
        return None
    floats = [t for t in types if t.is_floating]
    return None if all(t is own for t in floats) else reduce(higher_precision, floats)


PRED_SCALAR = ArrayShape(ElementType.PRED, ())
S32_SCALAR = ArrayShape(ElementType.S32, ())
U32_SCALAR = ArrayShape(ElementType.U32, ())


@dataclass(frozen=True, slots=True)
class Op(AttributeAccess):
    """An operation whose shape is asked for.

    Attributes:
        opcode: HLO name.
        operands: shapes of the operands.
        attributes: by HLO name.
        stated: the result shape that the program states; None while it is being inferred.
        mixed_precision: the stated shape may differ in floating-point width.
    """

    opcode: str
    operands: Sequence[Shape]
    attributes: Mapping[str, AttributeValue]
    stated: Shape | None = None
    mixed_precision: bool = True

    def computation(self, name: str) -> Computation:
        """The one computation that is called as `name`."""
        return self.attribute(name, Computation)

    def array(self, index: int, role: str = "") -> ArrayShape:
        """The shape of an operand that must be an array."""
        return self.as_array(self.operands[index], role or f"operand {index}")

    def arrays(self) -> list[ArrayShape]:
        """The shapes of all operands, which must be arrays."""
        return [self.array(i) for i in range(len(self.operands))]

    def some_arrays(self) -> list[ArrayShape]:
        """The shapes of all operands, one at least, which must be arrays."""
        self.check(bool(self.operands), "operand-count", f"{self.opcode} needs at least one operand")
        return self.arrays()

    def as_array(self, shape: Shape | None, role: str) -> ArrayShape:
        """`shape`, which must be an array."""
        if not isinstance(shape, ArrayShape):
            raise self.error("array-expected", f"{role} must be an array, not {shape}")
        return shape

    def stated_array(self) -> ArrayShape:
        """The stated result, which must be an array."""
        return self.as_array(self.stated, "the result")

    def scalar(self, index: int, role: str) -> ArrayShape:
        """The shape of an operand that must be a static scalar."""
        shape = self.array(index, role)
        if shape.dims:
            raise self.error("scalar-expected", f"{role} must be a scalar, not {shape.logical_text()}")
        return shape

    def token(self, index: int) -> None:
        """An operand must be a token."""
        if not isinstance(self.operands[index], TokenShape):
            raise self.error("token-expected", f"operand {index} must be token[], not {self.operands[index]}")

    def dimensions(self, name: str, rank: int, what: str = "the operand") -> Ints:
        """A list of distinct dimension numbers below `rank`."""
        values = self.integers(name, ())
        for value in values:
            self.check(
                0 <= value < rank,
                "dimension-range",
                f"{name}: dimension {value} is out of range, {what} has rank {rank}",
            )
        self.check(
            len(set(values)) == len(values), "dimension-repeated", f"{name} repeats a dimension: {values}"
        )
        return values

    def position(self, name: str, size: int) -> int:
        """The attribute `name`, a number below `size`."""
        value = self.integer(name)
        self.check_value(0 <= value < size, f"{name} must be within [0, {size}), not {value}")
        return value

    def word(self, name: str, allowed: Sequence[str], default: str | None = None) -> str:
        """The attribute `name`, one of the words that are `allowed`."""
        value = self.text(name) if default is None else self.text(name, default)
        wanted = ", ".join(allowed)
        self.check_value(value in allowed, f"{name} must be one of {wanted}, not {value}")
        return value

    def check_count(self, found: int, needed: int, demand: str, rule: str = "attribute-value") -> None:
        """There must be as many as needed, as `demand` says in words."""
        self.check(found == needed, rule, f"{demand}: {needed}, not {found}")

    def elements(self, shape: Shape | None, demand: str) -> tuple[Shape, ...]:
        """The elements of `shape`, which must be a tuple of two at least, as `demand` says in words."""
        if not isinstance(shape, TupleShape) or len(shape.elements) < 2:
            raise self.error("shape-mismatch", f"{demand}, not {shape}")
        return shape.elements

    def only_dimension(self, rank: int) -> int:
        """The single entry of `dimensions`, below `rank`."""
        values = self.integers("dimensions", ())
        self.check_value(len(values) == 1, f"dimensions must hold one number, not {len(values)}")
        return self.dimensions("dimensions", rank)[0]

    def check(self, holds: bool, rule: str, message: str) -> None:
        """Raise a VerificationError unless `holds`."""
        if not holds:
            raise self.error(rule, message)

    def check_shape(self, holds: bool, message: str) -> None:
        """Dimensions must fit each other."""
        self.check(holds, "shape-mismatch", message)

    def check_type(self, holds: bool, message: str) -> None:
        """Element types must fit the operation and each other."""
        self.check(holds, "element-type", message)

    def check_value(self, holds: bool, message: str) -> None:
        """An attribute must have a possible value."""
        self.check(holds, "attribute-value", message)

    def check_callee(self, holds: bool, message: str) -> None:
        """A called computation must take what it is given, and return what is needed."""
        self.check(holds, "callee-signature", message)


InferRule = Callable[[Op], Shape]
CheckRule = Callable[[Op], None]
INFER_RULES: dict[str, InferRule] = {}
CHECK_RULES: dict[str, CheckRule] = {}


def infers(*opcodes: str) -> Callable[[InferRule], InferRule]:
    """Register the rule that gives the result shape of `opcodes`."""
    return by_opcode(INFER_RULES, opcodes)


def checks(*opcodes: str) -> Callable[[CheckRule], CheckRule]:
    """Register the rule that judges the stated result shape of `opcodes`.

    It stands in for a comparison with the inferred shape: for opcodes without an infer rule, and for those
    that allow more than one shape.
    """
    return by_opcode(CHECK_RULES, opcodes)


def array_of(element_type: ElementType, dims: Iterable[int], dynamic: Iterable[bool] = ()) -> ArrayShape:
    """An array without layout; unbounded sizes are dynamic whatever `dynamic` says."""
    sizes = tuple(dims)
    flags = tuple(dynamic) or (False,) * len(sizes)
    flags = tuple(flag or size == UNBOUNDED for flag, size in zip(flags, sizes))
    return ArrayShape(element_type, sizes, flags if any(flags) else ())


def array_of_pairs(element_type: ElementType, dims: Sequence[tuple[int, bool]]) -> ArrayShape:
    """An array without layout of dimensions that are given as sizes and flags."""
    return array_of(element_type, [size for size, _ in dims], [flag for _, flag in dims])


def flags_of(shape: ArrayShape) -> list[bool]:
    """One dynamic flag per dimension."""
    return [shape.is_dynamic_dimension(i) for i in range(shape.rank)]


def tuple_of(shapes: Iterable[Shape]) -> TupleShape:
    """A tuple of `shapes`."""
    return TupleShape(tuple(shapes))


def one_or_tuple(shapes: Sequence[Shape]) -> Shape:
    """The only shape, or a tuple of several: what variadic operations return."""
    return shapes[0] if len(shapes) == 1 else tuple_of(shapes)


class Signature(Struct, frozen=True):
    """What a computation takes and returns."""

    parameters: tuple[Shape, ...]
    result: Shape

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.parameters))}) -> {self.result}"


def signature(computation: Computation) -> Signature:
    """Parameter shapes by number, and the root's shape."""
    return Signature(tuple(p.shape for p in computation.parameters), computation.root.shape)


def check_parameter_count(op: Op, name: str, callee: Signature, count: int) -> None:
    """The computation called `name` must take `count` parameters."""
    op.check_callee(
        len(callee.parameters) == count,
        f"{name} must take {count} parameters, it takes {len(callee.parameters)}",
    )


def check_reducer(
    op: Op,
    name: str,
    init_types: Sequence[ElementType],
    input_types: Sequence[ElementType],
) -> Signature:
    """The computation `name` must be (accumulators…, elements…) -> accumulators, all scalars.

    Types may differ in floating-point precision. XLA: shape_inference.cc VerifyReducerShape.

    Returns:
        Its signature.
    """
    count = len(input_types)
    reducer = signature(op.computation(name))
    check_parameter_count(op, name, reducer, 2 * count)
    results = reducer.result.elements if isinstance(reducer.result, TupleShape) else (reducer.result,)
    op.check_callee(
        len(results) == count and all(isinstance(r, ArrayShape) and not r.dims for r in results),
        f"{name} must return {count} scalars (in a tuple if more than 1), it returns {reducer.result}",
    )
    for i, accumulator in enumerate(results):
        op.check_callee(
            compatible(accumulator, reducer.parameters[i]),
            f"{name} returns {accumulator} but its parameter {i} is {reducer.parameters[i]}",
        )
        assert isinstance(accumulator, ArrayShape)
        for role, wanted, got in (
            (f"initial value {i}", init_types[i], accumulator),
            (f"element type of input {i}", input_types[i], reducer.parameters[count + i]),
            (f"result {i}", accumulator.element_type, reducer.parameters[count + i]),
        ):
            op.check_callee(
                compatible(ArrayShape(wanted, ()), got, mixed_precision=True),
                f"{name}: {role} is {wanted}[], which does not fit {got}",
            )
    return reducer


def check_same_types(op: Op, shapes: Sequence[ArrayShape]) -> None:
    """All element types must agree, up to floating-point precision."""
    first = shapes[0].element_type
    for shape in shapes[1:]:
        op.check_type(
            same_type(first, shape.element_type, mixed_precision=True),
            f"operands of {op.opcode} must have one element type, not {first} and {shape.element_type}",
        )


def check_same_dimensions(op: Op, what: str, shapes: Sequence[ArrayShape]) -> None:
    """All sizes must agree; `what` names the shapes."""
    for shape in shapes[1:]:
        op.check_shape(
            same_dimensions(shape, shapes[0]),
            f"{what} must have the same dimensions: {shapes[0].logical_text()} and {shape.logical_text()}",
        )
