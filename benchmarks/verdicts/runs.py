"""Executions on XLA, kept on disk: the judge improves, XLA's results stay the same."""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hlotool.backends.base import TOKEN, Executable
from hlotool.backends.registry import get_backend
from hlotool.errors import HlotoolError
from hlotool.ir.arrays import Array, flatten, unflatten
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape
from hlotool.ir.types import leaves as shape_leaves

Leaves = list[Array]

#: XLA's whole pipeline, for programs as the frontend made them.
PLAIN = "xla:route=mlir"


class Runs:
    """Results of programs on backends, each computed once.

    Args:
        folder: where they are kept.
        timeout: seconds for one compilation or run.
    """

    def __init__(self, folder: Path, timeout: int = 120) -> None:
        self._folder = folder
        self._timeout = timeout

    def results(
        self, module: Module, text: str, spec: str, arguments: Sequence[list[Any]]
    ) -> list[Leaves | str] | str:
        """The leaves that `module` returns for each of several lists of arguments, or why there are none.

        A program that cannot be compiled has one reason for all of them.

        Args:
            module: the program.
            text: of the program.
            spec: of the backend, with options.
            arguments: one list for each run.
        """
        keys = [_digest(a) for a in arguments]
        path = self._folder / _text_digest(text) / f"{_text_digest(spec)}.pickle"
        known = self._load(path)
        if "error" in known:
            return str(known["error"])
        missing = [n for n, key in enumerate(keys) if key not in known]
        if missing:
            known |= self._compute(module, spec, {keys[n]: arguments[n] for n in missing})
            self._save(path, known)
        return str(known["error"]) if "error" in known else [known[key] for key in keys]

    def result(self, module: Module, text: str, spec: str, arguments: list[Any]) -> Leaves | str:
        """The same for one list of arguments."""
        found = self.results(module, text, spec, [arguments])
        return found if isinstance(found, str) else found[0]

    def effective_passes(self, module: Module, text: str) -> list[str]:
        """Names of the passes that change the program when XLA compiles it."""
        path = self._folder / _text_digest(text) / "passes.pickle"
        known = self._load(path)
        if not known:
            with tempfile.TemporaryDirectory() as folder:
                flags = f"xla_dump_to={folder},xla_dump_hlo_as_text=true,xla_dump_hlo_pass_re=.*"
                with suppress(HlotoolError):
                    get_backend(f"{PLAIN},{flags},timeout={self._timeout}").compile(module)
                names = {m[1] for f in os.listdir(folder) if (m := re.search(r"\.after_([^.]+)\.before_", f))}
            known = {"passes": sorted(names - {"pipeline-start"})}
            self._save(path, known)
        return list(known["passes"])

    def _compute(self, module: Module, spec: str, arguments: dict[str, list[Any]]) -> dict[str, Any]:
        limited = f"{spec},timeout={self._timeout}"
        try:
            # Older versions of XLA cannot read the tables of source positions.
            executable = get_backend(limited).compile(replace(module, stack_frames=None))
        except HlotoolError as error:
            return {"error": _in_words(error)}
        return {key: _result(module, executable, values) for key, values in arguments.items()}

    @staticmethod
    def _load(path: Path) -> dict[str, Any]:
        try:
            found: dict[str, Any] = pickle.loads(path.read_bytes())
        except (FileNotFoundError, EOFError):
            return {}
        return found

    @staticmethod
    def _save(path: Path, known: dict[str, Any]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(pickle.dumps(known))
        os.replace(file.name, path)


def _result(module: Module, executable: Executable, arguments: list[Any]) -> Leaves | str:
    try:
        return leaves_of(module, executable.run(arguments))
    except HlotoolError as error:
        return _in_words(error)


def _in_words(error: HlotoolError) -> str:
    return f"{type(error).__name__}: {error}"[:500]


def leaves_of(module: Module, value: Any) -> Leaves:
    """The arrays of a result, depth first."""
    parts = flatten(module.entry.root.shape, value)
    return [np.asarray(leaf) for _, shape, leaf in parts if isinstance(shape, ArrayShape)]


def nested(module: Module, leaves: Leaves) -> Any:
    """The result of `module` that consists of these arrays."""
    rest = iter(leaves)
    shapes = [shape for _, shape in shape_leaves(module.entry.root.shape)]
    parts = [next(rest) if isinstance(shape, ArrayShape) else TOKEN for shape in shapes]
    return unflatten(module.entry.root.shape, parts)


def cut(leaves: Leaves, like: Leaves) -> Leaves:
    """Dynamic arrays come at their bounds from XLA: cut to the sizes that they have elsewhere."""
    return [
        leaf[tuple(slice(n) for n in other.shape)] if leaf.ndim == other.ndim else leaf
        for leaf, other in zip(leaves, like)
    ]


def _text_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _digest(arguments: Any) -> str:
    digest = hashlib.sha256()
    _feed(digest, arguments)
    return digest.hexdigest()[:20]


def _feed(digest: Any, value: Any) -> None:
    if isinstance(value, tuple | list):
        digest.update(f"({len(value)}".encode())
        for part in value:
            _feed(digest, part)
    elif isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(array.tobytes())
