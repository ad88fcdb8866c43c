"""Safetensors files: what torch writes, and damage."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from support.safetensors_files import save, written

from hlotool.errors import InputDataError
from hlotool.inputs.safetensors import read_array, read_names


def test_arrays(tmp_path: Path) -> None:
    """Values are written by NumPy and read back; an empty array and a scalar among them."""
    arrays = {
        "layers.1.mlp": np.arange(6, dtype=np.float32).reshape(2, 3),
        "layers.0": np.array([1.5, -2.0], ml_dtypes.bfloat16),
        "eight": np.array([[1.0, 448.0]], ml_dtypes.float8_e4m3fn),
        "flags": np.array([True, False]),
        "empty": np.zeros((0, 3), np.int64),
        "one": np.array(7, np.int32),
    }
    path = save(tmp_path / "x.safetensors", arrays)
    assert read_names(path) == list(arrays)
    for name, array in arrays.items():
        read = read_array(path, name)
        assert (read.dtype, read.shape, read.tobytes()) == (array.dtype, array.shape, array.tobytes())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no safetensors file"),
        (b"\xff" * 20, "its header would have"),
        (b"\x02" + b"\0" * 7 + b"[]", "its header is no table"),
        (b"\x03" + b"\0" * 7 + b"{,}", "no safetensors file"),
    ],
)
def test_no_such_file(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(InputDataError, match=message):
        read_names(path)


@pytest.mark.parametrize(
    "row",
    [
        {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2]},
        {"dtype": "F32", "shape": [2], "data_offsets": [8, 16]},
        {"dtype": "F32", "shape": [2], "data_offsets": [-90, 8]},
        {"dtype": "F6", "shape": [2], "data_offsets": [0, 8]},
    ],
)
def test_damage(tmp_path: Path, row: object) -> None:
    path = written(tmp_path / "x.safetensors", {"a": row}, bytes(8))
    with pytest.raises(InputDataError, match=r"x\.safetensors: a"):
        read_array(path, "a")
