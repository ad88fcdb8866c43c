"""Found by every Python process below `hlotool exec`, whose PYTHONPATH begins with this folder.

Starts `hlotool/runs/capture/process.py`, and then the `sitecustomize` of the environment that this one
hides. Runs in whatever Python the program uses, which need not have hlotool: it imports nothing but the
standard library.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_HERE = os.path.dirname(os.path.abspath(__file__))


def _run(name: str, spec: ModuleSpec | None) -> ModuleType | None:
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _start() -> None:
    path = os.path.join(os.path.dirname(_HERE), "process.py")
    name = "_hlotool_capture_process"
    process = _run(name, importlib.util.spec_from_file_location(name, path))
    if process is not None:
        process.install()


def _go_on() -> None:
    others = [path for path in sys.path if os.path.abspath(path) != _HERE]
    _run("sitecustomize", PathFinder.find_spec("sitecustomize", others))


try:
    _start()
except Exception as error:
    print(f"hlotool: this process is not watched: {type(error).__name__}: {error}", file=sys.stderr)
_go_on()
