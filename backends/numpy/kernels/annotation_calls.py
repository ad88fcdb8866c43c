"""Custom calls that annotate, place or allocate, that HLO once had no opcode for, and at borders of manual
regions.

Manual regions are JAX's shard_map.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlotool.backends.numpy.comparators import sort_order
from hlotool.backends.numpy.complexes import compose
from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.kernels.sort import top
from hlotool.backends.numpy.lockstep import Device, this_device
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.plan import Run
from hlotool.backends.numpy.registry import Calling, Kernel
from hlotool.facts.recognition import ANNOTATIONS
from hlotool.facts.scalar_form import scalar_form
from hlotool.facts.sharding import ManualParts, along_axes, manual_parts
from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.attributes import Sharding
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, BufferShape, ElementType, Shape, TupleShape, array_shapes
from hlotool.parser.shardy import border_of, module_meshes


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


@custom_call("TopK", "__gpu$TopK", widens=True)
def topk_call(instruction: Instruction, lowering: Lowering) -> Kernel:
    """First elements of the last dimension and their s32 indices, as many as the result holds.

    The called computation compares two elements: GT finds the largest, LT the smallest; without one the
    largest are found. Floats compare in total order, as in XLA's CPU runtime, whatever it says; kernels for
    GPUs leave the order of equal elements open.
    XLA: topk_rewriter.cc, service/gpu/transforms/topk_specializer.cc.
    """
    k = array_shapes(instruction.shape)[0].dims[-1]
    return top(instruction.operands[0].element_type, k, finds_largest(instruction, lowering))


def finds_largest(call: Instruction, lowering: Lowering) -> bool:
    """Whether a call of TopK finds the largest elements and not the smallest."""
    forms = [scalar_form(c) for c in call.called]
    if not forms:
        return True
    order = sort_order(forms[0]) if forms[0] is not None else None
    if order is None:
        raise lowering.unsupported(call, "TopK with a comparator that is not understood")
    return order.keys[0].descending


@custom_call("cu_lu_pivots_to_permutation", "hip_lu_pivots_to_permutation", "cuda_lu_pivots_to_permutation")
def lu_pivots_to_permutation(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The permutation that exchanging row i with row pivots[i], for one i after the other, makes.

    Pivots count from 0; one that is no row exchanges nothing. Source: jaxlib/gpu/linalg_kernels.cu.cc.
    """
    size = instruction.dims[-1]

    def kernel(pivots: Array) -> Array:
        batch = pivots.shape[:-1]
        rows = pivots.reshape((-1, pivots.shape[-1])).astype(np.int64)
        permutation = np.broadcast_to(np.arange(size, dtype=np.int32), (len(rows), size)).copy()
        each = np.arange(len(rows))
        for row in range(rows.shape[1]):
            pivot = rows[:, row]
            other = np.where((pivot >= 0) & (pivot < size), pivot, row)
            swapped = permutation[each, other]
            permutation[each, other] = permutation[:, row]
            permutation[:, row] = swapped
        return permutation.reshape((*batch, size))

    return kernel


@custom_call("SPMDFullToShardShape", "xla.sdy.GlobalToLocalShape")
def global_to_local(instruction: Instruction, lowering: Lowering) -> Kernel:
    """This device's part of each operand, along the manual axes.

    XLA: hlo_sharding_util.h, shardy/constants.h.
    """
    return _enter(instruction, lowering, _shardings(instruction, lowering))


@custom_call("SPMDShardToFullShape", "xla.sdy.LocalToGlobalShape")
def local_to_global(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The arrays of which each device holds a part, along the manual axes.

    XLA: hlo_sharding_util.h, shardy/constants.h.
    """
    return _leave(instruction, lowering, _shardings(instruction, lowering))


def _enter(instruction: Instruction, lowering: Lowering, shardings: Sequence[Sharding | None]) -> Kernel:
    parts = [
        _parts(instruction, lowering, sharding, operand.array_shape, result)
        for sharding, operand, result in zip(shardings, instruction.operands, _results(instruction, lowering))
    ]

    def kernel(values: list[Any], run: Run) -> Any:
        own = [
            value if p is None else p.part(value, this_device(run).partition)
            for p, value in zip(parts, values)
        ]
        return _as_result(instruction, own)

    return Calling(kernel)


def _leave(instruction: Instruction, lowering: Lowering, shardings: Sequence[Sharding | None]) -> Kernel:
    parts = [
        _parts(instruction, lowering, sharding, result, operand.array_shape)
        for sharding, operand, result in zip(shardings, instruction.operands, _results(instruction, lowering))
    ]

    def kernel(values: list[Any], run: Run) -> Any:
        whole = [
            value if p is None else _gather(this_device(run), instruction, p, value)
            for p, value in zip(parts, values)
        ]
        return _as_result(instruction, whole)

    return Calling(kernel)


def _gather(device: Device, instruction: Instruction, parts: ManualParts, value: Array) -> Array:
    members = tuple(
        device.world.grid.device(device.replica, partition) for partition in parts.members(device.partition)
    )
    whole: Array = device.meet(
        instruction, members, value, lambda values: [parts.whole(values)] * len(members)
    )
    return whole


def _parts(
    instruction: Instruction,
    lowering: Lowering,
    sharding: Sharding | None,
    whole: ArrayShape,
    part: ArrayShape,
) -> ManualParts | None:
    """How the devices hold one array; None when each holds all of it."""
    if whole.dims == part.dims:
        return None
    if lowering.grid.partitions == 1:
        raise lowering.unsupported(instruction, f"{part.logical_text()} is one of several shards")
    if sharding is None:
        raise lowering.unsupported(instruction, "a change of shape without a sharding")
    try:
        return manual_parts(sharding, whole.dims, part.dims, lowering.grid.partitions)
    except ValueError as error:
        raise lowering.unsupported(instruction, str(error)) from None


def _shardings(instruction: Instruction, lowering: Lowering) -> list[Sharding | None]:
    """The shardings of the global values, cut down to the manual axes where these have names."""
    try:
        border = border_of(instruction, module_meshes(lowering.module))
        if border.manual is None:
            return list(border.shardings)
        names = tuple(border.manual)
        return [None if one is None else along_axes(one, names) for one in border.shardings]
    except ValueError as error:
        raise lowering.unsupported(instruction, str(error)) from None


def _results(instruction: Instruction, lowering: Lowering) -> list[ArrayShape]:
    shapes: Sequence[Shape] = (
        instruction.shape.elements if isinstance(instruction.shape, TupleShape) else (instruction.shape,)
    )
    arrays = [shape for shape in shapes if isinstance(shape, ArrayShape)]
    if len(arrays) != len(instruction.operands):
        raise lowering.unsupported(
            instruction, f"{instruction.shape} from {len(instruction.operands)} operands"
        )
    return arrays


def _as_result(instruction: Instruction, values: list[Any]) -> Any:
    return tuple(values) if isinstance(instruction.shape, TupleShape) else values[0]
