"""What the text of a program that may still be written says without being parsed."""

from __future__ import annotations

import os
import re

#: Of the text of a program where its header is, which says for how many devices it is.
_HEAD = 1 << 16
_SEVERAL_DEVICES = re.compile(rb"\b(?:num_partitions|replica_count)=(?!1\b)\d+")


def ends_a_module(path: str) -> bool:
    """Whether the text in a file ends as the text of a module does."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 16))
            return file.read().rstrip().endswith(b"}")
    except OSError:
        return False


def is_for_several_devices(path: str) -> bool:
    """Of such programs XLA's CPU compiler writes no executions."""
    try:
        with open(path, "rb") as file:
            return _SEVERAL_DEVICES.search(file.read(_HEAD).partition(b"\n")[0]) is not None
    except OSError:
        return False
