"""Element by element: operands and result have one shape.

XLA: shape_inference.cc (InferUnaryOpShape, InferBinaryOpShape, InferClampShape, InferSelectShape,
InferMapShape), hlo_verifier.cc (CheckElementwiseInstruction: no implicit broadcast).
"""

from __future__ import annotations

from msgspec.structs import replace

from hlotool.ir.attributes import default_comparison
from hlotool.ir.opcodes import OPCODES, Class, opcodes_with
from hlotool.ir.shapes.base import (
    Op,
    array_of,
    array_of_pairs,
    check_parameter_count,
    check_same_types,
    checks,
    compatible,
    flags_of,
    higher_precision,
    infers,
    same_dimensions,
    same_type,
    signature,
)
from hlotool.ir.types import UNBOUNDED, ArrayShape, ElementType, Shape, TypeClass

_ELEMENTWISE = [OPCODES[name] for name in opcodes_with(Class.ELEMENTWISE)]
_UNARY = [row.name for row in _ELEMENTWISE if row.max_operands == 1 and row.name != "convert"]
_BINARY = [row.name for row in _ELEMENTWISE if row.max_operands == 2 and row.name != "stochastic-convert"]
_INTEGERS = frozenset({TypeClass.SIGNED, TypeClass.UNSIGNED})
_FLOATS = frozenset({TypeClass.FLOATING})
_INEXACT = _FLOATS | {TypeClass.COMPLEX}
#: What families of element types are called together.
_DESCRIBED = {
    _INTEGERS: "integer",
    _INTEGERS | {TypeClass.PRED}: "pred or integer",
    _FLOATS: "floating-point",
    _INEXACT: "floating-point or complex",
    _INEXACT | {TypeClass.SIGNED}: "signed, floating-point or complex",
    _INEXACT | _INTEGERS: "numeric",
    frozenset(TypeClass): "any",
}


def _check_type(op: Op, shape: ArrayShape) -> None:
    families = OPCODES[op.opcode].families
    op.check_type(
        shape.element_type.family in families,
        f"operands of {op.opcode} must be {_DESCRIBED[families]}, not {shape.element_type}",
    )


@infers(*_UNARY)
def infer_unary(op: Op) -> Shape:
    """The operand's shape; parts of complex numbers are real, `is-finite` gives pred."""
    shape = op.array(0)
    _check_type(op, shape)
    if op.opcode in ("abs", "real", "imag"):
        return replace(shape, element_type=shape.element_type.real_part)
    if op.opcode == "is-finite":
        return replace(shape, element_type=ElementType.PRED)
    if op.opcode == "reduce-precision":
        _check_precision(op)
    return shape


def _check_precision(op: Op) -> None:
    exponent, mantissa = op.integer("exponent_bits"), op.integer("mantissa_bits")
    op.check_value(exponent >= 1, f"exponent_bits must be at least 1, not {exponent}")
    op.check_value(mantissa >= 0, f"mantissa_bits must not be negative: {mantissa}")


@infers(*_BINARY)
def infer_binary(op: Op) -> Shape:
    """The operands' common shape; compare gives pred, complex joins two real arrays."""
    lhs, rhs = op.array(0), op.array(1)
    check_same_types(op, (lhs, rhs))
    if op.opcode != "complex":
        _check_type(op, lhs)
    element_type = higher_precision(lhs.element_type, rhs.element_type)
    if op.opcode == "compare":
        _check_comparison(op)
        element_type = ElementType.PRED
    elif op.opcode == "complex":
        whole = {ElementType.F32: ElementType.C64, ElementType.F64: ElementType.C128}
        op.check_type(
            lhs.element_type in whole, f"operands of complex must be f32 or f64, not {lhs.element_type}"
        )
        op.check_type(lhs.element_type is rhs.element_type, "both parts must have one type")
        element_type = whole[lhs.element_type]
    return _merge(op, lhs, rhs, element_type)


def _merge(op: Op, lhs: ArrayShape, rhs: ArrayShape, element_type: ElementType) -> ArrayShape:
    """The more specific sizes of two shapes that must not need a broadcast."""
    op.check(
        same_dimensions(lhs, rhs),
        "implicit-broadcast",
        f"operands of {op.opcode} must have one shape (HLO broadcasts only explicitly): "
        f"{lhs.logical_text()} and {rhs.logical_text()}",
    )
    if not (lhs.is_dynamic or rhs.is_dynamic):
        return lhs if lhs.element_type is element_type else replace(lhs, element_type=element_type)
    merged = [_merge_sizes(*d) for d in zip(lhs.dims, flags_of(lhs), rhs.dims, flags_of(rhs))]
    return replace(array_of_pairs(element_type, merged), layout=lhs.layout)


def _merge_sizes(left: int, left_dynamic: bool, right: int, right_dynamic: bool) -> tuple[int, bool]:
    """XLA: InferDegenerateDimensionBroadcastShape. An unbounded size beside a 1 may turn out larger."""
    if left == right:
        return left, left_dynamic or right_dynamic
    if left == UNBOUNDED:
        return (UNBOUNDED, True) if right == 1 else (right, right_dynamic)
    return (UNBOUNDED, True) if left == 1 else (left, left_dynamic)


def _check_comparison(op: Op) -> None:
    """Direction and type must exist and fit the operands."""
    op.word("direction", ("EQ", "NE", "GE", "GT", "LE", "LT"))
    stated = op.attribute("type", str, None)
    default = default_comparison(op.array(1).element_type)
    allowed = (default, "TOTALORDER") if op.array(1).element_type.is_floating else (default,)
    op.check_value(
        stated is None or stated in allowed,
        f"type must be {' or '.join(allowed)} for {op.array(1).element_type}, not {stated}",
    )


@checks("stochastic-convert")
def check_stochastic_convert(op: Op) -> None:
    """A float and unsigned random bits of its width; the result may be any array type."""
    operand, random = op.array(0), op.array(1)
    _check_type(op, operand)
    op.check_type(
        random.element_type.is_unsigned and random.element_type.bits == operand.element_type.bits,
        f"random bits for {operand.element_type} must be u{operand.element_type.bits}, "
        f"not {random.element_type}",
    )
    is_right = all(compatible(operand, other, any_type=True) for other in (random, op.stated_array()))
    op.check_shape(is_right, f"operands and result must have the dimensions {operand.dims}")


@infers("clamp")
def infer_clamp(op: Op) -> Shape:
    """The middle operand's shape; the limits are scalars or have it too."""
    low, operand, high = op.arrays()
    check_same_types(op, (low, operand, high))
    for limit, role in ((low, "minimum"), (high, "maximum")):
        op.check_shape(
            not limit.dims or same_dimensions(limit, operand),
            f"the {role} must be a scalar or have the operand's shape {operand.logical_text()}, "
            f"not {limit.logical_text()}",
        )
    return operand


@infers("select")
def infer_select(op: Op) -> Shape:
    """The shape of both choices; the predicate is a scalar or has it too."""
    predicate, on_true, on_false = op.arrays()
    _check_select(op, predicate, on_true, on_false)
    element_type = higher_precision(on_true.element_type, on_false.element_type)
    shape = on_true if predicate.rank == 0 else replace(predicate, layout=predicate.layout or on_true.layout)
    if not (predicate.is_dynamic or on_true.is_dynamic or on_false.is_dynamic):
        return replace(shape, element_type=element_type)
    chosen = [
        _merge_choice(*d) for d in zip(on_true.dims, flags_of(on_true), on_false.dims, flags_of(on_false))
    ]
    flags = flags_of(predicate) if predicate.dims else [False] * on_true.rank
    dims = [size for size, _ in chosen]
    return array_of(element_type, dims, [dynamic or flag for (_, dynamic), flag in zip(chosen, flags)])


def _check_select(op: Op, predicate: ArrayShape, on_true: ArrayShape, on_false: ArrayShape) -> None:
    op.check_type(
        predicate.element_type is ElementType.PRED,
        f"the first operand of select must be pred, not {predicate.element_type}",
    )
    check_same_types(op, (on_true, on_false))
    op.check_shape(
        same_dimensions(on_true, on_false) and (not predicate.dims or same_dimensions(predicate, on_true)),
        f"select needs two choices of one shape, and a predicate that is a scalar or has it too: "
        f"{predicate.logical_text()}, {on_true.logical_text()}, {on_false.logical_text()}",
    )


def _merge_choice(left: int, left_dynamic: bool, right: int, right_dynamic: bool) -> tuple[int, bool]:
    if UNBOUNDED in (left, right):
        return max(left, right), left_dynamic and right_dynamic
    return left, left_dynamic or right_dynamic


@infers("map")
def infer_map(op: Op) -> Shape:
    """The operands' dimensions with the type that `to_apply` returns for their scalars."""
    shapes = op.some_arrays()
    largest = max(shapes, key=lambda shape: shape.rank)
    for shape in shapes:
        op.check_shape(
            not shape.dims or same_dimensions(shape, largest),
            f"operands of map must have one shape, not {shape.logical_text()} and {largest.logical_text()}",
        )
    dimensions = op.integers("dimensions", ())
    op.check_value(
        not dimensions or dimensions == tuple(range(largest.rank)),
        f"dimensions of map must be all of the operand's, in order: {tuple(range(largest.rank))}",
    )
    return array_of(_mapped_type(op, shapes), largest.dims, largest.dynamic)


def _mapped_type(op: Op, shapes: list[ArrayShape]) -> ElementType:
    """What `to_apply` returns, which must take one scalar per operand."""
    applied = signature(op.computation("to_apply"))
    check_parameter_count(op, "to_apply", applied, len(shapes))
    for i, (parameter, shape) in enumerate(zip(applied.parameters, shapes)):
        parameter = op.as_array(parameter, f"parameter {i} of to_apply")
        op.check_callee(
            not parameter.dims
            and same_type(parameter.element_type, shape.element_type, mixed_precision=True),
            f"parameter {i} of to_apply must be {shape.element_type}[], not {parameter}",
        )
    result = op.as_array(applied.result, "the result of to_apply")
    op.check_callee(not result.dims, f"to_apply must return a scalar, not {result}")
    return result.element_type
