"""What leaves every dimension as it is, and what sums one up: elementwise, reductions, sorts, sources."""

from __future__ import annotations

from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import OPCODES, Class
from hlotool.ir.types import ArrayShape
from hlotool.scale.rules.base import Relations, Restated, place, relates
from hlotool.scale.terms import Dims

_ELEMENTWISE = [name for name, row in OPCODES.items() if row.opcode_class is Class.ELEMENTWISE]


@relates(*_ELEMENTWISE, "reverse", "copy", "domain", "cholesky")
def elementwise(known: Relations, instruction: Instruction) -> None:
    """All sizes are equal; a scalar among arrays (`clamp`, `select`) says nothing."""
    for operand in instruction.operands:
        if isinstance(operand.shape, ArrayShape) and (operand.dims or not instruction.dims):
            known.sizes.unify_all(known.of(operand), known.of(instruction))


@relates("opt-barrier", "add-dependency", "all-reduce-done")
def handed_on(known: Relations, instruction: Instruction) -> None:
    """The first operand as it is."""
    known.equal(instruction, instruction.operands[0])


@relates("parameter", "constant", "iota", "after-all", "partition-id", "replica-id", "rng", "infeed")
def source(known: Relations, instruction: Instruction) -> None:
    """Of any size."""


@relates("rng-bit-generator")
def random_bits(known: Relations, instruction: Instruction) -> None:
    """The state is what the algorithm needs; the bits are of any size."""
    known.freeze(instruction.operands[0], "state of a random number generator")
    known.sizes.freeze_all(known.leaves(instruction)[0], "state of a random number generator")


@relates("rng-get-and-update-state")
def random_state(known: Relations, instruction: Instruction) -> None:
    """The state is what the algorithm needs."""
    known.freeze(instruction, "state of a random number generator")


@relates("reduce")
def reduce(known: Relations, instruction: Instruction) -> None:
    """Dimensions go, the others stay; all inputs are alike."""
    gone = set(instruction.integers("dimensions"))
    inputs = instruction.operands[: len(instruction.operands) // 2]
    first = known.of(inputs[0])
    kept = [size for number, size in enumerate(first) if number not in gone]
    for one in inputs[1:]:
        known.sizes.unify_all(first, known.of(one))
    for result in known.leaves(instruction):
        known.sizes.unify_all(kept, result)


@relates("sort")
def sort(known: Relations, instruction: Instruction) -> None:
    """All operands and results are alike."""
    first = known.of(instruction.operands[0])
    for one in instruction.operands[1:]:
        known.sizes.unify_all(first, known.of(one))
    for result in known.leaves(instruction):
        known.sizes.unify_all(first, result)


@relates("topk")
def topk(known: Relations, instruction: Instruction) -> Restated:
    """The last dimension becomes `k`, which is no larger."""
    values = largest(known, instruction)
    return lambda number: {"k": number(values[-1])}


def largest(known: Relations, instruction: Instruction) -> Dims:
    """Relate sizes where the last dimension becomes a number of largest elements; returns theirs."""
    given = known.of(instruction.operands[0])
    values, indices = known.leaves(instruction)
    known.sizes.unify_all(values, indices)
    known.sizes.unify_all(given[:-1], values[:-1])
    known.sizes.no_larger(values[-1], given[-1])
    return values


@relates("batch-norm-grad", "batch-norm-inference", "batch-norm-training")
def batch_norm(known: Relations, instruction: Instruction) -> None:
    """Arrays of the operand's shape, and vectors as long as its feature dimension."""
    whole = known.of(instruction.operands[0])
    feature = whole[instruction.integer("feature_index")]
    others = [known.of(operand) for operand in instruction.operands[1:]]
    for dims in (*others, *known.leaves(instruction)):
        known.sizes.unify_all(dims, whole if len(dims) == len(whole) > 1 else (feature,))


@relates("fft")
def fft(known: Relations, instruction: Instruction) -> None:
    """Lengths of transforms stay."""
    given, result = known.of(instruction.operands[0]), known.of(instruction)
    count = len(instruction.integers("fft_length"))
    known.sizes.unify_all(given[:-count], result[:-count])
    known.sizes.freeze_all(
        (*given[-count:], *result[-count:]), f"{place(instruction)}: length of a transform"
    )


@relates("triangular-solve")
def triangular_solve(known: Relations, instruction: Instruction) -> None:
    """Batches are alike; the matrix is square and as large as one side of the result."""
    matrix, right = (known.of(operand) for operand in instruction.operands)
    result = known.of(instruction)
    known.sizes.unify_all(right, result)
    known.sizes.unify_all(matrix[:-2], right[:-2])
    known.sizes.unify(matrix[-1], matrix[-2])
    side = -2 if instruction.flag("left_side") else -1
    known.sizes.unify(matrix[-1], right[side])
