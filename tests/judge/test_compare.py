"""Verdicts of leaves and of whole results."""

from __future__ import annotations

import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from hlotool.facts.result_facts import Facts, Origin
from hlotool.ir.arrays import Array
from hlotool.ir.types import TOKEN, ArrayShape, ElementType, Layout, Shape, TupleShape
from hlotool.judge.comparison import Comparison, aggregate, compare_values
from hlotool.judge.tolerance import ChosenTolerance
from hlotool.judge.verdicts import Verdict, worst

F32, S32 = ElementType.F32, ElementType.S32


def _vector(element_type: ElementType, size: int) -> ArrayShape:
    return ArrayShape(element_type, (size,))


def _compare(expected: Any, actual: Any, **options: Any) -> Comparison:
    expected = np.asarray(expected, np.float32)
    return compare_values(
        ArrayShape(F32, expected.shape), expected, np.asarray(actual, np.float32), **options
    )


def test_the_four_verdicts_of_one_leaf() -> None:
    x = np.linspace(1, 2, 7)
    assert _compare(x, x).verdict is Verdict.IDENTICAL
    assert _compare(x, x * (1 + 1e-6)).verdict is Verdict.AGREE
    assert _compare(x, x * 1.01).verdict is Verdict.WRONG
    assert _compare(x, x[:6]).verdict is Verdict.STRUCTURAL


def test_order_of_verdicts() -> None:
    order = (
        "identical, agree, rounding, not compared, not comparable, differs, unstable, range, semantics, "
        "unsupported, bad input, crashed, timeout, out of memory, not compiled, unequal, wrong, structural"
    )
    assert [v.value for v in sorted(Verdict, key=lambda v: v.rank)] == order.split(", ")
    assert worst([Verdict.AGREE, Verdict.WRONG, Verdict.IDENTICAL]) is Verdict.WRONG
    assert worst([]) is Verdict.IDENTICAL


def test_reason_of_an_agreement() -> None:
    comparison = _compare([[1.0, 2.0]], [[1.0, 2.0 + 2.0**-22]])
    assert (
        comparison.reason
        == "worst error 2.38e-07 at [0,1] (1 ulp), allowed 1.2e-05 + 7.6e-06 relative (64 ulp of f32)"
    )


def test_reason_of_a_difference() -> None:
    reason = _compare([1.0, 2.0, np.nan, 4.0], [1.0, 3.0, 3.0, 4.0]).reason
    assert reason.startswith("2 of 4 elements differ (0.5), 1 NaN on one side only, worst error 1 at [1] (")


def test_reason_of_a_mere_sign_of_zero() -> None:
    comparison = _compare([0.0], [-0.0])
    assert comparison.verdict is Verdict.AGREE
    assert comparison.reason.startswith("no difference but signs of zero")


def test_the_worst_leaf_speaks_for_the_result() -> None:
    shape = TupleShape((_vector(F32, 2), TupleShape((_vector(S32, 2), TOKEN))))
    expected = (np.ones(2, np.float32), (np.array([1, 2], np.int32), None))
    actual = (np.ones(2, np.float32), (np.array([1, 3], np.int32), object()))
    comparison = compare_values(shape, expected, actual)
    assert [leaf.index for leaf in comparison.leaves] == [(0,), (1, 0)]
    assert [leaf.verdict for leaf in comparison.leaves] == [Verdict.IDENTICAL, Verdict.WRONG]
    assert comparison.verdict is Verdict.WRONG
    assert comparison.reason.startswith("output {1,0}: 1 of 2 elements differ (0.5), worst error 1 at [1]")


def test_nothing_to_compare() -> None:
    assert compare_values(TupleShape(()), (), ()).verdict is Verdict.IDENTICAL
    assert aggregate([]).reason == "the result holds no arrays"


@pytest.mark.parametrize(
    ("shape", "actual_shape", "message"),
    [
        (_vector(F32, 2), _vector(ElementType.BF16, 2), "expected f32[2], got bf16[2]"),
        (_vector(F32, 2), ArrayShape(F32, (2, 1)), "expected f32[2], got f32[2,1]"),
        (_vector(F32, 2), TupleShape((_vector(F32, 2),)), "expected f32[2] at {}, got f32[2] at {0}"),
        (
            TupleShape((_vector(F32, 2),)),
            TupleShape((_vector(F32, 2), TOKEN)),
            "expected 1 leaves, got 2 leaves",
        ),
    ],
)
def test_programs_with_different_results(shape: Shape, actual_shape: Shape, message: str) -> None:
    comparison = compare_values(shape, None, None, actual_shape=actual_shape)
    assert comparison.verdict is Verdict.STRUCTURAL
    assert comparison.reason == message


def test_layouts_and_static_sizes_of_dynamic_dimensions_do_not_matter() -> None:
    x = np.ones((2, 3), np.float32)
    dynamic = ArrayShape(F32, (4, 3), (True, False), Layout((1, 0)))
    static = ArrayShape(F32, (2, 3), layout=Layout((0, 1)))
    assert compare_values(dynamic, x, x, actual_shape=static).verdict is Verdict.IDENTICAL


@pytest.mark.parametrize("actual", [None, (np.ones(2),), np.ones(2), np.ones(3, np.float32), [1.0, 2.0]])
def test_values_that_do_not_fit_the_shape(actual: Any) -> None:
    comparison = compare_values(_vector(F32, 2), np.ones(2, np.float32), actual)
    assert comparison.verdict is Verdict.STRUCTURAL


def test_random_leaves_are_not_comparable() -> None:
    rng = Facts(random=Origin(3, "noise", "rng"))
    comparison = _compare([1.0], [2.0], facts=[rng])
    assert comparison.verdict is Verdict.NOT_COMPARABLE
    assert comparison.reason == "depends on rng %noise (line 3), whose value may differ from run to run"


def test_integers_made_of_floats_say_so() -> None:
    decided = Facts(decision=Origin(9, "argmax", "reduce"))
    shape, x = _vector(S32, 1), np.array([1], np.int32)
    comparison = compare_values(shape, x, x + 1, facts=[decided])
    assert comparison.verdict is Verdict.WRONG
    assert comparison.reason.endswith("made of floats by reduce %argmax (line 9), where one ulp can flip it")


def test_user_tolerances_replace_the_derived_one() -> None:
    assert _compare([1.0], [1.5], tolerance=ChosenTolerance(rtol=0.5)).verdict is Verdict.AGREE
    assert _compare([1.0], [1.5], tolerance=ChosenTolerance(atol=0.5)).verdict is Verdict.AGREE
    exact = _compare([1.0], [1.0 + 2.0**-23], tolerance=ChosenTolerance())
    assert exact.verdict is Verdict.WRONG
    assert exact.reason.endswith("allowed none")


def test_comparisons_can_be_sent_to_another_process() -> None:
    comparison = _compare([1.0, 2.0], [1.0, 3.0])
    assert pickle.loads(pickle.dumps(comparison)) == comparison


_DTYPES = st.sampled_from([np.float32, np.float64, np.complex64, np.int8, np.uint64, np.bool_])


@given(_DTYPES.flatmap(lambda d: arrays.arrays(d, arrays.array_shapes(min_dims=0, min_side=0))))
def test_everything_is_identical_to_itself(x: Array) -> None:
    from hlotool.ir.arrays import element_type_of

    element_type = element_type_of(x.dtype)
    assert element_type is not None
    comparison = compare_values(ArrayShape(element_type, x.shape), x, x.copy())
    assert comparison.verdict is Verdict.IDENTICAL


_FLOATS = arrays.arrays(np.float32, 4, elements=st.floats(width=32))


@given(_FLOATS, _FLOATS)
def test_verdicts_are_symmetric(x: Array, y: Array) -> None:
    assert _compare(x, y).verdict is _compare(y, x).verdict


def test_bf16_leaf() -> None:
    x = np.array([1.0, 2.0, 100.0], ml_dtypes.bfloat16)
    y = np.array([1.0, 2.015625, 100.0], ml_dtypes.bfloat16)
    comparison = compare_values(_vector(ElementType.BF16, 3), x, y)
    assert comparison.verdict is Verdict.AGREE
    metrics = comparison.leaves[0].metrics
    assert metrics is not None
    assert metrics.max_ulp == 1
