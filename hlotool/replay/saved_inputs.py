"""Keeps the inputs that show something, for `--inputs` of everything after."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hlotool.backends.base import Value
from hlotool.cache.whole import write_over
from hlotool.errors import UsageError
from hlotool.replay.saved_outputs import output_folder
from hlotool.values.npz import npz_bytes

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
