"""What is recognised at a glance: uniform constants, custom calls without effect, trivial programs.

A uniform constant has one value for all elements. Of a trivial program the agreement says nothing of any
other program; this is the only definition of one. Frontends compile one for every operation outside of
`jit`: `jit_convert_element_type`, `jit_broadcast_in_dim`, `jit_add`. A training script has sixty of them
beside the one program that matters.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import OPCODES, Class, Trait, opcodes_with
from hlotool.ir.partitioning import ENTERS_REGION, LEAVES_REGION
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.ir.walk import reachable

#: They keep what all elements have; a bitcast may be one to another type.
_REGROUPING = opcodes_with(Trait.REGROUPS) - {"bitcast"}

#: Custom calls of StableHLO's own tests: two values that must be equal, or nearly so.
EXPECTATIONS: Final = ("check.expect_eq", "check.eq", "check.expect_almost_eq", "check.expect_close")


def uniform(instruction: Instruction) -> np.generic[Any] | None:
    """The value that all elements of a constant, or of a broadcast one, have; None for anything else."""
    while instruction.opcode in _REGROUPING and instruction.operands:
        instruction = instruction.operands[0]
    literal = instruction.literal
    if (
        literal is None
        or literal.elided
        or not isinstance(literal.value, np.ndarray)
        or not literal.value.size
    ):
        return None
    first: np.generic[Any] = literal.array.flat[0]
    same = literal.array.tobytes() == np.full_like(literal.array, first).tobytes()
    return first if same else None


def is_uniform(instruction: Instruction, value: float) -> bool:
    """Whether all its elements are `value`, zeros with the same sign; complex numbers never are."""
    found = uniform(instruction)
    if found is None or np.iscomplexobj(found):
        return False
    number = float(found)
    return number == value and bool(np.signbit(number)) == bool(np.signbit(value))


def is_zero(instruction: Instruction) -> bool:
    """Whether all its elements are zero of any sign."""
    return is_uniform(instruction, 0.0) or is_uniform(instruction, -0.0)


def integer_constant(value: Instruction) -> int | None:
    """The value of an integer scalar constant."""
    shape, literal = value.shape, value.literal
    if value.opcode != "constant" or literal is None or literal.elided or not isinstance(shape, ArrayShape):
        return None
    if shape.size != 1 or not (shape.element_type.is_integer or shape.element_type is ElementType.PRED):
        return None
    return int(literal.array.item())


#: They return their operand: they annotate it, or say where it lies.
ANNOTATIONS: Final = frozenset(
    {
        "AssumeGatherIndicesInBound", "AwsNeuronTransferWithStaticRing", "GatherScatterIndicesBitpacked",
        "LayoutConstraint",
        "MoveToDevice", "MoveToHost", "Pin", "PinToDevice", "SetBound", "ShardBarrierFrom",
        "ShardBarrierTo", "Sharding", "Unpin",
        "annotate_device_placement", "xla.sdy.FuncResultSharding", "xla.sdy.PropagationBarrier",
    }
)  # fmt: skip
#: They return their operands, or a device's part of them.
TRANSPARENT: Final = ANNOTATIONS | ENTERS_REGION | LEAVES_REGION
#: They do no arithmetic.
EXACT: Final = TRANSPARENT | {
    "AllocateBuffer",
    "AwsNeuronArgMax",
    "AwsNeuronArgMin",
    "AwsNeuronTopK",
    "CreateBuffer",
    "PadToStatic",
    "SliceToDynamic",
    "TopK",
    "X64Combine",
    "X64SplitHigh",
    "X64SplitLow",
}


#: Not counted: they give values another place, form or name, or make them of nothing.
_FREE: Final = frozenset({Class.DATA_MOVEMENT, Class.TUPLE, Class.SOURCE, Class.ANNOTATION})
#: Of which a trivial program has one at most. A reduction or a product is many operations.
_COUNTED: Final = frozenset({Class.ELEMENTWISE, Class.INDEXING})
#: Not counted either: what the first two call is counted in their place, and a conversion, which promotes the
#: scalar of `x + 1`, computes nothing.
_PASSED_OVER: Final = opcodes_with(Trait.INLINED) | {"convert", "bitcast-convert"}


def is_trivial(module: Module) -> bool:
    """Whether a program only moves and converts data, but for one elementwise or indexing operation."""
    count = 0
    for computation in reachable(module.entry):
        for instruction in computation.instructions:
            found = OPCODES[instruction.opcode].opcode_class
            if found in _FREE or instruction.opcode in _PASSED_OVER:
                continue
            if instruction.custom_call_target in TRANSPARENT:
                continue
            count += 1
            if found not in _COUNTED or count > 1:
                return False
    return True
