"""Each freedom explains what it is about and nothing beside it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hlotool.ir.opcodes import OPCODES
from hlotool.ir.types import ArrayShape
from hlotool.lab.conformance import judging
from hlotool.lab.conformance.agreement import DEPARTURES
from hlotool.lab.conformance.generators.cases import Case
from hlotool.lab.conformance.trials import Difference
from hlotool.parser.reader import parse_module


def explained(name: str, text: str, arguments: list[Any], theirs: Any) -> list[bool]:
    """Which elements a freedom explains, for a result in the place of zeros."""
    module = parse_module(text)
    shape = module.entry.root.shape
    assert isinstance(shape, ArrayShape)
    case = Case(0, module.entry.root.opcode, module, [np.asarray(a) for a in arguments])
    given = np.asarray(theirs)
    difference = Difference(case, 0, shape.element_type, np.zeros_like(given), given)
    mask = np.zeros(given.shape, np.bool_) | judging.OPEN[name].explains(difference)
    return list(map(bool, mask))


def test_divisions_that_overflow() -> None:
    text = "r = s8[4] divide(s8[4], s8[4])"
    numbers = [np.int8([1, -128, -128, 7]), np.int8([0, -1, 1, -1])]
    assert explained("division-overflow", text, numbers, np.int8([9, 9, 9, 9])) == [True, True, False, False]


def test_division_of_unsigned_numbers() -> None:
    """There is no -1 among them."""
    text = "r = u8[3] remainder(u8[3], u8[3])"
    numbers = [np.uint8([1, 0, 0]), np.uint8([0, 255, 1])]
    assert explained("division-overflow", text, numbers, np.uint8([9, 9, 9])) == [True, False, False]


def test_division_of_floats_is_determined() -> None:
    text = "r = f32[1] divide(f32[1], f32[1])"
    assert explained("division-overflow", text, [np.float32([1]), np.float32([0])], np.float32([9])) == [
        False
    ]


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("s8", [127.9, 128, -128.9, -129, np.nan, np.inf], [False, True, False, True, True, True]),
        ("u8", [-0.9, -1, 255.5, 256], [False, True, False, True]),
        ("s64", [2.0**62, 2.0**63, -(2.0**63)], [False, True, False]),
    ],
)
def test_conversions_out_of_range(kind: str, values: list[float], expected: list[bool]) -> None:
    text = f"r = {kind}[{len(values)}] convert(f64[{len(values)}])"
    dtype = {"s8": np.int8, "u8": np.uint8, "s64": np.int64}[kind]
    given = np.full(len(values), 3, dtype)
    assert explained("conversion-out-of-range", text, [np.float64(values)], given) == expected


def test_conversions_by_way_of_another_type() -> None:
    """61439 is below the tie between 57344 and infinity; f16 rounds it onto the tie."""
    name, text = "conversion-by-way-of-another-type", "r = f8e5m2[3] convert(s32[3])"
    numbers = np.int32([61439, 61439, 61439])
    theirs = np.array([np.inf, 57344, 49152], ml_dtypes.float8_e5m2)
    assert explained(name, text, [numbers], theirs) == [True, True, False]


def test_conversions_at_once() -> None:
    """By way of f32 the first one is a tie; a neighbour that no way gives is none."""
    name, text = "conversion-by-way-of-another-type", "r = bf16[3] convert(f64[3])"
    numbers = np.full(3, 1.00390625000091)
    theirs = np.array([1, 1.0078125, 1.015625], ml_dtypes.bfloat16)
    assert explained(name, text, [numbers], theirs) == [True, True, False]


def test_truncation_is_no_rounding() -> None:
    name, text = "conversion-by-way-of-another-type", "r = f16[1] convert(f32[1])"
    assert explained(name, text, [np.float32([1.00097])], np.float16([1.0])) == [False]


def test_freedoms_are_about_opcodes_that_there_are() -> None:
    for freedom in judging.OPEN.values():
        assert freedom.opcodes <= set(OPCODES)
    assert not set(judging.OPEN) & set(DEPARTURES)


def test_all_have_a_meaning() -> None:
    own = (
        judging.ROUNDING,
        judging.LEGAL_EXECUTION,
        judging.NAN_PAYLOAD,
        judging.RANGE,
        judging.UNSTABLE,
    )
    for name in (*judging.OPEN, *DEPARTURES, *own):
        assert judging.meaning(name)
    with pytest.raises(KeyError):
        judging.meaning("laziness")
