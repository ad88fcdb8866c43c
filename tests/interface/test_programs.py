"""The Python API."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from support.programs import BROKEN, DOUBLE, PAIR, SUM, UNKNOWN_CALL, write_module

import hlotool
from hlotool.errors import (
    DumpError,
    HloSyntaxError,
    InputDataError,
    Unsupported,
    UsageError,
    VerificationError,
)
from hlotool.judge.verdicts import Verdict


@pytest.mark.parametrize("name", ["compare", "programs", "prove"])
def test_the_examples_in_the_docstrings(name: str) -> None:
    outcome = doctest.testmod(import_module(f"hlotool.interface.api.{name}"), raise_on_error=False)
    assert outcome.attempted > 2
    assert outcome.failed == 0


def test_public_names() -> None:
    assert all(getattr(hlotool, name) is not None for name in hlotool.__all__)
    assert dir(hlotool) == sorted(hlotool.__all__)
    with pytest.raises(AttributeError, match="no attribute 'bisct'"):
        _ = hlotool.bisct  # type: ignore[attr-defined]


def test_the_function_parse_is_not_hidden_by_the_package_of_that_name() -> None:
    from hlotool.interface.api.programs import parse
    from hlotool.parser.reader import parse_module

    assert hlotool.parse is parse
    assert parse_module(DOUBLE).name == hlotool.parse(DOUBLE).name


def test_parse_names_the_file_of_a_mistake() -> None:
    with pytest.raises(HloSyntaxError, match=r"^model\.hlo:\d+:\d+: "):
        hlotool.parse(BROKEN, "model.hlo")


def test_parse_verifies() -> None:
    with pytest.raises(VerificationError):
        hlotool.parse(SUM.replace("ROOT y = f32[4]{0}", "ROOT y = f32[5]{0}"))


def test_load(tmp_path: Path) -> None:
    path = tmp_path / "f.hlo"
    path.write_text(DOUBLE, encoding="utf-8")
    module = hlotool.load(path)
    assert module.name == "jit_f"
    assert module.path == str(path)


def test_load_takes_one_program(tmp_path: Path) -> None:
    write_module(tmp_path, 0, DOUBLE, SUM)
    with pytest.raises(UsageError, match="takes one program, here are 2"):
        hlotool.load(tmp_path)
    with pytest.raises(DumpError):
        hlotool.load(tmp_path / "missing.hlo")


def test_run_flattens_tuples_in_order() -> None:
    number, values = hlotool.run(hlotool.parse(PAIR), [np.arange(4, dtype=np.float32)])
    assert (number.dtype, int(number)) == (np.int32, 7)
    np.testing.assert_array_equal(values, np.float32([0, 2, 4, 6]))


def test_run_takes_python_numbers_and_narrow_types() -> None:
    module = hlotool.parse(SUM.replace("f32", "bf16"))
    [result] = hlotool.run(module, [[0.1, 1, 2, 3]])
    assert result.dtype == ml_dtypes.bfloat16
    assert float(result[0]) == 2 * float(ml_dtypes.bfloat16(0.1))


@pytest.mark.parametrize("inputs", [[], [np.zeros(5, np.float32)], [np.zeros(4, np.complex64)], [1, 2]])
def test_inputs_that_do_not_fit(inputs: list[object]) -> None:
    with pytest.raises(InputDataError):
        hlotool.run(hlotool.parse(DOUBLE), inputs)


def test_what_cannot_be_run() -> None:
    with pytest.raises(Unsupported, match="my_kernel"):
        hlotool.run(hlotool.parse(UNKNOWN_CALL), [np.zeros(4, np.float32)])
    with pytest.raises(UsageError, match="no backend 'abacus'"):
        hlotool.run(hlotool.parse(DOUBLE), [np.zeros(4)], backend="abacus")


def test_the_inputs_are_not_changed() -> None:
    x = np.arange(4, dtype=np.float32)
    [result] = hlotool.run(hlotool.parse(DOUBLE), [x])
    result += 1
    np.testing.assert_array_equal(x, np.arange(4))


def test_compare() -> None:
    expected = [np.float32([1, 2]), np.int32(3)]
    assert hlotool.compare(expected, expected).verdict is Verdict.IDENTICAL
    close = [np.float32([1, np.nextafter(np.float32(2), np.float32(3))]), np.int32(3)]
    assert hlotool.compare(expected, close).verdict is Verdict.AGREE
    assert hlotool.compare(expected, close, rtol=0.0, atol=0.0).verdict is Verdict.WRONG
    assert hlotool.compare(expected, [expected[0], np.int32(4)]).verdict is Verdict.WRONG
    assert hlotool.compare(expected, expected[:1]).verdict is Verdict.STRUCTURAL
    assert hlotool.compare(expected, [expected[0].astype(np.float64), 3]).verdict is Verdict.STRUCTURAL


def test_compare_knows_what_the_module_sums() -> None:
    text = "HloModule m\n\nENTRY e {\n  p = f32[1000,1000] parameter(0)\n  q = f32[1000,1] parameter(1)\n"
    text += "  ROOT d = f32[1000,1] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n"
    module = hlotool.parse(text)
    expected = [np.ones((1000, 1), np.float32)]
    actual = [np.full((1000, 1), 1 + 3e-5, np.float32)]
    assert hlotool.compare(expected, actual).verdict is Verdict.WRONG
    assert hlotool.compare(expected, actual, module=module).verdict is Verdict.AGREE
    with pytest.raises(InputDataError, match="returns 1 arrays, 2 are expected"):
        hlotool.compare(expected * 2, actual * 2, module=module)


def test_compare_names_a_dtype_that_hlo_lacks() -> None:
    with pytest.raises(InputDataError, match=r"actual\[0\].*<U1"):
        hlotool.compare([np.float32(1)], ["x"])
