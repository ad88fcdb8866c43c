"""Inputs and outputs from files and scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hlotool.errors import InputDataError
from hlotool.inputs.captured import load_inputs, load_outputs
from hlotool.inputs.given import npz_bytes
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module

TWO = """HloModule two
ENTRY e {
  weights.1 = f32[2] parameter(0), metadata={op_name="state['w']"}
  bias.2 = bf16[3] parameter(1), metadata={op_name="state['b']"}
  ROOT t = (f32[2], bf16[3]) tuple(weights.1, bias.2)
}
"""
NESTED = """HloModule nested
ENTRY e {
  state = (f32[2], (token[], s32[])) parameter(0)
  ROOT x = f32[2] get-tuple-element(state), index=0
}
"""
W, B = np.array([1, 2], np.float32), np.array([3, 4, 5], ml_dtypes.bfloat16)


def _module(text: str = TWO, path: str | None = None) -> Module:
    return parse_module(text, path)


def _save(path: Path, **arrays: Any) -> str:
    np.savez(path, **arrays)
    return str(path)


@pytest.mark.parametrize(
    "keys",
    [
        ("weights.1", "bias.2"),
        ("weights", "bias"),
        ("state['w']", "state['b']"),
        ("weights", "state['b']"),
        ("0", "1"),
        ("arg_0", "arg_1"),
        ("arr_9", "arr_10"),
        ("a", "b"),
    ],
)
def test_keys(keys: tuple[str, str], tmp_path: Path) -> None:
    """Also in the other order: names decide, not positions in the file."""
    for order in (1, -1):
        arrays = dict([(keys[0], W), (keys[1], B)][::order])
        weights, bias = load_inputs(_save(tmp_path / "x.npz", **arrays), _module())
        np.testing.assert_array_equal(weights, W)
        np.testing.assert_array_equal(bias, B)
        assert isinstance(bias, np.ndarray)
        assert bias.dtype == ml_dtypes.bfloat16


def test_names_go_before_natural_order(tmp_path: Path) -> None:
    swapped = parse_module(TWO.replace("weights.1", "z").replace("bias.2", "a"))
    weights, _ = load_inputs(_save(tmp_path / "x.npz", z=W, a=B), swapped)
    np.testing.assert_array_equal(weights, W)


def test_ambiguous_names_are_no_names(tmp_path: Path) -> None:
    """`x.1` and `x.2` are both `x` without their numbers."""
    text = """HloModule m
    ENTRY e { x.1 = f32[] parameter(0) x.2 = f32[] parameter(1) ROOT y = f32[] add(x.1, x.2) }"""
    values = load_inputs(
        _save(tmp_path / "x.npz", **{"x.2": np.float32(2), "x.1": np.float32(1)}), parse_module(text)
    )
    assert [float(v) for v in values if isinstance(v, np.ndarray)] == [1.0, 2.0]


@pytest.mark.parametrize("keys", [("0.0", "0.1.1"), ("state.0", "state.1.1"), ("arg_0", "arg_1")])
def test_leaves_of_tuples(keys: tuple[str, str], tmp_path: Path) -> None:
    source = _save(tmp_path / "x.npz", **{keys[0]: W, keys[1]: np.int32(7)})
    values: tuple[Any, ...] = load_inputs(source, _module(NESTED))
    ((x, (token, i)),) = values
    np.testing.assert_array_equal(x, W)
    assert token is None
    assert i == 7


def test_a_single_array(tmp_path: Path) -> None:
    module = parse_module("HloModule m\nENTRY e {\n ROOT x = f32[2] parameter(0)\n}")
    np.save(tmp_path / "x.npy", W)
    (x,) = load_inputs(str(tmp_path / "x.npy"), module)
    np.testing.assert_array_equal(x, W)
    result = load_outputs(str(tmp_path / "x.npy"), module)
    np.testing.assert_array_equal(result, W)


def test_no_parameters(tmp_path: Path) -> None:
    module = parse_module("HloModule m\nENTRY e {\n ROOT x = f32[] constant(1)\n}")
    assert load_inputs(_save(tmp_path / "x.npz"), module) == ()


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("two.npz", None),
        ("module_0001.two.npz", "d/module_0001.two.txt"),
        ("x.hlo.npz", "x.hlo"),
        ("x.npz", "x.hlo"),
    ],
)
def test_directories(name: str, path: str | None, tmp_path: Path) -> None:
    _save(tmp_path / name, a=W, b=B)
    weights, _ = load_inputs(str(tmp_path), _module(path=path))
    np.testing.assert_array_equal(weights, W)


def test_outputs(tmp_path: Path) -> None:
    for keys in (("out_0", "out_1"), ("0", "1"), ("output.0", "output.1"), ("a", "b")):
        source = _save(tmp_path / "x.npz", **dict(zip(keys, (W, B))))
        result: Any = load_outputs(source, _module())
        first, second = result
        np.testing.assert_array_equal(first, W)
        np.testing.assert_array_equal(second, B)


SCRIPT = """
import numpy as np

def make(module):
    assert module.name == "two"
    return [np.ones(2, np.float32), [0.5, 1.0, 0.1]]

def short(module):
    return [1]

def nothing(module):
    return None

def broken(module):
    raise KeyError("gone")

def wrong(module):
    return [np.ones(3, np.float32), [0.5, 1.0, 0.1]]
"""


def test_scripts(tmp_path: Path) -> None:
    (tmp_path / "make.py").write_text(SCRIPT, encoding="utf-8")
    weights, bias = load_inputs(f"{tmp_path}/make.py:make", _module())
    np.testing.assert_array_equal(weights, np.ones(2))
    np.testing.assert_array_equal(bias, np.array([0.5, 1.0, 0.1], ml_dtypes.bfloat16))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("short", "make.py:short returned 1 values, two takes 2"),
        ("nothing", "returned NoneType, not a list of arrays"),
        ("broken", "make.py:broken raised KeyError: 'gone'"),
        ("wrong", r"make.py:wrong: parameter 0 \(%weights.1\): expected f32\[2\], got dimensions \[3\]"),
        ("absent", "no function absent"),
    ],
)
def test_bad_scripts(function: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "make.py").write_text(SCRIPT, encoding="utf-8")
    with pytest.raises(InputDataError, match=message):
        load_inputs(f"{tmp_path}/make.py:{function}", _module())


def test_scripts_that_do_not_load(tmp_path: Path) -> None:
    (tmp_path / "make.py").write_text("import nowhere_to_be_found", encoding="utf-8")
    with pytest.raises(InputDataError, match="ModuleNotFoundError while loading"):
        load_inputs(f"{tmp_path}/make.py:make", _module())
    with pytest.raises(InputDataError, match="no such file"):
        load_inputs(f"{tmp_path}/other.py:make", _module())


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"weights": W}, r"x.npz: nothing for parameter 1 \(%bias.2\)"),
        ({"0": W}, r"nothing for parameter 1"),
        ({"a": W}, r"2 arrays are needed \(parameter 0 .*\), 1 are there \(a\)"),
        ({"weights": W, "bias": B, "more": W}, r"2 arrays are needed .*, 3 are there"),
        (
            {"a": B, "b": W},
            r"x.npz: a for parameter 0 \(%weights.1\): expected f32\[2\], got dimensions \[3\]",
        ),
        ({"a": np.array([0.1, 1]), "b": B}, "not exact in f32"),
        ({}, r"0 are there \(none\)"),
    ],
)
def test_misfits(arrays: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputDataError, match=message):
        load_inputs(_save(tmp_path / "x.npz", **arrays), _module())


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(InputDataError, match="no such file"):
        load_inputs(str(tmp_path / "x.npz"), _module())
    with pytest.raises(InputDataError, match=r"no two.npz for module two"):
        load_inputs(str(tmp_path), _module())
    (tmp_path / "text.npz").write_text("not a zip file", encoding="utf-8")
    with pytest.raises(InputDataError, match="cannot be read as"):
        load_inputs(str(tmp_path / "text.npz"), _module())
    (tmp_path / "cut.npz").write_bytes(Path(_save(tmp_path / "x.npz", a=W, b=B)).read_bytes()[:100])
    with pytest.raises(InputDataError, match="cannot be read as"):
        load_inputs(str(tmp_path / "cut.npz"), _module())
    np.save(tmp_path / "objects.npy", np.array([{}], object))
    with pytest.raises(InputDataError, match="cannot be read as"):
        load_inputs(str(tmp_path / "objects.npy"), _module())


def test_f8e5m2_comes_back(tmp_path: Path) -> None:
    """NumPy calls it `<f1` in a file, and then does not know that type."""
    module = parse_module("HloModule m\nENTRY e {\n  ROOT x = f8e5m2[3] parameter(0)\n}")
    values = np.array([1.5, -2, np.inf]).astype(ml_dtypes.float8_e5m2)
    (tmp_path / "in.npz").write_bytes(npz_bytes([values]))
    (found,) = load_inputs(str(tmp_path / "in.npz"), module)
    assert found.dtype == values.dtype
    assert found.tobytes() == values.tobytes()
