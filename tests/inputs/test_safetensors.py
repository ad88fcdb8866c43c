"""Safetensors files: what torch writes, and damage."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from hlotool.errors import InputDataError
from hlotool.inputs.safetensors import read_array, read_names


def written(path: Path, header: object, content: bytes = b"") -> Path:
    """A file with a header; source of the layout: the format's own README."""
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content)
    return path


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
    names = {"float32": "F32", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "bool": "BOOL", "int64": "I64"}
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    content = b""
    for name, array in arrays.items():
        offsets = [len(content), len(content) + array.nbytes]
        kind = names.get(array.dtype.name, "I32")
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": offsets}
        content += array.tobytes()
    path = written(tmp_path / "x.safetensors", header, content)
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
