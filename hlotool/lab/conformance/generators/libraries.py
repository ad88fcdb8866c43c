"""Random bits, transforms, linear algebra, batch normalisation."""

from __future__ import annotations

import numpy as np

from hlotool.ir.arrays import Array
from hlotool.ir.builder import array
from hlotool.ir.types import TupleShape
from hlotool.lab.conformance.generators.cases import Draft, generates, values


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
