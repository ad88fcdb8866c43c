"""What the decisions of a program would need to see: other numbers, at the corner and close to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np
from msgspec import Struct

from hlotool.ir.arrays import Array, dtype_of, integer_limits
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType

#: How far beside a tie `just less` is, in parts of the number: closer than what a thousandth of it would
#: hide.
_NEAR: Final = 3e-4
#: From where a constant that is selected stands for something: a masked score, a missing value.
_FAR: Final = 1e3
#: Elements that are looked at to see whether an array holds one number everywhere.
_SAMPLED: Final = 1024
#: The outcome of a tie, which others add to.
_EQUAL: Final = "equal"


class Wish(Struct, frozen=True, eq=False):
    """Numbers that operands of an instruction should have, as far as they can.

    Attributes:
        instruction: the decision.
        operand: which of its operands.
        wanted: a number per element of the operand, in doubles; exact for integers below 2^53.
        outcome: what that would show: `equal`, `above the end`.
        odd: its kind of unusual value; empty for ordinary values.
    """

    instruction: Instruction
    operand: int
    wanted: Array
    outcome: str
    odd: str = ""

    @property
    def is_tie(self) -> bool:
        """Whether two numbers are to be equal."""
        return self.outcome.startswith(_EQUAL)

    @property
    def purpose(self) -> str:
        """As reports say it."""
        return f"{self.outcome} at {self.instruction.opcode} %{self.instruction.name}"


_Values: TypeAlias = Sequence[Array]
_Rule: TypeAlias = Callable[[Instruction, _Values], Iterator[Wish]]


def wishes(instruction: Instruction, operands: Sequence[Array | None]) -> Iterator[Wish]:
    """What would show more of an instruction than the values that its operands had."""
    rule = _RULES.get(instruction.opcode)
    if rule is None or any(o is None or np.iscomplexobj(o) or not o.size for o in operands):
        return
    yield from rule(instruction, [o for o in operands if o is not None])


def is_wished(instruction: Instruction) -> bool:
    """Whether something may be wished for an instruction."""
    return instruction.opcode in _RULES


def _number(value: Array) -> Array:
    return value.astype(np.float64)


def _step(instruction: Instruction, operand: int, around: Array) -> Array:
    """A distance that the operand's type can hold, and that a fault of a thousandth crosses."""
    element_type = instruction.operands[operand].element_type
    if not element_type.is_floating:
        return np.ones_like(around)
    info: Any = ml_dtypes.finfo(dtype_of(element_type))  # type: ignore[no-untyped-call]
    return np.maximum(np.abs(around) * max(_NEAR, 2 * float(info.eps)), 1e-6)


def _beside(instruction: Instruction, operand: int, value: Array, name: str = "") -> Iterator[Wish]:
    """At a number, and just beside it."""
    around = np.nan_to_num(_number(value))
    step = _step(instruction, operand, around)
    of = f" {name}" if name else ""
    with np.errstate(all="ignore"):
        below, above = around - step, around + step
    yield Wish(instruction, operand, around, f"{_EQUAL}{of}")
    yield Wish(instruction, operand, below, f"just less{of}")
    yield Wish(instruction, operand, above, f"just more{of}")


def _compare(instruction: Instruction, values: _Values) -> Iterator[Wish]:
    if instruction.operands[0].element_type is ElementType.PRED:
        return
    for operand in (0, 1):
        yield from _beside(instruction, operand, values[1 - operand])


def _carry(instruction: Instruction, values: _Values) -> Iterator[Wish]:
    """A sum whose lower half of the bits overflows, as no sum of small numbers does."""
    bits = instruction.element_type.bits
    if instruction.element_type.is_integer and 16 <= bits <= 32:
        half = float(1 << bits // 2)
        for operand in (0, 1):
            yield Wish(instruction, operand, half - _number(values[1 - operand]), "a carry")


def _clamp(instruction: Instruction, values: _Values) -> Iterator[Wish]:
    shape = values[1].shape
    for bound, name in ((0, "the least"), (2, "the most")):
        yield from _beside(instruction, 1, np.broadcast_to(values[bound], shape), name)


def _to_integer(instruction: Instruction, values: _Values) -> Iterator[Wish]:
    """Whole numbers, and just beside them; halves; beyond a narrower type."""
    source = instruction.operands[0].element_type
    if instruction.opcode == "convert":
        target = instruction.element_type
        if not target.is_integer or source is ElementType.PRED or source.is_complex:
            return
        if source.is_integer:
            if target.bits < source.bits:
                low, high = integer_limits(target)
                for number in (low, high, high + 1):
                    yield Wish(instruction, 0, np.full(values[0].shape, float(number)), f"{number}")
            return
    whole = np.round(_number(values[0]))
    signs = np.where(np.indices(whole.shape).sum(0) % 2 == 0, 1.0, -1.0) if whole.ndim else np.ones(())
    yield from _beside(instruction, 0, whole + signs, "a whole number")
    yield Wish(instruction, 0, whole + signs * 0.5, "half")
    yield Wish(instruction, 0, -np.abs(whole) - 0.75, "negative fraction")


def _division(instruction: Instruction, values: _Values) -> Iterator[Wish]:
    """Quotients that are rounded, of all signs; whole ones."""
    if not instruction.element_type.is_signed:
        return
    dividend, divisor = map(_number, values)
    rest = np.maximum(1, np.abs(divisor) - 1)
    for sign, name in ((-1, "negative dividend"), (1, "positive dividend")):
        yield Wish(instruction, 0, sign * (2 * np.abs(divisor) + rest), name)
    yield Wish(instruction, 0, -2 * np.abs(divisor), "negative multiple")
    yield Wish(instruction, 1, -np.maximum(2, np.abs(divisor)), "negative divisor")
    yield Wish(instruction, 1, np.maximum(2, np.abs(dividend) - 1), "divisor near the dividend")


def _dynamic_slice(instruction: Instruction, values: _Values) -> Iterator[Wish]:
    yield from _starts(instruction, values, 1, instruction.integers("dynamic_slice_sizes", ()))


def _dynamic_update_slice(instruction: Instruction, values: _Values) -> Iterator[Wish]:
    yield from _starts(instruction, values, 2, instruction.operands[1].dims)


def _starts(instruction: Instruction, values: _Values, first: int, sizes: Sequence[int]) -> Iterator[Wish]:
    dims = instruction.operands[0].dims
    if len(values) != first + len(dims):
        return
    for dimension, size in enumerate(sizes):
        limit = dims[dimension] - size
        yield from _positions(instruction, first + dimension, values[first + dimension], limit)


def _positions(instruction: Instruction, operand: int, value: Array, limit: int) -> Iterator[Wish]:
    """The first and the last position; beyond them XLA clamps, or skips."""
    if limit <= 0:
        return
    middle = max(1, limit // 2)
    for number, name in ((0, "the first"), (limit, "the last"), (middle, "in the middle")):
        yield Wish(instruction, operand, np.full(value.shape, float(number)), name)
    _, high = integer_limits(instruction.operands[operand].element_type)
    beyond = (
        (limit + 1, "above the end"),
        (limit + middle + 1, "far above the end"),
        (-1, "below the start"),
    )
    for number, name in (*beyond, (-1 - middle, "far below the start")):
        if number <= high and (number >= 0 or instruction.operands[operand].element_type.is_signed):
            yield Wish(
                instruction, operand, np.full(value.shape, float(number)), name, "indices out of range"
            )


def _gather(instruction: Instruction, values: _Values) -> Iterator[Wish]:
    dims, sizes = instruction.operands[0].dims, instruction.integers("slice_sizes", ())
    mapped = instruction.integers("start_index_map", ())
    if len(mapped) == 1:
        limit = dims[mapped[0]] - sizes[mapped[0]]
        yield from _positions(instruction, 1, values[1], limit)


def _scatter(instruction: Instruction, values: _Values) -> Iterator[Wish]:
    mapped = instruction.integers("scatter_dims_to_operand_dims", ())
    if len(instruction.operands) == 3 and len(mapped) == 1:
        yield from _positions(instruction, 1, values[1], instruction.operands[0].dims[mapped[0]] - 1)


def _conditional(instruction: Instruction, values: _Values) -> Iterator[Wish]:
    if instruction.operands[0].element_type is ElementType.PRED:
        for outcome in (0.0, 1.0):
            yield Wish(instruction, 0, np.full((), outcome), "true" if outcome else "false")
        return
    count = sum(1 for _ in instruction.called)
    for number in range(count):
        yield Wish(instruction, 0, np.full((), float(number)), f"branch {number}")
    for number in (-1, count):
        yield Wish(instruction, 0, np.full((), float(number)), "no branch", "indices out of range")


def _select(instruction: Instruction, values: _Values) -> Iterator[Wish]:
    for outcome in (0.0, 1.0):
        yield Wish(instruction, 0, np.full(values[0].shape, outcome), "true" if outcome else "false")
    if not instruction.element_type.is_floating:
        return
    for operand in (1, 2):
        # A stand-in such as -1e9 is to lose against every number, and need not against one of its own size.
        stand_in = np.unique(_number(values[3 - operand]).reshape(-1)[:_SAMPLED])
        if stand_in.size == 1 and _FAR <= abs(stand_in[0]) < math.inf:
            for factor, name in ((0.1, "less"), (10.0, "more")):
                wanted = np.full(values[operand].shape, stand_in[0] * factor)
                yield Wish(instruction, operand, wanted, f"{name} than the stand-in")


def _shift(instruction: Instruction, values: _Values) -> Iterator[Wish]:
    bits = instruction.element_type.bits
    yield Wish(instruction, 0, np.full(values[0].shape, -3.0), "negative")
    for number in (0, 1, bits - 1):
        yield Wish(instruction, 1, np.full(values[1].shape, float(number)), f"by {number}")
    yield Wish(instruction, 1, np.full(values[1].shape, float(bits)), "by all bits", "shifts by all bits")


def _order(instruction: Instruction, values: _Values) -> Iterator[Wish]:
    """Keys like their neighbours."""
    (dimension, *_) = instruction.integers("dimensions")
    keys = values[0]
    if (
        keys.shape
        and keys.shape[dimension] > 1
        and instruction.operands[0].element_type is not ElementType.PRED
    ):
        neighbours = _number(np.take(keys, (np.arange(keys.shape[dimension]) // 2) * 2, axis=dimension))
        yield Wish(instruction, 0, neighbours, "ties")
        reversed_keys = _number(np.flip(np.sort(keys, axis=dimension), axis=dimension))
        yield Wish(instruction, 0, reversed_keys, "falling")


def _corners(instruction: Instruction, values: _Values) -> Iterator[Wish]:
    """Numbers that a function is made for, and where it ends: small ones for `expm1`, about to overflow for
    `exp`; apart from one another, for what is off by an ulp of a large number is lost beside it.
    """
    kind = instruction.element_type
    if not kind.is_floating:
        return
    info: Any = ml_dtypes.finfo(dtype_of(kind))  # type: ignore[no-untyped-call]
    eps, largest = float(info.eps), math.log(float(info.max))
    near, far = _CORNERS[instruction.opcode]
    for points, name in ((near(eps), "where it is exact"), (far(largest), "where it ends")):
        if points:
            yield Wish(instruction, 0, np.resize(np.array(points), values[0].shape), name)


def _small(eps: float) -> tuple[float, ...]:
    """So small that 1 + x has lost x, or half of it."""
    return (math.sqrt(eps) / 4, -eps * 3, eps**0.75, -math.sqrt(eps))


def _near_one(eps: float) -> tuple[float, ...]:
    """Where a logarithm is almost 0."""
    return (1 + 4 * eps, 1 - 4 * eps, 1 + math.sqrt(eps))


def _none(_: float) -> tuple[float, ...]:
    return ()


def _overflowing(largest: float) -> tuple[float, ...]:
    """Beyond where an exponential overflows and its root does not, and where it vanishes."""
    return (largest + 0.05, largest + 1, -largest - 1, largest * 1.3, -largest / 2)


def _saturating(largest: float) -> tuple[float, ...]:
    """Where a sigmoid is almost flat."""
    return (-largest / 5, largest / 5, -largest - 1, largest + 1)


_Points: TypeAlias = Callable[[float], tuple[float, ...]]
#: By opcode: where it is exact and what it is made of is not, by an ulp at 1; where it ends, by the logarithm
#: of the largest number.
_CORNERS: Final[dict[str, tuple[_Points, _Points]]] = {
    "exponential": (_small, _overflowing),
    "exponential-minus-one": (_small, _overflowing),
    "log-plus-one": (_small, _none),
    "log": (_near_one, _none),
    "tanh": (_small, _saturating),
    "logistic": (_small, _saturating),
}


def _pole(instruction: Instruction, values: _Values) -> Iterator[Wish]:
    """Where a tangent is at its largest."""
    if instruction.element_type.is_floating:
        yield Wish(instruction, 0, np.full(values[0].shape, math.pi / 2), "a pole")


def _sign(instruction: Instruction, values: _Values) -> Iterator[Wish]:
    if isinstance(instruction.shape, ArrayShape) and instruction.element_type.is_unsigned:
        return
    alternating = np.where(np.indices(values[0].shape).sum(0) % 2 == 0, 1.5, -1.5) if values[0].ndim else -1.5
    yield Wish(instruction, 0, np.asarray(alternating, np.float64), "both signs")
    yield Wish(instruction, 0, np.zeros(values[0].shape), "zero")


_RULES: dict[str, _Rule] = {
    "add": _carry,
    "compare": _compare,
    **dict.fromkeys(opcodes_with(Trait.EXTREMUM), _compare),
    "clamp": _clamp,
    **dict.fromkeys(opcodes_with(Trait.TO_INTEGER) | {"convert"}, _to_integer),
    "divide": _division,
    "remainder": _division,
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _dynamic_update_slice,
    "gather": _gather,
    "scatter": _scatter,
    "conditional": _conditional,
    "select": _select,
    **dict.fromkeys(opcodes_with(Trait.SHIFTS), _shift),
    "sort": _order,
    "reduce": _order,
    "abs": _sign,
    "sign": _sign,
    "tan": _pole,
    **dict.fromkeys(_CORNERS, _corners),
}
