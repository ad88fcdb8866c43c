"""A trial as files: the program, and its arguments as `--inputs` takes them."""

from __future__ import annotations

import os
import re

from hlotool.conformance.trials import trial_named
from hlotool.findings.files import write_file, writing
from hlotool.report.conformance_records import TrialRecord, arguments_file
from hlotool.values.npz import npz_bytes


def save_trial(record: TrialRecord, folder: str) -> str:
    """Write the program, and beside it its arguments; returns the path of the program.

    Args:
        record: of the trial; the files are called by its opcode and element type.
        folder: made where there is none.

    Raises:
        UsageError: it cannot be written.
    """
    trial = trial_named(record.name)
    with writing(folder):
        os.makedirs(folder, exist_ok=True)
    name = "-".join(filter(None, (record.opcode, record.element_type)))
    path = os.path.join(folder, f"{name}.hlo")
    about = re.sub(r"\s+", " ", f"{record.name}: {record.title}; {record.message}")
    write_file(path, [f"// {about}\n{trial.module.to_text()}".encode()])
    copies = len(trial.grid)
    write_file(arguments_file(path), [npz_bytes(trial.rows if copies > 1 else trial.rows[0], copies)])
    return path
