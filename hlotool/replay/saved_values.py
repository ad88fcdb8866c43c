"""`--save-values`: what instructions compute, as .npy files that plain NumPy can load."""

from __future__ import annotations

import re
from collections import Counter

from hlotool.backends.base import Value
from hlotool.backends.registry import get_backend
from hlotool.ir.module import Instruction
from hlotool.replay.leaf_records import array_leaves
from hlotool.replay.program import Program
from hlotool.replay.saved_outputs import output_folder, save_array
from hlotool.replay.task import Task
from hlotool.replay.trials import Trial
from hlotool.stores.paths import inside

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
