"""Elementwise opcodes, over all element types that XLA's CPU compiler takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlotool.ir.arrays import Array
from hlotool.ir.builder import array
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import OPCODES, OpcodeRow, Trait
from hlotool.ir.types import ELEMENT_TYPES, TypeClass
from hlotool.lab.conformance.generators.cases import (
    ALL,
    COMPLEX,
    F8,
    FLOATS,
    INTEGERS,
    NARROW,
    SIGNED,
    UNSIGNED,
    Draft,
    generates,
    scalar_computation,
    values,
)

REAL = (*NARROW, *FLOATS)


@dataclass(frozen=True, slots=True)
class Domain:
    """What an opcode is tried on.

    Attributes:
        kinds: element types.
        corners: share of corner values; none where a function of complex numbers is only approximated.
        spread: magnitudes of floats, as a power of ten.
    """

    kinds: tuple[str, ...]
    corners: float = 0.3
    spread: float = 3


#: Element types by family, and those that programs compute functions of: f8 and f4 are computed in wider
#: types with two roundings, which `sqrt` alone shows.
_KINDS = {
    TypeClass.PRED: ("pred",),
    TypeClass.SIGNED: SIGNED,
    TypeClass.UNSIGNED: UNSIGNED,
    TypeClass.FLOATING: REAL,
    TypeClass.COMPLEX: COMPLEX,
}
_OF_FUNCTIONS = {**_KINDS, TypeClass.FLOATING: FLOATS}


def _domain(row: OpcodeRow) -> Domain:
    """XLA checks less of shifts and extrema than its CPU compiler takes."""
    is_function = Trait.TRANSCENDENTAL in row.traits
    families = set(row.families)
    if Trait.INTEGER in row.traits:
        families &= {TypeClass.SIGNED, TypeClass.UNSIGNED}
    if Trait.EXTREMUM in row.traits or row.name == "remainder":
        families.discard(TypeClass.COMPLEX)
    by_family = _OF_FUNCTIONS if is_function or row.name in ("imag", "real") else _KINDS
    kinds = (
        *(F8 if row.name == "sqrt" else ()),
        *(k for f in TypeClass if f in families for k in by_family[f]),
    )
    return Domain(kinds, spread=1 if is_function and row.name not in ("cbrt", "sqrt") else 3)


#: What XLA expands, and what StableHLO has no word for, is tried by the cases of its specification alone.
DOMAINS = {
    name: _domain(row)
    for name, row in OPCODES.items()
    if row.families
    and not row.required
    and not row.traits & {Trait.EXPANDED, Trait.STATES_SHAPE}
    and name not in ("complex", "mulhi")
}
UNARY = tuple(o for o in DOMAINS if OPCODES[o].min_operands == 1)
BINARY = tuple(o for o in DOMAINS if OPCODES[o].min_operands == 2)


def operands(draft: Draft, opcode: str, count: int) -> list[Instruction]:
    """Parameters of one random type of the opcode's domain and of equal random dimensions."""
    domain = DOMAINS[opcode]
    kind = draft.choice(domain.kinds)
    dims = draft.dims(high=7)
    corners = 0.0 if kind in COMPLEX and domain.spread < 3 else domain.corners
    return [draft.operand(kind, dims, corners=corners, spread=domain.spread) for _ in range(count)]


@generates(*UNARY)
def unary(draft: Draft, opcode: str) -> None:
    """A function of one operand, over its domain."""
    draft.op(opcode, *operands(draft, opcode, 1))


@generates(*BINARY)
def binary_operation(draft: Draft, opcode: str) -> None:
    """A function of two operands of one shape."""
    draft.op(opcode, *operands(draft, opcode, 2))


@generates("complex")
def make_complex(draft: Draft, opcode: str) -> None:
    """Complex numbers of two arrays of parts."""
    kind, dims = draft.choice(("f32", "f64")), draft.dims()
    draft.op(opcode, draft.operand(kind, dims), draft.operand(kind, dims))


@generates("compare")
def compare(draft: Draft, opcode: str) -> None:
    """Every direction that the element type has, in IEEE order or in total order."""
    kind, dims = draft.choice(ALL), draft.dims(high=7)
    directions = ("EQ", "NE") if kind in COMPLEX else ("EQ", "NE", "LT", "LE", "GT", "GE")
    direction = draft.choice(directions)
    is_total = ELEMENT_TYPES[kind].is_floating and draft.chance(0.3)
    sides = draft.operand(kind, dims), draft.operand(kind, dims)
    if is_total:
        draft.op(opcode, *sides, direction=direction, type="TOTALORDER")
    else:
        draft.op(opcode, *sides, direction=direction)


@generates("clamp")
def clamp(draft: Draft, opcode: str) -> None:
    """Bounds of the operand's shape, or scalars."""
    kind, dims = draft.choice((*INTEGERS, *REAL)), draft.dims()
    bounds = () if draft.chance() else dims
    low, x, high = (draft.operand(kind, d) for d in (bounds, dims, bounds))
    draft.op(opcode, low, x, high)


@generates("select")
def select(draft: Draft, opcode: str) -> None:
    """A predicate of the operands' shape, or a scalar."""
    kind, dims = draft.choice(ALL), draft.dims()
    predicate = draft.operand("pred", () if draft.chance(0.3) else dims)
    draft.op(opcode, predicate, draft.operand(kind, dims), draft.operand(kind, dims))


@generates("convert")
def convert(draft: Draft, opcode: str) -> None:
    """From any type to any other."""
    source = draft.choice(ALL)
    # XLA's compiler dies on complex to pred.
    target = draft.choice([t for t in ALL if not (t == "pred" and source in COMPLEX)])
    x = draft.operand(source, draft.dims(high=7), spread=6)
    draft.op(opcode, x, shape=array(target, *x.shape.dims))  # type: ignore[union-attr]


@generates("bitcast-convert")
def bitcast_convert(draft: Draft, opcode: str) -> None:
    """To a type of the same width, a narrower or a wider one."""
    bits = {t: ELEMENT_TYPES[t].bits for t in (*INTEGERS, *F8, *FLOATS)}
    source = draft.choice(bits)
    target = draft.choice(t for t in bits if max(bits[t], bits[source]) % min(bits[t], bits[source]) == 0)
    dims = result = draft.dims()
    if bits[target] > bits[source]:
        dims = (*dims, bits[target] // bits[source])
    elif bits[target] < bits[source]:
        result = (*result, bits[source] // bits[target])
    draft.op(opcode, draft.argument(source, without_nan(draft, source, dims)), shape=array(target, *result))


def without_nan(draft: Draft, kind: str, dims: tuple[int, ...]) -> Array:
    """XLA promises nothing of the payloads of NaN."""
    drawn = values(draft.rng, kind, dims)
    if not ELEMENT_TYPES[kind].is_floating:
        return drawn
    return np.asarray(np.where(np.isnan(drawn.astype(np.float64)), drawn.dtype.type(1), drawn))


@generates("reduce-precision")
def reduce_precision(draft: Draft, opcode: str) -> None:
    """Any number of bits of exponent and mantissa."""
    x = draft.operand(draft.choice(REAL), draft.dims(high=7), spread=6)
    draft.op(opcode, x, exponent_bits=draft.size(2, 11), mantissa_bits=draft.size(0, 52))


@generates("stochastic-convert")
def stochastic_convert(draft: Draft, opcode: str) -> None:
    """Random bits decide how numbers are rounded."""
    source, dims = draft.choice(FLOATS), draft.dims(high=7)
    noise = draft.operand(f"u{ELEMENT_TYPES[source].bits}", dims, corners=0)
    draft.op(opcode, draft.operand(source, dims), noise, shape=array(draft.choice(SIGNED), *dims))


#: Bodies for `map`, of parameters a and b of one type.
BODIES = (
    "ROOT r = {t}[] add(a, b)",
    "c = {t}[] multiply(a, a)\n  ROOT r = {t}[] subtract(c, b)",
    "p = pred[] compare(a, b), direction=LT\n  ROOT r = {t}[] select(p, b, a)",
    "ROOT r = {t}[] copy(b)",
    "two = {t}[] constant(2)\n  ROOT r = {t}[] maximum(a, two)",
)


@generates("map")
def map_elements(draft: Draft, opcode: str) -> None:
    """A small computation applied to each element."""
    kind, dims = draft.choice((*INTEGERS[2:6], *FLOATS)), draft.dims()
    head = f"f {{\n  a = {kind}[] parameter(0)\n  b = {kind}[] parameter(1)\n  "
    body = scalar_computation(head + draft.choice(BODIES).format(t=kind) + "\n}")
    draft.op(
        opcode,
        draft.operand(kind, dims),
        draft.operand(kind, dims),
        to_apply=body,
        dimensions=tuple(range(len(dims))),
    )
