"""The shape of an operation's result, and whether a stated shape is right.

The rules stand in `hlotool/ir/shapes/`, registered by opcode. Results carry a layout only where the operation
hands one on (absent means the default, row-major). XLA: shape_inference.cc, hlo_verifier.cc (CheckShape).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hlotool.errors import VerificationError
from hlotool.ir.attributes import AttributeValue
from hlotool.ir.opcodes import OPCODES
from hlotool.ir.shapes import (  # noqa: F401 - importing a file registers its rules
    control,
    elementwise,
    indexing,
    libraries,
    movement,
    reduction,
)
from hlotool.ir.shapes.base import CHECK_RULES, INFER_RULES, Op, compatible
from hlotool.ir.types import Shape

#: Opcodes that hand on or rearrange buffers, so that not even the floating-point precision may differ.
_EXACT = frozenset(
    {
        "call", "conditional", "copy-done", "copy-start", "dynamic-update-slice", "get-tuple-element",
        "infeed", "opt-barrier", "outfeed", "recv", "recv-done", "send", "send-done", "tuple", "while",
    }
)  # fmt: skip


def can_infer(opcode: str) -> bool:
    """Whether the result shape of `opcode` follows from operands and attributes, so that text may omit it."""
    return opcode in INFER_RULES


def infer_shape(opcode: str, operands: Sequence[Shape], attributes: Mapping[str, AttributeValue]) -> Shape:
    """The result shape of an operation.

    Args:
        opcode: HLO name.
        operands: shapes of the operands.
        attributes: by HLO name; called computations as Computation objects.

    Raises:
        VerificationError: operands or attributes that the operation does not allow, or an opcode whose result
            shape must be given (rule `shape-needed`), such as parameter, constant, reshape or custom-call.
    """
    check_operand_count(opcode, len(operands))
    rule = INFER_RULES.get(opcode)
    if rule is None:
        raise VerificationError("shape-needed", f"the result shape of {opcode} must be given")
    return rule(Op(opcode, operands, attributes))


def check_shape(
    opcode: str,
    operands: Sequence[Shape],
    attributes: Mapping[str, AttributeValue],
    stated: Shape,
    mixed_precision: bool = True,
) -> None:
    """Judge the shape that a program states for a result.

    Args:
        opcode: HLO name.
        operands: shapes of the operands.
        attributes: by HLO name.
        stated: the result shape to judge; layouts and dynamic flags are not compared.
        mixed_precision: allow a result of another floating-point width, as XLA does for TPU.

    Raises:
        VerificationError: what is wrong, and what is allowed.
    """
    check_operand_count(opcode, len(operands))
    op = Op(opcode, operands, attributes, stated, mixed_precision)
    check = CHECK_RULES.get(opcode)
    if check is not None:
        check(op)
        return
    inferred = INFER_RULES[opcode](op)
    if not compatible(stated, inferred, mixed_precision and opcode not in _EXACT):
        raise VerificationError("shape-mismatch", f"{opcode} must give {inferred}, not {stated}")


def check_operand_count(opcode: str, count: int) -> None:
    """Raise a VerificationError unless `opcode` exists and takes `count` operands."""
    row = OPCODES.get(opcode)
    if row is None:
        raise VerificationError("unknown-opcode", f"there is no opcode {opcode}")
    most = row.max_operands
    if count < row.min_operands or (most is not None and count > most):
        allowed = str(row.min_operands) if most == row.min_operands else f"{row.min_operands} to {most}"
        if most is None:
            allowed = f"at least {row.min_operands}"
        raise VerificationError("operand-count", f"{opcode} takes {allowed} operands, not {count}")
