"""Calls, branches, loops, asynchronous calls and maps: the kernels that run other computations."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from hlotool.backends.base import TOKEN
from hlotool.backends.numpy.lanes import lanes
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.plan import Plan, Run, describe
from hlotool.backends.numpy.registry import Calling, Kernel, lowers
from hlotool.errors import EndlessLoop
from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape, array_shapes
from hlotool.ir.walk import branches, has_side_effect
from hlotool.system.resources import spend


def called_plan(instruction: Instruction, name: str, lowering: Lowering) -> Plan:
    """The plan of the computation that attribute `name` holds."""
    return lowering.plan(instruction.computation(name))


@lowers("call")
def call(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The called computation's result. XLA: operation_semantics.md#call."""
    return Calling(called_plan(instruction, "to_apply", lowering))


@lowers("fusion")
def fusion(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The fused computation's result, every instruction rounded to its declared type.

    The kind does not matter: a custom fusion is executed as the plain HLO in its computation.
    XLA: operation_semantics.md#fusion.
    """
    return Calling(called_plan(instruction, "calls", lowering))


@lowers("while")
def loop(instruction: Instruction, lowering: Lowering) -> Kernel:
    """`body(state)` again and again while `condition(state)` holds. XLA: operation_semantics.md#while.

    The loop keeps no reference to the state while the body runs, so that the body can update carried buffers
    in place. One that depends on nothing but its state, and leaves it as it was, is endless: it ends with a
    BackendTimeout.
    """
    condition = called_plan(instruction, "condition", lowering)
    body = called_plan(instruction, "body", lowering)

    depends_on_state = lowering.is_exact and len(lowering.grid) == 1 and not has_side_effect(instruction)

    def kernel(state: list[Any], run: Run) -> Any:
        iteration, checked = 0, FIRST_CHECK if depends_on_state else -1
        while condition(state.copy(), run):
            iteration += 1
            spend(condition.price + body.price)
            before = fingerprint(state[0]) if iteration == checked else None
            state.append(body(state, run))
            if iteration == checked:
                if before is not None and before == fingerprint(state[0]):
                    raise endless(instruction)
                checked *= 2
        return state.pop()

    return Calling(kernel)


@lowers("conditional")
def conditional(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The branch that the first operand chooses, applied to that branch's own operand.

    A pred chooses the first of two branches when true; an index outside the branches chooses the last one.
    XLA: operation_semantics.md#conditional.
    """
    plans = [lowering.plan(branch) for branch in branches(instruction)]
    by_pred = instruction.operands[0].element_type is ElementType.PRED
    last = len(plans) - 1

    def kernel(values: list[Any], run: Run) -> Any:
        selector = int(values[0])
        if by_pred:
            branch = 1 - selector
        else:
            branch = selector if 0 <= selector <= last else last
        arguments = [values[branch + 1]]
        values.clear()
        spend(plans[branch].price)
        return plans[branch](arguments, run)

    return Calling(kernel)


# Loops that cannot end: their state is the same after an iteration as before it.

#: The state is looked at in this iteration, and whenever their number has doubled: next to no work.
FIRST_CHECK = 1024


def fingerprint(value: Any) -> bytes | None:
    """What tells states apart, NaN payloads and signs of zeros included; None for values out of reach."""
    digest = hashlib.blake2b(digest_size=16)
    return digest.digest() if _feed(digest, value) else None


def _feed(digest: hashlib.blake2b, value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_feed(digest, element) for element in value)
    if value is TOKEN:
        return True
    if not isinstance(value, (np.ndarray, np.generic)):
        return False  # such as an array on a GPU
    digest.update(str(value.shape).encode())
    digest.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
    return True


def endless(loop: Instruction) -> EndlessLoop:
    """The error that says so."""
    return EndlessLoop("numpy", f"endless loop: {describe(loop)} continues, but its state no longer changes")


# Asynchronous calls: executed where they start.


@lowers("async-start")
def async_start(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The operands, the called computation's result, and contexts. XLA: docs/async_ops.md."""
    plan = called_plan(instruction, "calls", lowering)
    contexts = _contexts(instruction, lowering)

    def kernel(values: list[Any], run: Run) -> Any:
        operands = tuple(values)
        return (operands, plan(values, run), *contexts)

    return Calling(kernel)


@lowers("async-update")
def async_update(instruction: Instruction, lowering: Lowering) -> Kernel:
    """What the start returned. XLA: docs/async_ops.md."""
    return lambda started: started


@lowers("async-done")
def async_done(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The result of the call. XLA: docs/async_ops.md."""
    return lambda started: started[1]


def _contexts(instruction: Instruction, lowering: Lowering) -> tuple[Any, ...]:
    if not isinstance(instruction.shape, TupleShape) or len(instruction.shape.elements) < 2:
        raise lowering.unsupported(instruction, f"async-start of shape {instruction.shape}")
    return tuple(blank(shape) for shape in instruction.shape.elements[2:])


def blank(shape: Shape) -> Any:
    """A value of `shape` that means nothing: zeros, tokens."""
    if isinstance(shape, TupleShape):
        return tuple(blank(element) for element in shape.elements)
    if isinstance(shape, ArrayShape):
        return np.zeros(shape.dims, dtype_of(shape.element_type))
    return TOKEN


@lowers("map")
def map_elements(instruction: Instruction, lowering: Lowering) -> Kernel:
    """`to_apply` of the corresponding elements of all operands. XLA: operation_semantics.md#map."""
    apply = lanes(instruction.computation("to_apply"), lowering)

    def kernel(*operands: Array) -> Array:
        return apply(*operands)[0]

    return kernel


@lowers("scan")
def scan(instruction: Instruction, lowering: Lowering) -> Kernel:
    """A loop over one dimension of the inputs with carried values.

    Operands are inputs and initial carries; `to_apply(slices…, carries…)` returns the output slices and the
    new carries, `num_carries` of them. The slices lack the scanned dimension. The results are the stacked
    outputs and the last carries. `is_reverse` walks from the end; outputs keep the positions of their inputs.

    XLA: hlo_instructions.h (HloScanInstruction); measured on jaxlib 0.10.2, CPU.
    """
    axis = _scanned_axis(instruction, lowering)
    plan = lowering.plan(instruction.computation("to_apply"))
    carry_count = instruction.integer("num_carries", 0)
    input_count = len(instruction.operands) - carry_count
    backwards = instruction.flag("is_reverse")
    shapes = array_shapes(instruction.shape)
    output_shapes = shapes[: len(shapes) - carry_count]

    def function(values: list[Any], run: Run) -> tuple[Any, ...]:
        rows = [np.moveaxis(v, axis, 0) for v in values[:input_count]]
        carries = tuple(values[input_count:])
        length = len(rows[0])
        outputs = [np.empty(_sizes(s, axis, length), dtype_of(s.element_type)) for s in output_shapes]
        values.clear()
        for position in reversed(range(length)) if backwards else range(length):
            results = plan([*(r[position, ...] for r in rows), *carries], run)
            for output, result in zip(outputs, results):
                output[position, ...] = result
            carries = results[len(outputs) :]
        return (*(np.moveaxis(o, 0, axis) for o in outputs), *carries)

    return Calling(function)


def _scanned_axis(instruction: Instruction, lowering: Lowering) -> int:
    dimensions = instruction.integers("dimensions", (0,))
    if len(dimensions) != 1:
        raise lowering.unsupported(instruction, f"a scan over dimensions {dimensions}")
    axis: int = dimensions[0]
    return axis


def _sizes(shape: ArrayShape, axis: int, length: int) -> tuple[int, ...]:
    """Dimensions of an output with the scanned one first."""
    others = [size for dim, size in enumerate(shape.dims) if dim != axis]
    return (length, *others)
