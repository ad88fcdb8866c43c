"""Calls and control flow: called computations and operands must agree.

XLA: hlo_verifier.cc (HandleWhile, HandleConditional, HandleCall, HandleFusion, HandleAsyncStart, …).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hlotool.ir.module import Computation
from hlotool.ir.shapes.base import (
    PRED_SCALAR,
    S32_SCALAR,
    Op,
    Signature,
    check_parameter_count,
    checks,
    flags_of,
    infers,
    signature,
    tuple_of,
)
from hlotool.ir.shapes.compatibility import compatible
from hlotool.ir.types import ArrayShape, Shape, TupleShape


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
