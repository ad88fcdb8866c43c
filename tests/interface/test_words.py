"""How numbers and names read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotool.interface.report import words
from hlotool.judge.records import output_name
from hlotool.judge.verdicts import Verdict
from hlotool.runs.records import ToleranceRecord
from hlotool.system.user_input import size_of, size_text


@given(st.floats(min_value=5e-324, max_value=1e308))
def test_a_printed_tolerance_is_sufficient_and_hardly_more(value: float) -> None:
    printed = float(words.sufficient(value))
    assert printed >= value
    assert printed <= value * 1.011 or value < 1e-320


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.0, "0"), (0.1, "0.1"), (0.12345, "0.124"), (2.0, "2"), (1e-7, "1e-07")],
)
def test_sufficient(value: float | None, text: str) -> None:
    assert words.sufficient(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (0, "0 ulps"), (1, "1 ulp"), (99999, "99999 ulps"), (1 << 40, "1.1e+12 ulps")],
)
def test_ulps(value: int | None, text: str) -> None:
    assert words.ulps(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0123, "0.01 s"), (9.994, "9.99 s"), (12.34, "12.3 s"), (245.0, "4 min 05 s")]
)
def test_seconds(value: float, text: str) -> None:
    assert words.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "amount"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1 k"),
        (12_345, "12.3 k"),
        (999_499, "999 k"),
        (999_500, "1 M"),
        (18_125_000_000_000, "18.1 T"),
        (10**18, "1e+18"),
    ],
)
def test_amounts(value: int, amount: str) -> None:
    assert words.amount(value) == amount


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "0.977 KiB"),
        (1 << 10, "1 KiB"),
        (12_345, "12.1 KiB"),
        (1 << 20, "1 MiB"),
        (8 << 30, "8 GiB"),
        (18_125_000_000_000, "16.5 TiB"),
        (1 << 50, "1 PiB"),
        (1 << 60, "1.02e+03 PiB"),
    ],
)
def test_sizes_are_written_in_the_units_that_they_are_read_in(value: int, text: str) -> None:
    assert size_text(value) == text
    read = size_of(text)
    assert read is None if "e+" in text else read == pytest.approx(value, rel=5e-3)


@pytest.mark.parametrize("text", ["", "8X", "-8G", "8 G B", "1e9", "٣G", "G"])
def test_what_is_no_size(text: str) -> None:
    assert size_of(text) is None


def test_names() -> None:
    assert output_name([]) == "out"
    assert output_name([1, 0]) == "out[1][0]"
    assert words.position([]) == "[]"
    assert words.share(3, 8192) == "3 of 8192 (0.0366 %)"
    assert words.share(0, 0) == "0 of 0"


@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_has_a_sign_and_a_style(verdict: Verdict) -> None:
    assert verdict.value in words.verdict_text(verdict)
    assert words.style_of(verdict)


def test_tolerances() -> None:
    assert words.accepted(ToleranceRecord(relative=0, absolute=0)) == "none: the values must be equal"
    shown = words.accepted(ToleranceRecord(relative=1e-5, absolute=0.25, origin="set by the user"))
    assert shown == "|expected − actual| ≤ 0.25 + 1e-05 · magnitude  (set by the user)"


def test_distances() -> None:
    assert words.within(0) == "equal values"
    assert words.within(3) == "≤ 3 ulps"
    assert words.at([]) == ""
    assert words.at([2, 0]) == " at [2, 0]"


def test_names_of_tensorflow_lose_their_configuration_where_they_stay_apart() -> None:
    long = "__XlaMustCompile_true_config_proto_13561_executor_type_11160_"
    one, other, twin = f"m.a_f_8{long}.5", f"m.a_g_9{long}.7", f"m.a_g_9{long}.8"
    assert words.short_names([one, other, twin, "jit_f"]) == {
        one: "m.a_f_8",
        other: other,
        twin: twin,
        "jit_f": "jit_f",
    }
