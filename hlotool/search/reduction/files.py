"""Programs with their arguments as files."""

from __future__ import annotations

from pathlib import Path

from hlotool.findings.files import writing
from hlotool.search.reduction.case import Case
from hlotool.values.npz import npz_bytes


def write_case(case: Case, path: Path) -> None:
    """Write the program to `path` and its arguments beside it, as .npz.

    Raises:
        UsageError: a file cannot be written.
    """
    with writing(path):
        path.write_text(case.text, encoding="utf-8")
        if case.arguments:
            path.with_suffix(".npz").write_bytes(npz_bytes(case.arguments, case.copies))


def default_output(path: str, what: str = "reduced") -> str:
    """`NAME.reduced.hlo` in the working directory, for a file or folder called NAME."""
    name = "stdin" if path == "-" else Path(path).name
    for suffix in (".txt", ".hlo", ".pb"):
        name = name.removesuffix(suffix)
    return f"{name}.{what}.hlo"
