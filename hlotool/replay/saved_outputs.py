"""`--save-outputs`: results as .npy files that plain NumPy can load."""

from __future__ import annotations

import io
import os
import re
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from pathlib import Path

import numpy as np

from hlotool.backends.base import Value
from hlotool.backends.registry import get_backend
from hlotool.cache.whole import write_over
from hlotool.errors import UsageError
from hlotool.findings.files import write_file, writing
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType, Shape
from hlotool.replay.leaf_records import array_leaves
from hlotool.replay.program import Program
from hlotool.replay.task import Task
from hlotool.replay.trials import Trial
from hlotool.stores.paths import inside
from hlotool.stores.urls import is_url
from hlotool.values.npz import npz_bytes

#: A file's path by the shape index of the leaf it holds.
Files = dict[tuple[int, ...], str]

#: Types that NumPy itself lacks, and a type of its own that holds all their values.
_WIDER: dict[ElementType, type[np.generic]] = {
    **{t: np.float32 for t in ElementType if t.is_narrow_float and t is not ElementType.F16},
    ElementType.S2: np.int8,
    ElementType.S4: np.int8,
    ElementType.U2: np.uint8,
    ElementType.U4: np.uint8,
}


def output_folder(root: str, *names: str) -> str:
    """A folder below `root`, a folder or a URL, made of names that may hold any character; created.

    Raises:
        UsageError: it cannot be created.
    """
    parts = [part for name in names for part in name.split("/")]
    legal = (re.sub(r"[^\w.+=-]|^\.+", "_", part) for part in parts if part)
    folder = reduce(inside, legal, root)
    if not is_url(folder):
        with writing(folder):
            os.makedirs(folder, exist_ok=True)
    return folder


def save_leaves(folder: str, side: str, shape: Shape, value: Value) -> Files:
    """Write every array of `value` as `out.INDEX.SIDE.npy`.

    Narrow types that NumPy lacks (bf16, f8, int4, …) are widened, which changes no value.

    Raises:
        UsageError: a file cannot be written.
        DumpError: nor can the store's.
    """
    files: Files = {}
    for index, part, array in array_leaves(shape, value):
        path = inside(folder, ".".join(["out", *map(str, index), side, "npy"]))
        save_array(path, array, part.element_type)
        files[index] = path
    return files


def same_bits(shape: Shape, expected: Value, actual: Value) -> bool:
    """Whether two values of one shape hold the same bits."""
    pairs = zip(array_leaves(shape, expected), array_leaves(shape, actual))
    return all(
        one.shape == other.shape and one.tobytes() == other.tobytes() for (_, _, one), (_, _, other) in pairs
    )


def save_array(path: str, array: Array, element_type: ElementType) -> None:
    """Write an array, widened where NumPy lacks its type; raises as `save_leaves`."""
    plain = _plain(array, element_type)
    if is_url(path):
        content = io.BytesIO()
        np.save(content, plain)
        write_file(path, [content.getvalue()])
        return
    with writing(path):
        np.save(path, plain)


def _plain(array: Array, element_type: ElementType) -> Array:
    wider = _WIDER.get(element_type)
    return array if wider is None else array.astype(wider)


# `--save-values`: what instructions compute, as .npy files that plain NumPy can load.

#: Of an instruction in a loop: the first so many calls are kept.
MOST_CALLS = 64


def save_values(task: Task, trial: Trial, program: Program) -> list[str]:
    """Run a program once more on the reference and write what its instructions compute.

    A file is called `NAME.npy`; `NAME.0.1.npy` for an array in a tuple, `NAME@3.npy` for the value of the
    fourth call.

    Returns:
        notes: what was written, or why nothing was.

    Raises:
        UsageError: a file cannot be written.
    """
    root = task.options.save_values
    assert root is not None
    if program.runner.copies > 1 or program.whole is not None:
        return [f"--save-values: nothing of {program.label}, which runs on several devices"]
    names = task.module.title, trial.name, program.label, task.options.one_of_several
    saved = _Saved(output_folder(root, *names), re.compile(task.options.values))
    get_backend("numpy").compile(program.module).run(trial.arguments, saved)
    notes = [f"values of {len(saved.calls)} instructions of {program.label} are in {saved.folder}"]
    if dropped := sum(count > MOST_CALLS for count in saved.calls.values()):
        notes.append(f"of {dropped} instructions in loops, the first {MOST_CALLS} calls")
    return notes


class _Saved:
    """A probe that writes what it sees.

    Attributes:
        folder: that gets the files.
        calls: how often each instruction was seen.
    """

    def __init__(self, folder: str, wanted: re.Pattern[str]) -> None:
        self.folder = folder
        self.calls: Counter[str] = Counter()
        self._wanted = wanted

    def __call__(self, instruction: Instruction, value: Value) -> None:
        """Write the value of one call."""
        name = instruction.name
        if not self._wanted.search(name):
            return
        call = self.calls[name]
        self.calls[name] += 1
        if call >= MOST_CALLS:
            return
        stem = re.sub(r"[^\w.+=-]|^\.+", "_", name) + (f"@{call}" if call else "")
        for index, part, array in array_leaves(instruction.shape, value):
            path = inside(self.folder, ".".join([stem, *map(str, index), "npy"]))
            save_array(path, array, part.element_type)


# Keeps the inputs that show something, for `--inputs` of everything after.

#: The folder that gets them.
FOLDER = "hlotool-inputs"


def inputs_file(name: str) -> Path:
    """Where the arguments of the program `name` go."""
    return Path(FOLDER, f"{name.replace('/', '_')}.npz")


def save_inputs(name: str, arguments: Sequence[Value], copies: int = 1) -> str:
    """The file that gets the arguments of the program `name`; empty where it cannot be written.

    Args:
        name: of a module or a pair of programs.
        arguments: one per parameter; one tuple of them for each device where `copies` have their own.
        copies: number of these devices.
    """
    path = inputs_file(name)
    try:
        output_folder(FOLDER)
        write_over(path, [npz_bytes(arguments, copies)])
    except (OSError, UsageError):
        return ""
    return str(path)
