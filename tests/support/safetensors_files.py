"""Safetensors files without the package: an own writer, so that the reader is not its own judge.

Source of the layout: the README of https://github.com/huggingface/safetensors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_NAMES = {
    "float32": "F32",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "bool": "BOOL",
    "int64": "I64",
    "int32": "I32",
}


def written(path: Path, header: object, content: bytes = b"") -> Path:
    """A file with a header."""
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content)
    return path


def save(path: Path, arrays: Mapping[str, Any]) -> Path:
    """A file of arrays, as `safetensors.numpy.save_file` writes it."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    content = b""
    for name, array in arrays.items():
        offsets = [len(content), len(content) + array.nbytes]
        header[name] = {"dtype": _NAMES[array.dtype.name], "shape": [*array.shape], "data_offsets": offsets}
        content += array.tobytes()
    return written(path, header, content)
