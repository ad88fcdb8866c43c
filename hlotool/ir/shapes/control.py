"""Shape rules of calls and control flow, and of where values come from and go to.

Called computations and operands must agree. Sources and destinations are parameters, constants, tuples,
tokens, host transfers, random numbers.

XLA: hlo_verifier.cc, the Handle functions (HandleWhile, HandleConditional, HandleCall, HandleFusion,
HandleAsyncStart, …).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from hlotool.ir.module import Computation
from hlotool.ir.shapes.base import (
    PRED_SCALAR,
    S32_SCALAR,
    U32_SCALAR,
    Op,
    Signature,
    array_of,
    check_parameter_count,
    checks,
    compatible,
    flags_of,
    infers,
    signature,
    tuple_of,
)
from hlotool.ir.types import TOKEN, ArrayShape, ElementType, Shape, TupleShape


def _check_arguments(op: Op, name: str, callee: Signature, arguments: Iterable[Shape]) -> None:
    """One parameter per argument, each of a compatible shape."""
    arguments = tuple(arguments)
    check_parameter_count(op, name, callee, len(arguments))
    for i, (parameter, argument) in enumerate(zip(callee.parameters, arguments)):
        op.check_callee(
            compatible(parameter, argument),
            f"parameter {i} of {name} is {parameter}, the operand is {argument}",
        )


@infers("call")
def infer_call(op: Op) -> Shape:
    """What `to_apply` returns."""
    callee = signature(op.computation("to_apply"))
    _check_arguments(op, "to_apply", callee, op.operands)
    return callee.result


@infers("fusion")
def infer_fusion(op: Op) -> Shape:
    """What `calls` returns; it may take fewer parameters than there are operands."""
    callee = signature(op.computation("calls"))
    op.check_callee(
        len(callee.parameters) <= len(op.operands),
        f"calls takes {len(callee.parameters)} parameters, the fusion has {len(op.operands)} operands",
    )
    _check_arguments(op, "calls", callee, op.operands[: len(callee.parameters)])
    op.word("kind", ("kLoop", "kInput", "kOutput", "kCustom"), "kLoop")
    return callee.result


@infers("while")
def infer_while(op: Op) -> Shape:
    """The operand's shape, which body and condition take and body returns."""
    condition, body = signature(op.computation("condition")), signature(op.computation("body"))
    _check_arguments(op, "condition", condition, op.operands)
    _check_arguments(op, "body", body, op.operands)
    op.check_callee(
        compatible(condition.result, PRED_SCALAR), f"condition must return pred[], not {condition.result}"
    )
    op.check_callee(
        compatible(body.result, op.operands[0]),
        f"body must return what it takes, {op.operands[0]}, not {body.result}",
    )
    return op.operands[0]


@infers("conditional")
def infer_conditional(op: Op) -> Shape:
    """What the branches return; a dimension that is dynamic in one of them is dynamic."""
    selector = op.array(0, "the branch index")
    op.check(
        compatible(selector, PRED_SCALAR) or compatible(selector, S32_SCALAR),
        "branch-index",
        f"the branch index must be pred[] or s32[], not {selector}",
    )
    callees = _branches(op)
    predicated = compatible(selector, PRED_SCALAR)
    op.check(
        len(callees) == 2 if predicated else len(callees) > 0,
        "branch-count",
        f"a conditional on {selector} must have {2 if predicated else 'some'} branches, not {len(callees)}",
    )
    op.check(
        len(op.operands) == len(callees) + 1,
        "operand-count",
        f"conditional needs the branch index and one operand per branch: {len(callees) + 1}, "
        f"not {len(op.operands)}",
    )
    branches = [signature(c) for c in callees]
    result = branches[0].result
    for i, (branch, argument) in enumerate(zip(branches, op.operands[1:])):
        _check_arguments(op, f"branch {i}", branch, (argument,))
        op.check_callee(
            compatible(result, branch.result),
            f"all branches must return one shape: {result} and {branch.result}",
        )
        result = _more_dynamic(result, branch.result)
    return result


def _branches(op: Op) -> tuple[Computation, ...]:
    if "branch_computations" in op.attributes:
        return op.listed("branch_computations", Computation)
    return op.computation("true_computation"), op.computation("false_computation")


def _more_dynamic(a: Shape, b: Shape) -> Shape:
    """`a` with the dynamic flags of both."""
    if isinstance(a, TupleShape) and isinstance(b, TupleShape):
        return tuple_of(_more_dynamic(x, y) for x, y in zip(a.elements, b.elements))
    if isinstance(a, ArrayShape) and isinstance(b, ArrayShape) and b.is_dynamic:
        return replace(a, dynamic=tuple(x or y for x, y in zip(flags_of(a), flags_of(b))))
    return a


def _async_parts(op: Op, shape: Shape | None) -> tuple[Shape, ...]:
    """((operands…), result, contexts…)."""
    demand = "an asynchronous value must be ((operands…), result, contexts…)"
    parts = op.elements(shape, demand)
    op.check_shape(isinstance(parts[0], TupleShape), f"{demand}, not {shape}")
    return parts


@checks("async-start")
def check_async_start(op: Op) -> None:
    """The first part holds the operands, the second what the wrapped computation returns."""
    taken, result, *_ = _async_parts(op, op.stated)
    op.check_shape(
        compatible(taken, tuple_of(op.operands)),
        f"part 0 of the result must be {tuple_of(op.operands)}, the operands, not {taken}",
    )
    wrapped = op.attribute("calls", Computation, None)
    if wrapped is not None:
        callee = signature(wrapped)
        _check_arguments(op, "calls", callee, op.operands)
        op.check_shape(
            compatible(result, callee.result),
            f"part 1 of the result must be {callee.result}, what calls returns, not {result}",
        )


@infers("async-update")
def infer_async_update(op: Op) -> Shape:
    """The operand's shape."""
    _async_parts(op, op.operands[0])
    return op.operands[0]


@infers("async-done")
def infer_async_done(op: Op) -> Shape:
    """What the wrapped computation returns."""
    return _async_parts(op, op.operands[0])[1]


#: Largest size that get-dimension-size can return as s32.
_LARGEST_SIZE = 2**31 - 1


@checks("parameter", "constant", "bitcast")
def check_anything(op: Op) -> None:
    """Any shape: callers and literals are compared with it elsewhere, bitcasts are up to the layouts."""


@checks("iota")
def check_iota(op: Op) -> None:
    """Numbers along one dimension of an array of rank 1 or more."""
    result = op.stated_array()
    op.check_shape(result.rank > 0, "iota cannot give a scalar")
    op.position("iota_dimension", result.rank)
    op.check_type(result.element_type is not ElementType.PRED, "iota gives numbers, it cannot give pred")


@infers("partition-id", "replica-id")
def infer_id(op: Op) -> Shape:
    """u32[]."""
    return U32_SCALAR


@infers("tuple")
def infer_tuple(op: Op) -> Shape:
    """A tuple of the operands' shapes."""
    return tuple_of(op.operands)


@infers("get-tuple-element")
def infer_get_tuple_element(op: Op) -> Shape:
    """The element at `index`."""
    shape = op.operands[0]
    if not isinstance(shape, TupleShape):
        raise op.error("tuple-expected", f"the operand of get-tuple-element must be a tuple, not {shape}")
    return shape.elements[op.position("index", len(shape.elements))]


@infers("after-all", "send-done")
def infer_after_all(op: Op) -> Shape:
    """token[]."""
    return TOKEN


@infers("add-dependency")
def infer_add_dependency(op: Op) -> Shape:
    """The first operand's shape; the second is a token."""
    op.token(1)
    return op.operands[0]


@checks("infeed")
def check_infeed(op: Op) -> None:
    """(data, token[])."""
    op.token(0)
    stated = op.stated
    op.check_shape(
        isinstance(stated, TupleShape) and len(stated.elements) == 2 and stated.elements[1] == TOKEN,
        f"infeed must give (data, token[]), not {stated}",
    )


@infers("outfeed")
def infer_outfeed(op: Op) -> Shape:
    """token[]; `outfeed_shape` is the first operand's shape."""
    op.token(1)
    shape = op.attributes.get("outfeed_shape")
    op.check_value(
        shape is None or compatible(shape, op.operands[0]),  # type: ignore[arg-type]
        f"outfeed_shape must be the operand's shape {op.operands[0]}, not {shape}",
    )
    return TOKEN


@infers("send")
def infer_send(op: Op) -> Shape:
    """(data, context, token[])."""
    return tuple_of((op.operands[0], U32_SCALAR, TOKEN))


@checks("recv")
def check_recv(op: Op) -> None:
    """(data, context, token[])."""
    stated = op.stated
    op.check_shape(
        isinstance(stated, TupleShape)
        and len(stated.elements) == 3
        and compatible(stated.elements[1], U32_SCALAR)
        and stated.elements[2] == TOKEN,
        f"recv must give (data, u32[], token[]), not {stated}",
    )


@infers("recv-done")
def infer_recv_done(op: Op) -> Shape:
    """(data, token[])."""
    received = op.operands[0]
    if not isinstance(received, TupleShape) or not received.elements:
        raise op.error("tuple-expected", f"the operand of recv-done must be what recv gives, not {received}")
    return tuple_of((received.elements[0], TOKEN))


@checks("rng")
def check_rng(op: Op) -> None:
    """Two scalars of the result's type: limits, or mean and deviation."""
    op.check(len(op.operands) == 2, "operand-count", f"rng takes 2 operands, not {len(op.operands)}")
    a, b = op.scalar(0, "operand 0"), op.scalar(1, "operand 1")
    result = op.stated_array()
    op.check_type(
        a.element_type is b.element_type
        and compatible(a, ArrayShape(result.element_type, ()), op.mixed_precision),
        f"operands and result of rng must have one element type: {a}, {b} and {result.logical_text()}",
    )
    kind = op.word("distribution", ("rng_uniform", "rng_normal"))
    op.check_type(
        a.element_type.is_floating or (kind == "rng_uniform" and not a.element_type.is_complex),
        f"{kind} cannot give {a.element_type}",
    )


@checks("rng-bit-generator")
def check_rng_bit_generator(op: Op) -> None:
    """(new state, bits), or the bits alone."""
    stated = op.stated
    if not isinstance(stated, TupleShape):
        return
    op.check_shape(
        len(stated.elements) == 2 and compatible(stated.elements[0], op.operands[0]),
        f"rng-bit-generator must give ({op.operands[0]}, bits), not {stated}",
    )


@infers("rng-get-and-update-state")
def infer_rng_state(op: Op) -> Shape:
    """u64[2]."""
    return array_of(ElementType.U64, (2,))


@infers("get-dimension-size")
def infer_get_dimension_size(op: Op) -> Shape:
    """s32[]."""
    _sized_dimension(op)
    return S32_SCALAR


@infers("set-dimension-size")
def infer_set_dimension_size(op: Op) -> Shape:
    """The operand's shape with a dynamic dimension."""
    operand, size = op.array(0), op.array(1, "the size")
    dimension = _sized_dimension(op)
    op.check_type(compatible(size, S32_SCALAR), f"the size must be s32[], not {size}")
    flags = flags_of(operand)
    flags[dimension] = True
    return replace(operand, dynamic=tuple(flags))


def _sized_dimension(op: Op) -> int:
    operand = op.array(0)
    dimension = op.only_dimension(operand.rank)
    op.check_shape(
        operand.dims[dimension] <= _LARGEST_SIZE,
        f"dimension {dimension} is too large for s32: {operand.dims[dimension]}",
    )
    return dimension
