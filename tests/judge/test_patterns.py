"""Errors that people make look like something, and are called so."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from hlotool.facts import patterns
from hlotool.facts.patterns import difference, recognise
from hlotool.ir.arrays import Array
from hlotool.judge.rules.explaining import FIRST_TESTS, LAST_TESTS


def _base() -> Array:
    return np.random.default_rng(1).standard_normal((12, 8)).astype(np.float32)


def _square() -> Array:
    return np.random.default_rng(2).standard_normal((8, 8)).astype(np.float32)


def _called(expected: Array, actual: Array) -> str:
    found = difference(expected, actual, np.not_equal(expected, actual), 1e-5)
    pattern = recognise(found, (*FIRST_TESTS, *LAST_TESTS))
    return pattern.kind if pattern is not None else ""


def _edited(change: Callable[[Array], None]) -> Array:
    actual = _base().copy()
    change(actual)
    return actual


def _repeat_row(x: Array) -> None:
    x[5] = x[4]


def _swap_blocks(x: Array) -> None:
    x[2:4], x[8:10] = x[8:10].copy(), x[2:4].copy()


def _drop_end(x: Array) -> None:
    x[9:] = 0


def _nan(x: Array) -> None:
    x[3] = np.nan


def _one(x: Array) -> None:
    x[3, 3] *= 1.5


def _lane(x: Array) -> None:
    x[:, ::4] *= np.random.default_rng(9).uniform(1.1, 1.5, x[:, ::4].shape)


def _scaled_lane(x: Array) -> None:
    x[:, 1::4] *= np.float32(1.01)


def _last_row(x: Array) -> None:
    x[-1] *= np.random.default_rng(9).uniform(1.1, 1.5, x[-1].shape)


CASES = {
    "constant factor": (_base(), _base() * np.float32(1.001)),
    "sign": (_base(), -_base()),
    "missing addend": (_base() + np.arange(8, dtype=np.float32), _base()),
    "shift": (_base(), np.roll(_base(), 1, axis=0)),
    "transpose": (_square(), _square().T.copy()),
    "reversed": (_base(), _base()[::-1].copy()),
    "saturation": (_base() * 3, np.clip(_base() * 3, -2, 2)),
    "off by one row": (_base(), _edited(_repeat_row)),
    "swap": (_base(), _edited(_swap_blocks)),
    "untouched region": (_base(), _edited(_drop_end)),
    "NaN": (_base(), _edited(_nan)),
    "one element": (_base(), _edited(_one)),
    "one lane": (_base(), _edited(_lane)),
    "lane by a factor": (_base(), _edited(_scaled_lane)),
    "edge": (_base(), _edited(_last_row)),
    "narrow precision": (_base(), (np.round(_base() * 256) / 256).astype(np.float32)),
}


@pytest.mark.parametrize("kind", CASES)
def test_a_pattern_is_called_by_its_name(kind: str) -> None:
    assert _called(*CASES[kind]) == {"lane by a factor": "one lane"}.get(kind, kind)


def test_layouts_read_in_the_wrong_order() -> None:
    x = _base()
    assert _called(x, x.T.reshape(x.shape).copy()) == "transpose"


def test_concatenated_in_the_wrong_order() -> None:
    x = _base()
    assert _called(x, np.concatenate([x[7:], x[:7]])) == "swap"


def test_values_in_no_particular_order() -> None:
    x = _base()
    shuffled = np.random.default_rng(0).permutation(x.reshape(-1)).reshape(x.shape)
    assert _called(x, shuffled) == "reordered"


def test_noise_is_called_nothing() -> None:
    x = _base()
    assert _called(x, x + np.random.default_rng(0).standard_normal(x.shape).astype(np.float32)) == ""


ORDERS = ("saturation", "shift", "transpose", "reversed", "swap")


@pytest.mark.parametrize("kind", ORDERS)
def test_a_few_elements_show_no_order(kind: str) -> None:
    """Of four numbers, one or the other arrangement fits by chance."""
    expected, actual = CASES[kind]
    assert _called(expected, actual) == kind
    assert _called(expected[:2, :2], actual[:2, :2]) not in (
        "saturation",
        "shift",
        "transpose",
        "reversed",
        "swap",
    )


def test_two_values_show_no_order() -> None:
    x = np.arange(32).reshape(4, 8) % 2
    assert _called(x.astype(np.float32), 1 - x.astype(np.float32)) not in ORDERS


def test_integers_too() -> None:
    x = np.arange(24).reshape(6, 4) ** 2
    assert _called(x, np.roll(x, 1, axis=0)) == "shift"
    assert _called(x, -x) == "sign"


def test_equal_arrays_have_no_pattern() -> None:
    x = _base()
    assert recognise(difference(x, x, np.zeros(x.shape, np.bool_), 0.0), FIRST_TESTS) is None
    assert patterns.typical_magnitude(x) == pytest.approx(1, rel=0.2)
    assert patterns.swap(difference(x, x, np.zeros(x.shape, np.bool_), 0.0)) is None


def test_infinity_is_close_to_nothing_else() -> None:
    one = np.array([np.inf, np.inf, np.nan, 1.0])
    other = np.array([np.inf, 1.0, np.nan, np.nan])
    assert patterns.close(one, other, 0.1, 1.0).tolist() == [True, False, True, False]
