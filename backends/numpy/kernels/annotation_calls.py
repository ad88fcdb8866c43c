"""Custom calls that annotate, place or allocate, and do no arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotool.analysis.custom_calls import ANNOTATIONS
from hlotool.backends.numpy.complexes import compose
from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel
from hlotool.ir.dtypes import Array, dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, BufferShape, ElementType


@custom_call(*ANNOTATIONS)
def annotation(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The operand.

    XLA: sharding_op_util.h, hlo_sharding_util.h, host_offload_utils.h, shardy/constants.h, despecializer.cc,
    dynamic_padder.cc.
    """
    if len(instruction.operands) != 1:
        target = instruction.custom_call_target
        raise lowering.unsupported(instruction, f"{target} of {len(instruction.operands)} operands")
    return _same


@custom_call("xla.sdy.ShardingGroup")
def sharding_group(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Nothing: it only ties shardings together. XLA: shardy/constants.h."""
    return lambda *operands: ()


@custom_call("AllocateBuffer", "CreateBuffer")
def allocate_buffer(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Memory before anything is written to it: NaN, or a pattern that no program means (0xA5 bytes).

    Reading it before writing is a fault of the program, which this makes visible. XLA: host_offload_utils.h.
    """
    shape = instruction.shape
    if isinstance(shape, BufferShape):
        shape = shape.array
    if not isinstance(shape, ArrayShape):
        raise lowering.unsupported(instruction, f"allocation of {shape}")
    dims, poison = shape.dims, _poison(shape)
    return lambda: np.full(dims, poison)


def _poison(shape: ArrayShape) -> Array:
    dtype = dtype_of(shape.element_type)
    if dtype.kind == "b":
        return np.ones((), dtype)
    if dtype.kind in "iu":
        return np.frombuffer(b"\xa5" * dtype.itemsize, dtype).reshape(())
    return np.array(np.nan).astype(dtype)


@custom_call("X64Combine")
def x64_combine(instruction: Instruction, lowering: Lowering) -> Kernel:
    """A 64-bit integer from its halves, a complex number from its parts, f64 from two terms in f32.

    XLA: the X64 rewriter of the TPU compiler, measured: libtpu 0.0.11 to 0.0.52.
    """
    target = instruction.element_type
    if target is ElementType.C64:
        return compose
    if target is ElementType.F64:
        return lambda leading, rest: leading.astype(np.float64) + rest.astype(np.float64)
    if not (target.is_integer and target.bits == 64):
        raise lowering.unsupported(instruction, f"X64Combine to {target}")
    dtype = dtype_of(target)
    return lambda low, high: (low.astype(np.uint64) | (high.astype(np.uint64) << 32)).astype(dtype)


@custom_call("X64SplitLow", "X64SplitHigh")
def x64_split(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Half of a 64-bit integer; of a complex number the real part is the low one, the imaginary the high one.

    Of f64 the low one is the number in f32, the high one in f32 what that leaves: only so does the arithmetic
    between them give more digits than f32 has. A number that f32 cannot hold leaves 0.

    XLA: the X64 rewriter of the TPU compiler, measured: libtpu 0.0.11 to 0.0.52.
    """
    source, is_high = instruction.operands[0].element_type, instruction.custom_call_target == "X64SplitHigh"
    if source is ElementType.C64:
        return (lambda x: x.imag.copy()) if is_high else (lambda x: x.real.copy())
    if source is ElementType.F64:
        return _rest_of_f64 if is_high else _leading_of_f64
    if not (source.is_integer and source.bits == 64):
        raise lowering.unsupported(instruction, f"{instruction.custom_call_target} of {source}")
    dtype = dtype_of(instruction.element_type)
    shift = 32 if is_high else 0
    return lambda x: (x.astype(np.uint64) >> shift).astype(np.uint32).astype(dtype)


def _leading_of_f64(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return x.astype(np.float32)


def _rest_of_f64(x: Array) -> Array:
    leading = _leading_of_f64(x)
    with np.errstate(invalid="ignore"):
        rest = (x - leading).astype(np.float32)
    return np.where(np.isfinite(leading), rest, np.float32(0))


def _same(value: Any) -> Any:
    return value
