"""What XLA's implementations compute unlike this backend, although neither is wrong: known, and by a rule.

A rule executes one opcode as the other implementation does. A result that a program gives under a rule, and
not without it, is explained by that rule and is no fault. `hlotool/lab/conformance/departures.toml` has an
example of each, measured on XLA.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, TypeAlias

import numpy as np
from msgspec import structs

from hlotool.backends.base import DevicesExecutable as DevicesProtocol
from hlotool.backends.base import Executable
from hlotool.backends.numpy.convolutions import has_groups, has_holes, without_groups, without_holes
from hlotool.backends.numpy.executables import DevicesExecutable, NumpyExecutable
from hlotool.backends.numpy.lanes import lanes
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.plan import Run
from hlotool.backends.numpy.registry import RULES, Calling, Kernel, Reading
from hlotool.facts.scalar_form import identities, neutral_value
from hlotool.ir.arrays import Array, dtype_of, integer_limits
from hlotool.ir.devices import ONE_DEVICE, DeviceGrid
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType

_Function: TypeAlias = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Departure:
    """A rule.

    Attributes:
        id: as in the table of departures.
        text: what XLA does, to be read after "XLA".
        opcode: that it speaks of.
        applies: to which instructions of that opcode.
        kernel: how the instruction is executed under the rule, from its usual kernel.
    """

    id: str
    text: str
    opcode: str
    applies: Callable[[Instruction], bool]
    kernel: Callable[[Instruction, _Function, Lowering], _Function]

    def occurs_in(self, module: Module) -> bool:
        """Whether some instruction of `module` is executed in another way."""
        return any(self.concerns(instruction) for instruction in module.instructions())

    def concerns(self, instruction: Instruction) -> bool:
        """Whether `instruction` is executed in another way."""
        return instruction.opcode == self.opcode and self.applies(instruction)


def _is_integer(instruction: Instruction) -> bool:
    kind = instruction.array_type
    return kind is not None and kind.is_integer


def _is_signed(instruction: Instruction) -> bool:
    kind = instruction.array_type
    return kind is not None and kind.is_signed


def _where(condition: Any, one: Any, other: Any, like: Any) -> Any:
    return np.where(condition, one, other).astype(like.dtype)[()]


def _six_bits(_: Instruction, kernel: _Function, __: Lowering) -> _Function:
    def power(base: Any, exponent: Any) -> Any:
        low = np.bitwise_and(exponent, exponent.dtype.type(63))
        return kernel(base, _where(exponent < 0, exponent, low, exponent))

    return power


def _zero_below(_: Instruction, kernel: _Function, __: Lowering) -> _Function:
    return lambda base, exponent: _where(exponent < 0, 0, kernel(base, exponent), base)


def _sign_extended(instruction: Instruction, kernel: _Function, _: Lowering) -> _Function:
    kind = instruction.array_type
    assert kind is not None
    return lambda x: _where(x < 0, kind.bits - 64, kernel(x), x)


def _saturated(instruction: Instruction, _: _Function, lowering: Lowering) -> _Function:
    low, high = integer_limits(instruction.element_type)
    wide = replace(instruction, shape=structs.replace(instruction.array_shape, element_type=ElementType.S32))
    kernel, dtype = _plain(RULES[instruction.opcode](wide, lowering)), dtype_of(instruction.element_type)
    return lambda *operands: np.clip(kernel(*operands), low, high).astype(dtype)


def _infinite_for_nan(_: Instruction, kernel: _Function, __: Lowering) -> _Function:
    return lambda x: _where(np.isnan(x), np.copysign(x.dtype.type(np.inf), x), kernel(x), x)


def _positive_scale(instruction: Instruction, kernel: _Function, _: Lowering) -> _Function:
    smallest = np.uint8(0).view(dtype_of(ElementType.F8E8M0FNU))

    def convert(x: Any) -> Any:
        positive = kernel(np.abs(x))
        return np.where(np.equal(x, 0), smallest, positive)[()]

    return convert


def _zero_for_infinity(_: Instruction, kernel: _Function, __: Lowering) -> _Function:
    return lambda x: np.where(np.isfinite(x), kernel(x), np.zeros((), kernel(x).dtype))[()]


def _six_saturates(instruction: Instruction, kernel: _Function, _: Lowering) -> _Function:
    kind = instruction.array_type
    assert kind is not None
    low, high = integer_limits(kind)

    def convert(x: Any) -> Any:
        wide, usual = x.astype(np.float32), kernel(x)
        return _where(wide == 6, high, _where(wide == -6, low, usual, usual), usual)

    return convert


def _zero_far_below(_: Instruction, kernel: _Function, __: Lowering) -> _Function:
    return lambda x: _where(x.astype(np.float32) < -11.09, 0, kernel(x), x)


def _element_itself(instruction: Instruction, kernel: _Function, _: Lowering) -> _Function:
    axes = instruction.integers("dimensions")

    def reduce(x: Any, init: Any) -> Any:
        return x.squeeze(axes) if all(x.shape[a] == 1 for a in axes) else kernel(x, init)

    return reduce


#: XLA's CPU compiler cuts reductions of fewer elements into windows of so many along each dimension.
_IN_WINDOWS, WINDOW = 4096, 32


def _init_of_each_window(instruction: Instruction, kernel: _Function, lowering: Lowering) -> _Function:
    axes = instruction.integers("dimensions")
    to_apply = instruction.computation("to_apply")
    combine = lanes(to_apply, lowering)

    def reduce(x: Any, init: Any) -> Any:
        total = np.asarray(init)
        sizes = [x.shape[axis] for axis in axes]
        while x.size < _IN_WINDOWS and any(size > WINDOW for size in sizes):
            sizes = [-(-size // WINDOW) for size in sizes]
            for _ in range(prod(sizes)):
                (total,) = combine(total, init)
        return kernel(x, total)

    return reduce


def _drops_nan(instruction: Instruction, kernel: _Function, lowering: Lowering) -> _Function:
    if len(lowering.grid) == 1:
        return kernel
    lowest = -np.inf if _reducer(instruction) == "maximum" else np.inf
    return lambda *operands: kernel(*(_where(np.isnan(x), lowest, x, x) for x in operands))


def _reducer(instruction: Instruction) -> str:
    return instruction.computation("to_apply").root.opcode


def _all_unknown(instruction: Instruction, kernel: _Function, _: Lowering) -> _Function:
    def solve(matrix: Array, right: Array) -> Any:
        singular = (np.diagonal(matrix, axis1=-2, axis2=-1) == 0).any(axis=-1)
        usual = kernel(matrix, right)
        return np.where(singular[..., None, None], usual.dtype.type(np.nan), usual)

    return solve


def _padding_skipped(_: Instruction, kernel: _Function, __: Lowering) -> _Function:
    def convolve(lhs: Array, rhs: Array) -> Any:
        def count(one: Array, other: Array) -> Any:
            """Elements with a term of these two that is no padding."""
            return kernel(one.astype(lhs.dtype), other.astype(rhs.dtype)) > 0

        def made_of(ones: Array, others: Array, *, negative: bool) -> Any:
            signs = [(ones > 0, others > 0), (ones < 0, others < 0)]
            if negative:
                signs = [(ones > 0, others < 0), (ones < 0, others > 0)]
            found = [count(a & np.isinf(ones), b) | count(a, b & np.isinf(others)) for a, b in signs]
            return found[0] | found[1]

        if np.isfinite(lhs).all() and np.isfinite(rhs).all():
            return kernel(lhs, rhs)
        unknown = count(np.isnan(lhs), np.ones_like(rhs)) | count(np.ones_like(lhs), np.isnan(rhs))
        unknown |= count(np.isinf(lhs), rhs == 0) | count(lhs == 0, np.isinf(rhs))
        above, below = (made_of(lhs, rhs, negative=negative) for negative in (False, True))
        finite = kernel(*(_where(np.isfinite(x), x, 0, x) for x in (lhs, rhs)))
        infinite = _where(above, np.inf, _where(below, -np.inf, finite, finite), finite)
        return _where(unknown | (above & below), np.nan, infinite, finite)

    return convolve


def _positive_zeros(_: Instruction, kernel: _Function, __: Lowering) -> _Function:
    def function(*operands: Any) -> Any:
        return kernel(*((x + 0).astype(x.dtype) for x in operands))

    return function


#: They hand a mask on, at most in another shape.
_MASK_MOVED = opcodes_with(Trait.REGROUPS) | {"convert"}


def _mask_number(instruction: Instruction) -> int | None:
    """Which factor of a product is a converted pred; None where neither is."""
    return next((n for n, operand in enumerate(instruction.operands) if _is_mask(operand)), None)


def _is_mask(operand: Instruction) -> bool:
    while True:
        if operand.opcode == "convert" and operand.operands[0].array_type is ElementType.PRED:
            return True
        if operand.opcode in ("call", "fusion"):
            operand = next(operand.called).root
        elif operand.opcode in _MASK_MOVED:
            operand = operand.operands[0]
        else:
            return False


def _is_masked(instruction: Instruction) -> bool:
    kind = instruction.array_type
    return kind is not None and kind.is_inexact and _mask_number(instruction) is not None


def _selects(instruction: Instruction, kernel: _Function, _: Lowering) -> _Function:
    number = _mask_number(instruction)
    assert number is not None

    def product(*operands: Any) -> Any:
        usual = kernel(*operands)
        return _where(operands[number] == 0, 0, usual, usual)

    return product


def _in_ieee_order(instruction: Instruction, _: _Function, lowering: Lowering) -> _Function:
    plain = {k: v for k, v in instruction.attributes.items() if k != "type"}
    return _plain(RULES[instruction.opcode](replace(instruction, attributes=plain), lowering))


def _plain(kernel: Kernel | Reading) -> _Function:
    assert not isinstance(kernel, Calling | Reading)
    return kernel


def _kinds(*kinds: ElementType) -> Callable[[Instruction], bool]:
    return lambda instruction: instruction.array_type in kinds


_is_float = _kinds(ElementType.BF16, ElementType.F16, ElementType.F32, ElementType.F64)


def _always(_: Instruction) -> bool:
    return True


def has_its_own_start(instruction: Instruction) -> bool:
    """Whether a reduction of one array begins with more than a constant that changes nothing."""
    if not isinstance(instruction.shape, ArrayShape):
        return False
    init = instruction.operands[1]
    (identity,) = identities(instruction.computation("to_apply"), 1)
    if identity is None or init.literal is None:
        return True
    return bool(init.literal.array != neutral_value(init.element_type, identity))


_NARROW_SIGNED = (ElementType.S8, ElementType.S16)

DEPARTURES = (
    Departure(
        "mask-selects",
        "takes a product with a converted pred for a select, which is 0 where NaN and infinity would be NaN",
        "multiply",
        _is_masked,
        _selects,
    ),
    Departure(
        "integer-power-six-bits",
        "reads the low six bits of an integer exponent only",
        "power",
        _is_integer,
        _six_bits,
    ),
    Departure(
        "evaluator-negative-power",
        "makes integer powers with negative exponents zero where it folds constants",
        "power",
        _is_signed,
        _zero_below,
    ),
    Departure(
        "evaluator-leading-zeros",
        "counts the leading zeros of sign-extended s8 and s16 where it folds constants",
        "count-leading-zeros",
        _kinds(*_NARROW_SIGNED),
        _sign_extended,
    ),
    Departure(
        "evaluator-saturating-convolution",
        "saturates convolutions of s8 where it folds constants",
        "convolution",
        _kinds(ElementType.S8),
        _saturated,
    ),
    Departure(
        "convolution-skips-padding",
        "leaves padding out of convolutions where it folds constants, and in loops of its own",
        "convolution",
        _is_float,
        _padding_skipped,
    ),
    Departure(
        "grouped-convolution-made-dense",
        "makes one convolution of all groups, with zero weights between them that infinity and NaN reach",
        "convolution",
        lambda instruction: _is_float(instruction) and has_groups(instruction),
        lambda instruction, _, __: without_groups(instruction),
    ),
    Departure(
        "convolution-holes-are-zeros",
        "fills holes and padding of a convolution with zeros, which infinite and unknown weights make NaN",
        "convolution",
        lambda instruction: _is_float(instruction) and has_holes(instruction),
        lambda instruction, _, __: without_holes(instruction),
    ),
    Departure(
        "evaluator-nan-without-mantissa",
        "makes NaN infinite where reduce-precision leaves no mantissa",
        "reduce-precision",
        lambda instruction: instruction.attributes.get("mantissa_bits") == 0,
        _infinite_for_nan,
    ),
    Departure(
        "evaluator-scale-of-zero",
        "makes scales of zeros and negative numbers positive where it folds constants",
        "convert",
        _kinds(ElementType.F8E8M0FNU),
        _positive_scale,
    ),
    Departure(
        "evaluator-f4-limits",
        "makes NaN and infinity zero in f4 and f6 where it folds constants",
        "convert",
        _kinds(ElementType.F4E2M1FN, ElementType.F6E2M3FN, ElementType.F6E3M2FN),
        _zero_for_infinity,
    ),
    Departure(
        "f4-six-is-infinite",
        "takes 6 and -6 of f4e2m1fn for infinities on the way to integers",
        "convert",
        lambda instruction: (
            instruction.operands[0].array_type is ElementType.F4E2M1FN and _is_integer(instruction)
        ),
        _six_saturates,
    ),
    Departure(
        "f16-logistic-overflows",
        "computes exp(-x) of a logistic in f16, where it overflows below -11.09",
        "logistic",
        _kinds(ElementType.F16),
        _zero_far_below,
    ),
    Departure(
        "init-of-nothing-dropped",
        "takes a reduction of one element for that element, whatever the initial value",
        "reduce",
        has_its_own_start,
        _element_itself,
    ),
    Departure(
        "init-of-each-window",
        "reduces windows of 32 elements first, and applies the initial value in each of them",
        "reduce",
        has_its_own_start,
        _init_of_each_window,
    ),
    *(
        Departure(
            "all-reduce-drops-nan",
            "takes the extremum of those devices only that have a number",
            opcode,
            lambda instruction: _reducer(instruction) in ("maximum", "minimum"),
            _drops_nan,
        )
        for opcode in ("all-reduce", "reduce-scatter")
    ),
    Departure(
        "singular-triangular-solve",
        "makes all unknowns NaN where a triangular matrix is singular",
        "triangular-solve",
        _always,
        _all_unknown,
    ),
    *(
        Departure(
            "complex-zero-sign-lost",
            "takes an imaginary part of -0 for +0",
            opcode,
            _kinds(ElementType.C64, ElementType.C128),
            _positive_zeros,
        )
        for opcode in ("cosine", "exponential", "log", "rsqrt", "sine", "sqrt", "tan", "tanh")
    ),
    Departure(
        "evaluator-total-order",
        "folds a comparison in total order as one in IEEE order",
        "compare",
        lambda instruction: instruction.attributes.get("type") == "TOTALORDER",
        _in_ieee_order,
    ),
)


class DepartingBackend:
    """The numpy backend under one rule.

    Args:
        id: of the rule.
    """

    name = "numpy"
    version = f"numpy {np.__version__}"

    def __init__(self, id: str) -> None:
        self._rules = [rule for rule in DEPARTURES if rule.id == id]

    def compile(self, module: Module) -> Executable:
        """See `Backend.compile`."""
        return NumpyExecutable(module, self._lowering(module).plan(module.entry))

    def compile_devices(self, module: Module, grid: DeviceGrid) -> DevicesProtocol:
        """See `DevicesBackend.compile_devices`."""
        return DevicesExecutable(module, self._lowering(module, grid).plan(module.entry), grid)

    def _lowering(self, module: Module, grid: DeviceGrid = ONE_DEVICE) -> Lowering:
        return _DepartingLowering(self._rules, module, grid)


class _DepartingLowering(Lowering):
    """Lowers what some rules speak of in their way."""

    def __init__(self, rules: Sequence[Departure], module: Module, grid: DeviceGrid) -> None:
        super().__init__(module, grid)
        self._rules = rules

    def kernel(self, instruction: Instruction) -> Kernel:
        kernel = super().kernel(instruction)
        for rule in self._rules:
            if rule.concerns(instruction):
                kernel = self._under(rule, instruction, kernel)
        return kernel

    def _under(self, rule: Departure, instruction: Instruction, kernel: Kernel) -> Kernel:
        if isinstance(kernel, Reading):
            return kernel
        if not isinstance(kernel, Calling):
            return rule.kernel(instruction, kernel, self)
        usual = kernel.function

        def calling(values: list[Any], run: Run) -> Any:
            function = rule.kernel(instruction, lambda *operands: usual(list(operands), run), self)
            return function(*values)

        return Calling(calling)
