"""Arrays in a `.safetensors` file.

Source: https://github.com/huggingface/safetensors, README, "Format": eight bytes of a little-endian length,
so much JSON that says of each name its type, its dimensions and where its bytes are, then the bytes,
row-major.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import IO, Any

import numpy as np

from hlotool.errors import InputDataError
from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.types import ElementType

SUFFIX = ".safetensors"
#: No header is longer, says the format.
_LONGEST_HEADER = 100_000_000
_TYPES = {
    "BOOL": ElementType.PRED,
    "U8": ElementType.U8,
    "I8": ElementType.S8,
    "U16": ElementType.U16,
    "I16": ElementType.S16,
    "U32": ElementType.U32,
    "I32": ElementType.S32,
    "U64": ElementType.U64,
    "I64": ElementType.S64,
    "F8_E5M2": ElementType.F8E5M2,
    "F8_E4M3": ElementType.F8E4M3FN,
    "F8_E4M3FNUZ": ElementType.F8E4M3FNUZ,
    "F8_E5M2FNUZ": ElementType.F8E5M2FNUZ,
    "F8_E8M0": ElementType.F8E8M0FNU,
    "F16": ElementType.F16,
    "BF16": ElementType.BF16,
    "F32": ElementType.F32,
    "F64": ElementType.F64,
    "C64": ElementType.C64,
}


def read_names(path: Path) -> list[str]:
    """The names of the arrays, in the order of the file; raises InputDataError."""
    with path.open("rb") as file:
        return list(_header(file, path)[0])


def read_array(path: Path, name: str) -> Array:
    """One array.

    Raises:
        InputDataError: the file is damaged, or has a type that HLO lacks.
    """
    with path.open("rb") as file:
        rows, start = _header(file, path)
        row = rows[name]
        if row.get("dtype") not in _TYPES:
            raise InputDataError(f"{path}: {name} has dtype {row.get('dtype')}")
        dtype = dtype_of(_TYPES[row["dtype"]])
        try:
            begin, end = row["data_offsets"]
            dims = tuple(row["shape"])
            if not 0 <= begin <= end:
                raise ValueError(f"its bytes are {begin} to {end}")
            file.seek(start + begin)
            return np.frombuffer(file.read(end - begin), dtype).reshape(dims)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputDataError(f"{path}: {name}: damaged: {error}") from error


def _header(file: IO[bytes], path: Path) -> tuple[dict[str, Any], int]:
    """What the header says of each name, and where the bytes begin."""
    size = int.from_bytes(file.read(8), "little")
    if size > min(_LONGEST_HEADER, os.fstat(file.fileno()).st_size):
        raise InputDataError(f"{path}: no safetensors file: its header would have {size} bytes")
    try:
        rows = json.loads(file.read(size))
    except ValueError as error:
        raise InputDataError(f"{path}: no safetensors file: {error}") from error
    if not isinstance(rows, dict) or not all(isinstance(row, dict) for row in rows.values()):
        raise InputDataError(f"{path}: no safetensors file: its header is no table")
    rows.pop("__metadata__", None)
    return rows, 8 + size
