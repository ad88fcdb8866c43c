"""Single elementwise operations as C++ expressions over the values of their operands.

The semantics are those of the numpy reference; `prelude` has what C++ does otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlotool.backends.cuda.codegen.elements import (
    NotGenerated,
    computed,
    converted,
    element_type,
    finished,
    literal,
    of_patterns,
    patterns,
)
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType, TypeClass

#: Functions of C that are called like the opcode.
_LIBRARY = "floor ceil sqrt cbrt tan asin acos sinh cosh asinh acosh atanh"
#: By opcode; {0}, {1}, … are the operands, BITS the width of the type.
_FLOATS = {
    **{name: f"{name}({{0}})" for name in _LIBRARY.split()},
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "multiplied({0}, {1})",
    "divide": "{0} / {1}",
    "remainder": "fmod({0}, {1})",
    "power": "pow({0}, {1})",
    "atan2": "atan2({0}, {1})",
    "maximum": "float_max({0}, {1})",
    "minimum": "float_min({0}, {1})",
    "clamp": "float_min(float_max({0}, {1}), {2})",
    "negate": "-{0}",
    "abs": "fabs({0})",
    "sign": "float_sign({0})",
    "round-nearest-even": "rint({0})",
    "round-nearest-afz": "round({0})",
    "is-finite": "{0} - {0} == 0",
    "real": "{0}",
    "imag": "0",
    "rsqrt": "1 / sqrt({0})",
    "exponential": "exponential({0})",
    "exponential-minus-one": "exponential_minus_one({0})",
    "log": "natural_log({0})",
    "log-plus-one": "log_plus_one({0})",
    "logistic": "1 / (exponential(-{0}) + 1)",
    "sine": "sin({0})",
    "cosine": "cos({0})",
    "tanh": "hyperbolic_tangent({0})",
    "erf": "error_function({0})",
    "complex": "make_complex({0}, {1})",
}
_INTEGERS = {
    "add": "wrap_add({0}, {1})",
    "subtract": "wrap_subtract({0}, {1})",
    "multiply": "wrap_multiply({0}, {1})",
    "divide": "integer_divide({0}, {1})",
    "remainder": "integer_remainder({0}, {1})",
    "power": "integer_power({0}, {1})",
    "mulhi": "multiply_high<BITS>({0}, {1})",
    "maximum": "integer_max({0}, {1})",
    "minimum": "integer_min({0}, {1})",
    "clamp": "integer_min(integer_max({0}, {1}), {2})",
    "negate": "wrap_negate({0})",
    "abs": "wrap_abs({0})",
    "sign": "integer_sign({0})",
    "and": "{0} & {1}",
    "or": "{0} | {1}",
    "xor": "{0} ^ {1}",
    "not": "~{0}",
    "shift-left": "shift_left<BITS>({0}, {1})",
    "shift-right-logical": "shift_right_logical<BITS>({0}, {1})",
    "shift-right-arithmetic": "shift_right_arithmetic<BITS>({0}, {1})",
    "count-leading-zeros": "leading_zeros<BITS>({0})",
    "popcnt": "bit_count<BITS>({0})",
}
_PREDS = {
    "add": "{0} | {1}",
    "multiply": "{0} & {1}",
    "maximum": "{0} | {1}",
    "minimum": "{0} & {1}",
    "clamp": "({0} | {1}) & {2}",
    "and": "{0} & {1}",
    "or": "{0} | {1}",
    "xor": "{0} ^ {1}",
    "not": "!{0}",
}
_COMPLEX = {
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "negate": "-{0}",
    "divide": "{0} / {1}",
    "power": "complex_power({0}, {1})",
    "atan2": "complex_atan2({0}, {1})",
    "abs": "complex_abs({0})",
    "sign": "complex_sign({0})",
    "real": "{0}.re",
    "imag": "{0}.im",
    "sqrt": "complex_sqrt({0})",
    "rsqrt": "complex_rsqrt({0})",
    "exponential": "complex_exp({0})",
    "exponential-minus-one": "complex_expm1({0})",
    "log": "complex_log({0})",
    "log-plus-one": "complex_log1p({0})",
    "logistic": "complex_logistic({0})",
    "sine": "complex_sin({0})",
    "cosine": "complex_cos({0})",
    "tan": "complex_tan({0})",
    "tanh": "complex_tanh({0})",
}
_BY_FAMILY = {
    TypeClass.FLOATING: _FLOATS,
    TypeClass.SIGNED: _INTEGERS,
    TypeClass.UNSIGNED: _INTEGERS,
    TypeClass.PRED: _PREDS,
    TypeClass.COMPLEX: _COMPLEX,
}
#: What hardware computes in bf16 itself, without a conversion of its own.
_OF_BF16 = {
    "add": "bf16_sum({0}, {1})",
    "subtract": "bf16_difference({0}, {1})",
    "multiply": "bf16_product({0}, {1})",
}
_RELATIONS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}

#: Operations whose result is one of the operands, or is exact: nothing to round.
_EXACT = frozenset({"abs", "clamp", "is-finite", "maximum", "minimum", "negate", "real", "sign"})

#: Floats that lack the negative of some number: negation rounds.
_UNSIGNED = (
    ElementType.F8E4M3FNUZ,
    ElementType.F8E4M3B11FNUZ,
    ElementType.F8E5M2FNUZ,
    ElementType.F8E8M0FNU,
)


def is_elementwise(instruction: Instruction) -> bool:
    """Whether `expression` writes it: conversions of bits are elementwise between types of equal width."""
    if instruction.opcode != "bitcast-convert":
        return instruction.opcode in ELEMENTWISE
    return element_type(instruction).bits == element_type(instruction.operands[0]).bits


def expression(instruction: Instruction, values: Sequence[str]) -> str:
    """The value of an elementwise instruction at one index.

    Args:
        instruction: whose opcode is in ELEMENTWISE.
        values: names of the operands' values at that index.

    Raises:
        NotGenerated: the operation is not written for these types.
    """
    kinds = [element_type(operand) for operand in instruction.operands]
    special = _SPECIAL.get(instruction.opcode)
    if special is not None:
        return special(instruction, kinds, values)
    common, values = _in_common(instruction, kinds, values)
    return _operation(instruction, common, values)


def binary(opcode: str, kind: ElementType, left: str, right: str) -> str:
    """The operation `opcode` on two values of `kind`; raises as `expression` does."""
    return _operation(Instruction(opcode, opcode, ArrayShape(kind, ())), kind, (left, right))


def _in_common(
    instruction: Instruction, kinds: Sequence[ElementType], values: Sequence[str]
) -> tuple[ElementType, list[str]]:
    """Operands in the widest of their types, and this type; XLA mixes floats of several precisions."""
    widest = max(kinds, key=lambda kind: kind.bits)
    if all(kind is widest for kind in kinds):
        return widest, list(values)
    if any(kind.family is not widest.family for kind in kinds):
        raise NotGenerated("operands of unequal types", instruction)
    held = ElementType.F32 if widest.is_narrow_float else widest
    return held, [converted(value, kind, held) for value, kind in zip(values, kinds)]


def _operation(instruction: Instruction, kind: ElementType, values: Sequence[str]) -> str:
    """The operation of `instruction` on values of `kind`, rounded to its declared type."""
    template, result = _BY_FAMILY[kind.family].get(instruction.opcode), element_type(instruction)
    if template is None:
        raise NotGenerated(f"not written for {kind}", instruction)
    if kind is result is ElementType.BF16 and instruction.opcode in _OF_BF16:
        return _OF_BF16[instruction.opcode].format(*values)
    text = template.replace("BITS", str(kind.bits)).format(*values)
    if kind.is_floating and instruction.opcode in _EXACT and result is kind:
        return finished(text, kind) if instruction.opcode == "negate" and kind in _UNSIGNED else text
    if result is kind:
        return finished(text, kind, is_from_kind=True)
    return finished(f"({computed(result)})({text})", result)


def _select(instruction: Instruction, kinds: Sequence[ElementType], values: Sequence[str]) -> str:
    result = element_type(instruction)
    chosen = [converted(value, kind, result) for value, kind in zip(values[1:], kinds[1:])]
    return f"{values[0]} ? {chosen[0]} : {chosen[1]}"


def _convert(instruction: Instruction, kinds: Sequence[ElementType], values: Sequence[str]) -> str:
    return converted(values[0], kinds[0], element_type(instruction))


def _copy(instruction: Instruction, kinds: Sequence[ElementType], values: Sequence[str]) -> str:
    return values[0]


def _compare(instruction: Instruction, kinds: Sequence[ElementType], values: Sequence[str]) -> str:
    relation = _RELATIONS.get(instruction.text("direction"))
    common, values = _in_common(instruction, kinds, values)
    if relation is None or (common.is_complex and relation not in ("==", "!=")):
        raise NotGenerated("no such comparison", instruction)
    total = instruction.attributes.get("type") == "TOTALORDER" and common.is_floating
    a, b = (f"order_key({v})" if total else v for v in values)
    return f"{a} {relation} {b}"


def _reduce_precision(instruction: Instruction, kinds: Sequence[ElementType], values: Sequence[str]) -> str:
    """f4 and f8 are reduced as f16, as on XLA's CPU; bf16 and f8e8m0fnu as the f32 that they are held in."""
    exponent, mantissa = (instruction.attributes.get(f"{n}_bits") for n in ("exponent", "mantissa"))
    as_f16 = kinds[0].is_narrow_float and kinds[0] not in (ElementType.BF16, ElementType.F8E8M0FNU)
    suffix = "_f16" if as_f16 else ""
    return finished(f"reduce_precision{suffix}<{exponent}, {mantissa}>({values[0]})", kinds[0])


def _bitcast_convert(instruction: Instruction, kinds: Sequence[ElementType], values: Sequence[str]) -> str:
    source, target = kinds[0], element_type(instruction)
    if source.bits != target.bits:
        raise NotGenerated(f"from {source} to {target} it is not elementwise", instruction)
    return of_patterns(patterns(values[0], source), target)


def _stochastic_convert(instruction: Instruction, kinds: Sequence[ElementType], values: Sequence[str]) -> str:
    """XLA: hlo_evaluator.cc (StochasticConvertOp)."""
    source, noise = kinds
    target = element_type(instruction)
    if not (source.is_floating and noise.is_unsigned and target.is_integer):
        raise NotGenerated(f"not written from {source} and {noise} to {target}", instruction)
    held = ElementType.F32 if source.is_narrow_float else source
    return converted(f"stochastically_rounded<{noise.bits}>({values[0]}, {values[1]})", held, target)


_SPECIAL = {
    "bitcast-convert": _bitcast_convert,
    "compare": _compare,
    "convert": _convert,
    "copy": _copy,
    "reduce-precision": _reduce_precision,
    "select": _select,
    "stochastic-convert": _stochastic_convert,
}

#: Opcodes that `expression` writes.
ELEMENTWISE = _SPECIAL.keys() | frozenset().union(*_BY_FAMILY.values())


def constant(instruction: Instruction) -> str:
    """The expression of a scalar constant.

    Raises:
        NotGenerated: its value is not in the text.
    """
    if instruction.literal is None or instruction.literal.has_elided:
        raise NotGenerated("constant without a value", instruction)
    return literal(instruction.literal.array.reshape(()), element_type(instruction))
