"""`compare` with the judge: what legal executions of the program do is rounding, and nothing else is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import hlotool
from hlotool.errors import InputDataError
from hlotool.judge.verdicts import Verdict

#: A sum in which much cancels: how much is lost on the way depends on the order.
CANCELLING = hlotool.parse("""HloModule cancelling
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  x = f32[4096] parameter(0)
  y = f32[4096] parameter(1)
  d = f32[4096] subtract(x, y)
  zero = f32[] constant(0)
  s = f32[] reduce(d, zero), dimensions={0}, to_apply=add
  n = s32[] constant(7)
  ROOT r = (f32[], s32[]) tuple(s, n)
}
""")


def numbers(seed: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=4096).astype(np.float32)
    return x, rng.permutation(x) - np.float32(1e-4)


def one_after_the_other(x: npt.NDArray[np.float32], y: npt.NDArray[np.float32]) -> np.float32:
    """The sum in the order of the elements; every order is legal."""
    total = np.float32(0)
    for value in x - y:
        total += value
    return total


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_another_order_of_a_sum_is_rounding(seed: int) -> None:
    inputs = numbers(seed)
    expected = hlotool.run(CANCELLING, inputs)
    actual = [one_after_the_other(*inputs), np.int32(7)]
    assert hlotool.compare(expected, actual).verdict is Verdict.WRONG
    judged = hlotool.compare(expected, actual, module=CANCELLING, inputs=inputs)
    assert judged.verdict is Verdict.ROUNDING
    assert judged.exit_code == 0
    assert "correct runs" in judged.reason


def test_what_no_execution_gives_is_wrong() -> None:
    inputs = numbers(1)
    expected = hlotool.run(CANCELLING, inputs)
    largest = np.abs(inputs[0] - inputs[1]).max()
    lost = [np.float32(expected[0] + largest), expected[1]]
    judged = hlotool.compare(expected, lost, module=CANCELLING, inputs=inputs)
    assert judged.verdict is Verdict.WRONG
    assert [row.comparison.verdict.value for row in judged] == ["wrong", "identical"]
    assert "out[0]" in str(judged)
    assert judged.to_dict()["exit_code"] == 1


def test_integers_are_never_rounded() -> None:
    inputs = numbers(1)
    expected = hlotool.run(CANCELLING, inputs)
    judged = hlotool.compare(expected, [expected[0], np.int32(8)], module=CANCELLING, inputs=inputs)
    assert [leaf.verdict for leaf in judged.leaves] == [Verdict.IDENTICAL, Verdict.WRONG]


def test_tolerances_replace_the_judge() -> None:
    inputs = numbers(1)
    expected = hlotool.run(CANCELLING, inputs)
    actual = [one_after_the_other(*inputs), np.int32(7)]
    known = {"module": CANCELLING, "inputs": inputs}
    assert hlotool.compare(expected, actual, **known, rtol=1e-9).verdict is Verdict.WRONG  # type: ignore[arg-type]
    assert hlotool.compare(expected, actual, **known, atol=1e3).verdict is Verdict.AGREE  # type: ignore[arg-type]


def test_inputs_have_to_fit() -> None:
    inputs = numbers(1)
    expected = hlotool.run(CANCELLING, inputs)
    other = [expected[0] + np.float32(1), expected[1]]
    with pytest.raises(InputDataError, match="takes 2 arguments, got 1"):
        hlotool.compare(expected, other, module=CANCELLING, inputs=inputs[:1])
