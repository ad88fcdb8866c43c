"""Programs with their arguments as files."""

from __future__ import annotations

import os

from hlotool.findings.files import write_file
from hlotool.search.reduction.case import Case
from hlotool.stores.urls import name_of
from hlotool.values.npz import npz_bytes


def write_case(case: Case, path: str) -> None:
    """Write the program to `path`, which may be a URL, and its arguments beside it, as .npz.

    Raises:
        UsageError: a file cannot be written.
        DumpError: nor can the store's.
    """
    write_file(path, [case.text.encode("utf-8")])
    if case.arguments:
        write_file(with_suffix(path, ".npz"), [npz_bytes(case.arguments, case.copies)])


def with_suffix(path: str, suffix: str) -> str:
    """The path of what lies beside `path` and has another suffix."""
    return f"{os.path.splitext(path)[0]}{suffix}"


def default_output(path: str, what: str = "reduced") -> str:
    """`NAME.reduced.hlo` in the working directory, for a file or folder called NAME."""
    name = "stdin" if path == "-" else name_of(path.replace(os.sep, "/"))
    for suffix in (".txt", ".hlo", ".pb"):
        name = name.removesuffix(suffix)
    return f"{name}.{what}.hlo"
