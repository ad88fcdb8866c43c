"""Inputs made by the user's own Python function."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from hlotool.errors import InputDataError
from hlotool.ir.module import Module


def call_script(path: Path, function: str, module: Module) -> Sequence[Any]:
    """What `function` of the Python file `path` returns for `module`: one value per entry parameter.

    Raises:
        InputDataError: no such file or function, an exception in it, or no sequence returned.
    """
    made = getattr(_load(path), function, None)
    if not callable(made):
        raise InputDataError(f"{path}: no function {function}")
    try:
        values = made(module)
    except Exception as error:
        raise InputDataError(f"{path}:{function} raised {type(error).__name__}: {error}") from error
    if not isinstance(values, Sequence):
        raise InputDataError(f"{path}:{function} returned {type(values).__name__}, not a list of arrays")
    return values


def _load(path: Path) -> ModuleType:
    if not path.is_file():
        raise InputDataError(f"{path}: no such file")
    spec = importlib.util.spec_from_file_location(f"hlotool_inputs_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(script)
    except Exception as error:
        raise InputDataError(f"{path}: {type(error).__name__} while loading: {error}") from error
    return script
