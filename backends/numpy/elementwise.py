"""From a function on whole arrays to the kernel of an elementwise instruction.

A function is written for the types in which NumPy computes: pred, the integer carriers, f32, f64, c64, c128.
Here it gets the operands in those types, and its result is rounded or wrapped once to the declared type.
Types that need neither use the function itself as the kernel.

Functions must broadcast over arrays of any rank and accept NumPy scalars: reductions, scatter and sort call
the kernels of their scalar computations on whole arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from hlotool.backends.numpy.dynamic_dims import on_common_prefix
from hlotool.backends.numpy.integers import carrier, is_sub_byte, wrap
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.precision import narrow, widen
from hlotool.backends.numpy.registry import Kernel
from hlotool.ir.dtypes import Array, dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType, TypeClass

Function: TypeAlias = Callable[..., Any]


def elementwise(
    instruction: Instruction,
    lowering: Lowering,
    *,
    pred: Function | None = None,
    integer: Function | None = None,
    floating: Function | None = None,
    complexes: Function | None = None,
) -> Kernel:
    """The kernel that applies the function for the operands' family of types.

    Raises:
        Unsupported: no function for that family.
    """
    functions = {
        TypeClass.PRED: pred,
        TypeClass.SIGNED: integer,
        TypeClass.UNSIGNED: integer,
        TypeClass.FLOATING: floating,
        TypeClass.COMPLEX: complexes,
    }
    operand_type = instruction.operands[0].element_type
    function = functions[operand_type.family]
    if function is None:
        raise lowering.unsupported(instruction, f"{instruction.opcode} is not defined on {operand_type}")
    types = [operand.element_type for operand in instruction.operands]
    return for_sizes(adapt(function, types, instruction.element_type), instruction)


def for_sizes(function: Function, instruction: Instruction) -> Kernel:
    """`function` as the kernel of an elementwise instruction, whose operands may be of dynamic size."""
    if not instruction.array_shape.is_dynamic:
        return function
    return on_common_prefix(function, [operand.array_shape for operand in instruction.operands])


def adapt(function: Function, operand_types: list[ElementType], result_type: ElementType) -> Function:
    """`function`, with operands brought to its types and its result to `result_type`.

    Operands of unequal types (mixed precision) meet in the wider one before the result is rounded.
    """
    if any(t is not operand_types[0] for t in operand_types):
        return _mixed(function, operand_types, result_type)
    operand_type = operand_types[0]
    if operand_type.is_narrow_float:
        return _narrow_float(function, operand_type, result_type)
    if is_sub_byte(operand_type):
        return _sub_byte(function, operand_type, result_type)
    return function


def _narrow_float(function: Function, operand_type: ElementType, result_type: ElementType) -> Function:
    def kernel(*operands: Any) -> Any:
        return narrow(function(*[widen(o, operand_type) for o in operands]), result_type)

    return kernel


def _sub_byte(function: Function, operand_type: ElementType, result_type: ElementType) -> Function:
    dtype = carrier(operand_type)
    if not is_sub_byte(result_type):
        return lambda *operands: function(*[o.astype(dtype) for o in operands])
    return lambda *operands: wrap(function(*[o.astype(dtype) for o in operands]), result_type)


def _mixed(function: Function, operand_types: list[ElementType], result_type: ElementType) -> Function:
    dtype = dtype_of(result_type)

    def kernel(*operands: Any) -> Array:
        result: Array = function(*[widen(o, t) for o, t in zip(operands, operand_types)])
        return result.astype(dtype, copy=False)

    return kernel
