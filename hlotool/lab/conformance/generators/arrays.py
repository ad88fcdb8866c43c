"""Slices at computed places, reductions, sorts, transforms, linear algebra, batch normalisation."""

from __future__ import annotations

import numpy as np

from hlotool.facts.scalar_form import neutral
from hlotool.ir.arrays import Array
from hlotool.ir.builder import array
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ELEMENT_TYPES, TupleShape
from hlotool.lab.conformance.generators.cases import (
    ALL,
    FLOATS,
    INTEGERS,
    SIGNED,
    UNSIGNED,
    Draft,
    binary,
    generates,
    scalar_computation,
    values,
)

#: Element types of dynamic-slice indices.
INDEX_TYPES = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")


def index_operands(draft: Draft, dims: tuple[int, ...]) -> list[Instruction]:
    """Scalars of one integer type: inside, beyond both ends, the limits of the type."""
    kind = draft.choice(INDEX_TYPES)
    operands = []
    for size in dims:
        far = draft.chance(0.3)
        operands.append(draft.operand(kind, (), corners=float(far), limit=0 if far else size + 3))
    return operands


@generates("dynamic-slice")
def dynamic_slice(draft: Draft, opcode: str) -> None:
    """A slice whose start may lie beyond either end."""
    dims = draft.dims(low_rank=1)
    sizes = tuple(draft.size(0, n) for n in dims)
    x = draft.operand(draft.choice(ALL), dims)
    draft.op(opcode, x, *index_operands(draft, dims), dynamic_slice_sizes=sizes)


@generates("dynamic-update-slice")
def dynamic_update_slice(draft: Draft, opcode: str) -> None:
    """An update whose start may lie beyond either end."""
    kind, dims = draft.choice(ALL), draft.dims()
    sizes = tuple(draft.size(0, n) for n in dims)
    x, update = draft.operand(kind, dims), draft.operand(kind, sizes)
    draft.op(opcode, x, update, *index_operands(draft, dims))


@generates("rng-bit-generator")
def random_bits(draft: Draft, opcode: str) -> None:
    """Bits of every algorithm from a given state."""
    algorithm = draft.choice(("rng_default", "rng_philox", "rng_three_fry"))
    words = 2 if algorithm == "rng_three_fry" else draft.size(2, 3)
    state = draft.operand("u64", (words,), corners=0.2)
    kind, dims = draft.choice(("u8", "u16", "u32", "u64")), draft.dims(high=7)
    shape = TupleShape((array("u64", words), array(kind, *dims)))
    draft.op(opcode, state, shape=shape, algorithm=algorithm)


@generates("fft")
def fft(draft: Draft, opcode: str) -> None:
    """Transforms of every kind over up to three dimensions."""
    kind = draft.choice(("FFT", "IFFT", "RFFT", "IRFFT"))
    wide = draft.chance(0.3)
    real, complexes = ("f64", "c128") if wide else ("f32", "c64")
    length = tuple(draft.size(1, 9) for _ in range(draft.size(1, 3)))
    batch = tuple(draft.size(1, 3) for _ in range(draft.size(0, 1)))
    halved = (*batch, *length[:-1], length[-1] // 2 + 1)
    dims = halved if kind == "IRFFT" else (*batch, *length)
    x = draft.operand(real if kind == "RFFT" else complexes, dims, corners=0, spread=0)
    draft.op(opcode, x, fft_type=kind, fft_length=length)


def hermitian(draft: Draft, kind: str, dims: tuple[int, ...]) -> Array:
    """Positive definite matrices, well away from singular ones."""
    m = values(draft.rng, kind, dims, corners=0, spread=0)
    product = m @ m.conj().swapaxes(-1, -2) + dims[-1] * np.eye(dims[-1])
    return np.asarray(product.astype(m.dtype))


@generates("cholesky")
def cholesky(draft: Draft, opcode: str) -> None:
    """Well-conditioned matrices, one or a few."""
    size = draft.size(1, 7)
    dims = (*(draft.size(1, 2) for _ in range(draft.size(0, 1))), size, size)
    kind = draft.choice(("f32", "f64", "c64", "c128"))
    draft.op(opcode, draft.argument(kind, hermitian(draft, kind, dims)), lower=draft.chance())


@generates("triangular-solve")
def triangular_solve(draft: Draft, opcode: str) -> None:
    """Well-conditioned triangular matrices on either side."""
    size, columns = draft.size(1, 6), draft.size(1, 4)
    batch = tuple(draft.size(1, 2) for _ in range(draft.size(0, 1)))
    kind, left = draft.choice(("f32", "f64", "c64", "c128")), draft.chance()
    # Small enough that solutions do not grow when the diagonal counts as 1.
    matrices = hermitian(draft, kind, (*batch, size, size))
    a = draft.argument(kind, np.asarray(matrices / matrices.dtype.type(4 * size)))
    sides = (size, columns) if left else (columns, size)
    b = draft.operand(kind, (*batch, *sides), corners=0, spread=0)
    draft.op(
        opcode,
        a,
        b,
        left_side=left,
        lower=draft.chance(),
        unit_diagonal=draft.chance(0.3),
        transpose_a=draft.choice(("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")),
    )


@generates("batch-norm-training", "batch-norm-inference", "batch-norm-grad")
def batch_norm(draft: Draft, opcode: str) -> None:
    """Normalisation over every possible dimension of features."""
    # With few elements a variance is the small difference of large squares, in XLA's formula.
    kind, rank = draft.choice(("f32", "f64", "f16")), draft.size(3, 4)
    dims = tuple(draft.size(2, 4) for _ in range(rank))
    axis = draft.size(0, rank - 1)
    features = (dims[axis],)
    x = draft.operand(kind, dims, corners=0, spread=0)
    vectors = [draft.operand(kind, features, corners=0, spread=0) for _ in range(2)]
    variance = draft.argument(kind, np.abs(values(draft.rng, kind, features, corners=0, spread=0)))
    rest = {
        "batch-norm-training": vectors,
        "batch-norm-inference": [*vectors, vectors[0], variance],
        "batch-norm-grad": [*vectors, variance, draft.operand(kind, dims, corners=0, spread=0)],
    }
    draft.op(opcode, x, *rest[opcode], epsilon=0.25, feature_index=axis)


#: Reducers by family.
INTEGER_REDUCERS = sorted(opcodes_with(Trait.ASSOCIATIVE))
PRED_REDUCERS = sorted(opcodes_with(Trait.ASSOCIATIVE) & opcodes_with(Trait.BITWISE))
FLOAT_REDUCERS = sorted(set(INTEGER_REDUCERS) - set(PRED_REDUCERS))

ARGMAX = """argmax {
  v = f32[] parameter(0)
  i = s32[] parameter(1)
  w = f32[] parameter(2)
  j = s32[] parameter(3)
  more = pred[] compare(v, w), direction=GT
  odd = pred[] compare(v, v), direction=NE
  first = pred[] or(more, odd)
  same = pred[] compare(v, w), direction=EQ
  lower = pred[] compare(i, j), direction=LT
  tie = pred[] and(same, lower)
  left = pred[] or(first, tie)
  a = f32[] select(first, v, w)
  b = s32[] select(left, i, j)
  ROOT t = (f32[], s32[]) tuple(a, b)
}"""

#: f(a, b) = 3a + b: the order of the elements shows.
WEIGHTED = """weighted {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  three = s32[] constant(3)
  c = s32[] multiply(a, three)
  ROOT r = s32[] add(c, b)
}"""


def axes(draft: Draft, rank: int) -> tuple[int, ...]:
    """At least one dimension to reduce."""
    chosen = draft.rng.permutation(rank)[: draft.size(1, rank)]
    return tuple(sorted(int(d) for d in chosen))


@generates("reduce")
def reduce(draft: Draft, opcode: str) -> None:
    """A monoid, an argmax, or a computation that shows the order of the elements."""
    form = draft.choice(("monoid",) * 6 + ("argmax", "weighted"))
    if form == "monoid":
        reduce_monoid(draft)
    elif form == "argmax":
        reduce_argmax(draft)
    else:
        # XLA keeps the order of the elements up to about 33 of them.
        x = draft.operand("s32", (draft.size(1, 3), draft.size(0, 5)), limit=100)
        draft.op(
            "reduce", x, draft.operand("s32", ()), dimensions=(1,), to_apply=scalar_computation(WEIGHTED)
        )


def reduce_monoid(draft: Draft) -> None:
    """Sums and products of floats get numbers without overflow: its place depends on their order."""
    kind = draft.choice(("pred", *INTEGERS, *FLOATS))
    family = PRED_REDUCERS if kind == "pred" else INTEGER_REDUCERS if kind in INTEGERS else FLOAT_REDUCERS
    opcode, dims = draft.choice(family), draft.dims(low_rank=1, high=8)
    is_sum = kind in FLOATS and opcode in ("add", "multiply")
    x = draft.operand(kind, dims, corners=0 if is_sum else 0.3, spread=0.3 if is_sum else 3)
    init = draft.argument(kind, np.array(neutral(opcode, ELEMENT_TYPES[kind])))
    draft.op("reduce", x, init, dimensions=axes(draft, len(dims)), to_apply=binary(opcode, kind))


def reduce_argmax(draft: Draft) -> None:
    """Values and their positions, NaN and ties included."""
    dims = draft.dims(low_rank=1, high=8)
    x = draft.operand("f32", dims, spread=0)
    axis = draft.size(0, len(dims) - 1)
    positions = draft.op("iota", shape=array("s32", *dims), iota_dimension=axis)
    low, zero = draft.builder.constant(-np.inf, "f32"), draft.builder.constant(0, "s32")
    kept = [n for d, n in enumerate(dims) if d != axis]
    shape = TupleShape((array("f32", *kept), array("s32", *kept)))
    draft.op(
        "reduce",
        x,
        positions,
        low,
        zero,
        shape=shape,
        dimensions=(axis,),
        to_apply=scalar_computation(ARGMAX),
    )


def comparator(direction: str, kinds: list[str], total: bool) -> Computation:
    """Compares the first operand; `kinds` are the element types of all."""
    lines = [f"  p{i} = {kinds[i // 2]}[] parameter({i})" for i in range(2 * len(kinds))]
    suffix = ", type=TOTALORDER" if total else ""
    root = f"  ROOT r = pred[] compare(p0, p1), direction={direction}{suffix}"
    return scalar_computation("\n".join(["less {", *lines, root, "}"]))


@generates("sort")
def sort(draft: Draft, opcode: str) -> None:
    """Stable, with payloads; floats in total order, which is defined for NaN.

    XLA's CPU code corrupts its memory on types below a byte.
    """
    kinds = [draft.choice(("pred", *SIGNED[2:], *UNSIGNED[3:], *FLOATS))]
    kinds += [draft.choice((*SIGNED[2:], "f32")) for _ in range(draft.size(0, 2))]
    dims = draft.dims(low_rank=1, high=12)
    operands = [draft.operand(kind, dims) for kind in kinds]
    total = ELEMENT_TYPES[kinds[0]].is_floating
    shape = operands[0].shape if len(operands) == 1 else TupleShape(tuple(o.shape for o in operands))
    draft.op(
        opcode,
        *operands,
        shape=shape,
        dimensions=(draft.size(0, len(dims) - 1),),
        is_stable=True,
        to_apply=comparator(draft.choice(("LT", "GT")), kinds, total),
    )


@generates("topk")
def topk(draft: Draft, opcode: str) -> None:
    """The largest or the smallest, of every rank."""
    kind = draft.choice((*SIGNED[2:], *UNSIGNED[2:], "bf16", "f16", "f32", "f64"))
    dims = (*draft.dims(high_rank=1), draft.size(1, 12))
    x = draft.operand(kind, dims)
    draft.op(opcode, x, k=draft.size(1, dims[-1]), largest=draft.chance())


STEP = """step {{
  x = {t}[{n}] parameter(0)
  carry = {t}[{n}] parameter(1)
  sum = {t}[{n}] {op}(carry, x)
  ROOT t = ({t}[{n}], {t}[{n}]) tuple(sum, sum)
}}"""


@generates("scan")
def scan(draft: Draft, opcode: str) -> None:
    """A running sum or difference along one dimension; XLA slices, so there must be elements."""
    kind, combine = draft.choice(("s8", "s32", "u16", "f32")), draft.choice(("add", "subtract", "maximum"))
    dims = tuple(draft.size(1, 5) for _ in range(draft.size(1, 3)))
    axis = draft.size(0, len(dims) - 1)
    slice_dims = [n for d, n in enumerate(dims) if d != axis]
    body = scalar_computation(STEP.format(t=kind, n=",".join(map(str, slice_dims)), op=combine))
    draft.op(
        opcode,
        draft.operand(kind, dims, corners=0),
        draft.operand(kind, tuple(slice_dims), corners=0),
        shape=TupleShape((array(kind, *dims), array(kind, *slice_dims))),
        dimensions=(axis,),
        is_reverse=draft.chance(),
        num_carries=1,
        to_apply=body,
    )
