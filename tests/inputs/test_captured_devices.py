"""Inputs and outputs of each of several devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hlotool.errors import InputDataError
from hlotool.inputs.captured import load_device_inputs, load_device_outputs
from hlotool.parser.reader import parse_module

MODULE = parse_module("""HloModule m, replica_count=2
ENTRY e {
  x = s32[2] parameter(0)
  n = s32[] parameter(1)
  ROOT t = (s32[2], s32[]) tuple(x, n)
}""")


def save(path: Path, **arrays: Any) -> str:
    np.savez(path, **arrays)
    return str(path)


@pytest.mark.parametrize(
    "arrays",
    [
        {"x@0": [1, 2], "x@1": [3, 4], "n@0": 5, "n@1": 6},
        {"x": [[1, 2], [3, 4]], "n": [5, 6]},
        {"x@1": [3, 4], "x@0": [1, 2], "n": [5, 6]},
        {"0@0": [1, 2], "0@1": [3, 4], "1": [5, 6]},
        {"arg_0": [[1, 2], [3, 4]], "arg_1": [5, 6]},
    ],
)
def test_arrays_of_each_device(arrays: dict[str, Any], tmp_path: Path) -> None:
    source = save(tmp_path / "x.npz", **{key: np.int32(value) for key, value in arrays.items()})
    ((x0, n0), (x1, n1)) = load_device_inputs(source, MODULE, 2)
    assert (x0.tolist(), x1.tolist()) == ([1, 2], [3, 4])
    assert (int(n0), int(n1)) == (5, 6)


def test_results_of_each_device(tmp_path: Path) -> None:
    source = save(tmp_path / "x.npz", **{"0@1": [3, 4], "0@0": [1, 2], "1": np.int32([5, 6])})
    (first, second) = load_device_outputs(source, MODULE, 2)
    assert isinstance(first, tuple)
    assert isinstance(second, tuple)
    assert [np.asarray(leaf).tolist() for leaf in (*first, *second)] == [[1, 2], 5, [3, 4], 6]


def test_a_script_returns_a_list_for_each_device(tmp_path: Path) -> None:
    script = tmp_path / "make.py"
    script.write_text("def make(module):\n    return [[[1, 2], 5], [[3, 4], 6]]\n", encoding="utf-8")
    ((x0, _), (_, n1)) = load_device_inputs(f"{script}:make", MODULE, 2)
    assert (x0.tolist(), int(n1)) == ([1, 2], 6)
    with pytest.raises(InputDataError, match="make returned 2 lists of arguments for 4 devices"):
        load_device_inputs(f"{script}:make", MODULE, 4)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x@0": [1, 2], "x@2": [3, 4], "n": [5, 6]}, "x@2: the program is for 2 devices"),
        ({"x@0": [1, 2], "n": [5, 6]}, r"device 1: .*nothing for parameter 0 \(%x\)"),
        ({"x": [1, 2, 3], "n": [5, 6]}, r"x has dimensions \[3\]: .*x@0, x@1, …, or an array with a first"),
        ({"x": [[1, 2, 3]] * 2, "n": [5, 6]}, r"device 0: x for parameter 0 .*expected s32\[2\]"),
    ],
)
def test_what_does_not_fit(arrays: dict[str, Any], message: str, tmp_path: Path) -> None:
    source = save(tmp_path / "x.npz", **{key: np.int32(value) for key, value in arrays.items()})
    with pytest.raises(InputDataError, match=message):
        load_device_inputs(source, MODULE, 2)
