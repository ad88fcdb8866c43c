"""Moving data without looking at it: views wherever NumPy can; tuples, tokens, transfers to the host.

Transfers that cannot be executed are refused here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from hlotool.backends.base import TOKEN, Token
from hlotool.backends.numpy.bit_patterns import bitcaster
from hlotool.backends.numpy.lockstep import this_device
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.plan import Run
from hlotool.backends.numpy.precision import converter
from hlotool.backends.numpy.registry import Calling, Kernel, lowers
from hlotool.errors import Unsupported
from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.attributes import PaddingDim, SliceDim
from hlotool.ir.devices import place_pairs
from hlotool.ir.module import Instruction
from hlotool.ir.types import UNBOUNDED, ArrayShape, ElementType, TupleShape


@lowers("broadcast")
def broadcast(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Operand dimension i becomes dimension `dimensions[i]` of the result; the others repeat it.

    The dimensions need not be sorted: {1,0} transposes. XLA: operation_semantics.md#broadcastindim.
    """
    source, target = instruction.operands[0].array_shape, instruction.array_shape
    dimensions = instruction.integers("dimensions", ())
    order = tuple(int(i) for i in np.argsort(dimensions))
    inserted = tuple(d for d in range(target.rank) if d not in dimensions)
    _check_sizes(instruction, lowering, [target.dims[d] for d in inserted])
    if target.is_dynamic:
        return partial(_broadcast_dynamic, dims=target.dims, order=order, inserted=inserted)
    dims = target.dims
    expanded = tuple(1 if d in inserted else size for d, size in enumerate(dims))
    strides = _strides_in_result(source, dimensions, target.rank)

    def kernel(x: Any) -> Array:
        if not x.size or not x.flags.c_contiguous:
            return np.broadcast_to(x.transpose(order).reshape(expanded), dims)
        # Eight times as fast as the above, which counts where programs loop.
        view: Array = np.ndarray(dims, x.dtype, x, 0, strides)
        view.flags.writeable = False
        return view

    return kernel


def _check_sizes(instruction: Instruction, lowering: Lowering, sizes: Sequence[int]) -> None:
    """Sizes that no operand tells must stand in the shape."""
    if UNBOUNDED in sizes:
        raise lowering.unsupported(instruction, f"unknown sizes of {instruction.shape}")


def _strides_in_result(source: ArrayShape, dimensions: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Bytes between neighbours along each dimension of a broadcast of a row-major array."""
    strides = [0] * rank
    step = dtype_of(source.element_type).itemsize
    for dim, size in reversed(list(zip(dimensions, source.dims))):
        strides[dim] = step
        step *= size
    return tuple(strides)


def _broadcast_dynamic(
    x: Array, dims: tuple[int, ...], order: tuple[int, ...], inserted: tuple[int, ...]
) -> Array:
    expanded = np.expand_dims(x.transpose(order), inserted)
    actual = tuple(size if d in inserted else expanded.shape[d] for d, size in enumerate(dims))
    return np.broadcast_to(expanded, actual)


@lowers("bitcast")
def bitcast(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The operand's buffer, read in the layout of the result. XLA: operation_semantics.md#bitcast."""
    source, target = instruction.operands[0].array_shape, instruction.array_shape
    try:
        return bitcaster(source, target)
    except ValueError as error:
        raise lowering.unsupported(instruction, f"bitcast: {error}") from error


@lowers("transpose")
def transpose(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Dimension i of the result is dimension `dimensions[i]` of the operand. XLA: #transpose."""
    dimensions = instruction.integers("dimensions")
    return lambda x: x.transpose(dimensions)


@lowers("reverse")
def reverse(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The elements of some dimensions in reverse order. XLA: operation_semantics.md#rev."""
    return partial(np.flip, axis=instruction.integers("dimensions"))


@lowers("slice")
def static_slice(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Every `stride`-th element from `start` up to `limit`. XLA: operation_semantics.md#slice.

    A slice of static size must not reach beyond the actual size of a dynamic array: what XLA finds there has
    no meaning.
    """
    dims = instruction.listed("slice", SliceDim)
    index = tuple(slice(d.start, d.limit, d.stride) for d in dims)
    if not instruction.operands[0].array_shape.is_dynamic:
        return lambda x: detached(x[index], x)
    shape = instruction.array_shape

    def kernel(x: Array) -> Array:
        part = x[index]
        for dimension, (found, wanted) in enumerate(zip(part.shape, shape.dims)):
            if found != wanted and not shape.is_dynamic_dimension(dimension):
                beyond = f"a slice beyond the actual size {x.shape[dimension]} of dimension {dimension}"
                raise lowering.unsupported(instruction, beyond)
        return detached(part, x)

    return kernel


def detached(part: Array, whole: Array) -> Array:
    """A part of an array, copied if it is small, lest it keep the whole alive and others from updating it."""
    return part.copy() if 4 * part.nbytes <= whole.nbytes else part


@lowers("concatenate")
def concatenate(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The operands one behind the other. XLA: operation_semantics.md#concatenate."""
    (axis,) = instruction.integers("dimensions")
    return lambda *parts: np.concatenate(parts, axis=axis)


@lowers("iota")
def iota(instruction: Instruction, lowering: Lowering) -> Kernel:
    """0, 1, 2, … along one dimension; narrow integers wrap. XLA: operation_semantics.md#iota."""
    shape = instruction.array_shape
    dimension = instruction.integer("iota_dimension")
    _check_sizes(instruction, lowering, shape.dims)
    if not shape.size:
        empty = np.empty(shape.dims, dtype_of(shape.element_type))
        return lambda: empty
    with np.errstate(all="ignore"):
        numbers = converter(ElementType.S64, shape.element_type)(np.arange(shape.dims[dimension]))
    along = tuple(size if d == dimension else 1 for d, size in enumerate(shape.dims))
    value = np.broadcast_to(numbers.reshape(along), shape.dims)
    return lambda: value


@lowers("copy")
def copy(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The same value; kernels never write to what others read. XLA: hlo_opcode.h."""
    return _same


@lowers("copy-start")
def copy_start(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The destination, the source, and a context. XLA: hlo_opcode.h."""
    context = np.zeros((), np.uint32)
    return lambda x: (x, x, context)


@lowers("copy-done")
def copy_done(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The destination of a copy-start. XLA: hlo_opcode.h."""
    return lambda started: started[0]


def _same(value: Any) -> Any:
    return value


@lowers("pad")
def pad(instruction: Instruction, lowering: Lowering) -> Kernel:
    """`interior` copies of the value between elements, `low` before, `high` behind.

    Negative `low` and `high` cut off what the interior padding has produced. XLA: operation_semantics.md#pad.
    """
    paddings = instruction.listed("padding", PaddingDim)
    operand = instruction.operands[0].array_shape
    if operand.is_dynamic:
        return lambda x, value: _Placement(x.shape, paddings)(x, value)
    return _Placement(operand.dims, paddings)


class _Placement:
    """Where the elements of an array of given dimensions go."""

    def __init__(self, dims: Sequence[int], paddings: Sequence[PaddingDim]) -> None:
        self.dims = tuple(_padded_size(size, p) for size, p in zip(dims, paddings))
        places = [_place(size, p, out) for size, p, out in zip(dims, paddings, self.dims)]
        self.source = tuple(source for source, _ in places)
        self.target = tuple(target for _, target in places)

    def __call__(self, x: Array, value: Array) -> Array:
        result = np.full(self.dims, value, x.dtype)
        result[self.target] = x[self.source]
        return result


def _padded_size(size: int, padding: PaddingDim) -> int:
    gaps = max(0, size - 1) * padding.interior
    return max(0, padding.low + size + gaps + padding.high)


def _place(size: int, padding: PaddingDim, out: int) -> tuple[slice, slice]:
    """Which elements survive in one dimension, and where they go."""
    step = padding.interior + 1
    first = -(min(0, padding.low) // step)
    last = min(size - 1, (out - 1 - padding.low) // step)
    if last < first:
        return slice(0, 0), slice(0, 0)
    start, stop = padding.low + first * step, padding.low + last * step + 1
    return slice(first, last + 1), slice(start, stop, step)


@lowers("tuple")
def make_tuple(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The operands as a tuple. XLA: operation_semantics.md#tuple."""
    return lambda *values: values


@lowers("get-tuple-element")
def get_tuple_element(instruction: Instruction, lowering: Lowering) -> Kernel:
    """One element of a tuple. XLA: operation_semantics.md#gettupleelement."""
    index = instruction.integer("index")
    return lambda values: values[index]


@lowers("after-all")
def after_all(instruction: Instruction, lowering: Lowering) -> Kernel:
    """A token that stands behind all operands. XLA: operation_semantics.md#afterall."""
    return _token


@lowers("add-dependency", "domain", "opt-barrier")
def identity(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The first operand. XLA: hlo_opcode.h, operation_semantics.md#optimizationbarrier."""
    return _first


def _token(*_: Any) -> Token:
    return TOKEN


def _first(value: Any, *_: Any) -> Any:
    return value


@lowers("infeed")
def infeed(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Not executable. XLA: operation_semantics.md#infeed."""
    raise _from_outside(instruction, lowering, "the host")


@lowers("recv")
def recv(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Zeros for now, a handle and a token; executable where another device sends. XLA: #recv."""
    _check_device_transfer(instruction, lowering)
    return start_receipt(instruction, lowering)


@lowers("recv-done")
def recv_done(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The data and a token; executable where another device sends. XLA: #recv."""
    _check_device_transfer(instruction, lowering)
    return finish_receipt(instruction, lowering)


def _check_device_transfer(instruction: Instruction, lowering: Lowering) -> None:
    if instruction.flag("is_host_transfer"):
        raise _from_outside(instruction, lowering, "the host")
    if len(lowering.grid) == 1:
        raise _from_outside(instruction, lowering, "another device")


def _from_outside(instruction: Instruction, lowering: Lowering, origin: str) -> Unsupported:
    return lowering.unsupported(instruction, f"takes data from {origin}, which no dump holds")


@lowers("outfeed")
def outfeed(instruction: Instruction, lowering: Lowering) -> Kernel:
    """A token; the data leaves the program, and nothing in it depends on them. XLA: #outfeed."""
    return lambda data, token: TOKEN


@lowers("send")
def send(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The data, a context and a token; what goes to the host leaves the program. XLA: #send."""
    if not instruction.flag("is_host_transfer"):
        if len(lowering.grid) == 1:
            raise lowering.unsupported(instruction, "send to another device; one device is executed")
        return dispatch(instruction, lowering)
    context = np.zeros((), np.uint32)
    return lambda data, token: (data, context, TOKEN)


@lowers("send-done")
def send_done(instruction: Instruction, lowering: Lowering) -> Kernel:
    """A token. XLA: operation_semantics.md#send."""
    return _host_token


def _host_token(_: Any) -> Any:
    return TOKEN


# Send and receive between devices, along the pairs in the frontend attributes.
#
# `recv` starts a receipt and returns a handle in the place of its context; `recv-done` waits for the data.
# The n-th `send` on a channel from one device to another meets the n-th `recv`.
#
# XLA: operation_semantics.md#send, #recv; source_target_pairs.h.

_PAIRS = "_xla_send_recv_source_target_pairs"


def dispatch(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The kernel of `send`: the data, a context and a token."""
    channel = instruction.integer("channel_id")
    targets: dict[int, list[int]] = {}
    for source, target in _pairs(instruction, lowering):
        targets.setdefault(source, []).append(target)
    context = np.zeros((), np.uint32)

    def kernel(values: list[Any], run: Run) -> Any:
        device = this_device(run)
        for target in targets.get(device.number, ()):
            device.send(channel, target, values[0])
        return values[0], context, TOKEN

    return Calling(kernel)


def start_receipt(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The kernel of `recv`: zeros, a handle and a token."""
    channel = instruction.integer("channel_id")
    senders = {target: source for source, target in _pairs(instruction, lowering)}
    shape = _data_shape(instruction, lowering)
    zeros = np.zeros(shape.dims, dtype_of(shape.element_type))
    zeros.flags.writeable = False

    def kernel(values: list[Any], run: Run) -> Any:
        device = this_device(run)
        handle = device.expect(channel, senders.get(device.number))
        return zeros, np.array(handle, np.uint32), TOKEN

    return Calling(kernel)


def finish_receipt(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The kernel of `recv-done`: the data, zeros when no device sends any, and a token."""

    def kernel(values: list[Any], run: Run) -> Any:
        zeros, handle, _ = values[0]
        data = this_device(run).receive(int(handle), instruction)
        return zeros if data is None else data, TOKEN

    return Calling(kernel)


def _pairs(instruction: Instruction, lowering: Lowering) -> tuple[tuple[int, int], ...]:
    text = instruction.frontend_attribute(_PAIRS)
    if text is None:
        raise lowering.unsupported(instruction, f"{instruction.opcode} without {_PAIRS}")
    found = re.findall(r"\{\s*(\d+)\s*,\s*(\d+)\s*\}", text)
    return place_pairs(instruction, [(int(s), int(t)) for s, t in found], lowering.grid)


def _data_shape(instruction: Instruction, lowering: Lowering) -> ArrayShape:
    shape = instruction.shape
    data = shape.elements[0] if isinstance(shape, TupleShape) else shape
    if not isinstance(data, ArrayShape):
        raise lowering.unsupported(instruction, f"receipt of {data}")
    return data
