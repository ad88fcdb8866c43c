"""The drawn programs as compilers of TPUs and GPUs make them, which run on any machine."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import hlotool
from benchmarks.adversary.cases import Subject
from hlotool.backends.aot.backend import AotBackend
from hlotool.backends.registry import get_backend

#: The texts in which compilations for TPUs and GPUs end.
_ENDS = ("*.after_optimizations_after_buffer_assignment.txt", "*gpu_after_optimizations.txt")


def compiled_for(spec: str, subjects: Iterable[Subject], folder: Path) -> list[Subject]:
    """The programs that a compiler takes, with its text in place of that of XLA:CPU.

    Args:
        spec: of the backend `aot`, with a target.
        subjects: programs; only their texts before optimisation are compiled.
        folder: for the compiler's dumps; removed.

    Raises:
        TypeError: the spec is of another backend.
    """
    backend = get_backend(spec)
    if not isinstance(backend, AotBackend):
        raise TypeError(f"{spec} is no compiler for another machine")
    found = []
    for subject in subjects:
        dump = folder / subject.name
        try:
            backend.dumping(dump, "").made_of(hlotool.parse(subject.before))
        except hlotool.errors.HlotoolError as error:
            print(f"left out, not compiled: {subject.name}: {str(error).splitlines()[0][:120]}")
            continue
        ends = [path for pattern in _ENDS for path in sorted(dump.glob(pattern))]
        if not ends:
            print(f"left out, compiled in another form than its text: {subject.name}")
            continue
        end = ends[0]
        options = next(dump.glob("*.debug_options"))
        stage = "after_optimizations" if "gpu" not in end.name else "gpu_after_optimizations"
        found.append(replace(subject, after=end.read_text(), options=options.read_text(), stage=stage))
    shutil.rmtree(folder, ignore_errors=True)
    return found
