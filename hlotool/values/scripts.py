"""Functions in Python files of the user: `SCRIPT.py:FUNCTION`."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from hlotool.errors import InputDataError


def load_function(path: Path, function: str) -> Callable[..., Any]:
    """The function of a file, which is executed for that.

    Raises:
        InputDataError: no such file or function, or an exception while the file is loaded.
    """
    found = getattr(_load(path), function, None)
    if not callable(found):
        raise InputDataError(f"{path}: no function {function}")
    loaded: Callable[..., Any] = found
    return loaded


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
