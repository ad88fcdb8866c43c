"""Read, check and write `MANIFEST.toml`: one table per directory, with a digest over all its files."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path
from typing import Any

HEADER = """\
# Written by corpus/generate/generate.py.
# `files` and `bytes` count everything below `path`. `sha256` is the digest of one line for each file,
# "<sha256 of the file>  <name>\\n", sorted by name; names are relative to `path` with forward slashes.
"""


def digest(directory: Path) -> dict[str, Any]:
    """File count, size and digest of a directory."""
    paths = sorted(
        (path.relative_to(directory).as_posix(), path) for path in directory.rglob("*") if path.is_file()
    )
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}\n" for name, path in paths]
    return {
        "files": len(paths),
        "bytes": sum(path.stat().st_size for _, path in paths),
        "sha256": hashlib.sha256("".join(lines).encode()).hexdigest(),
    }


def read(path: Path) -> dict[str, dict[str, Any]]:
    """The tables of a manifest by directory path; empty when there is no manifest yet."""
    if not path.exists():
        return {}
    return {entry["path"]: entry for entry in tomllib.loads(path.read_text(encoding="utf-8"))["directory"]}


def _value(value: Any) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}" = {_value(item)}' for key, item in value.items()) + "}"
    return str(value).lower()


def write(path: Path, entries: dict[str, dict[str, Any]]) -> None:
    """Write the tables in the order of their paths."""
    blocks = [
        "[[directory]]\n" + "".join(f"{key} = {_value(value)}\n" for key, value in entries[name].items())
        for name in sorted(entries)
    ]
    path.write_text(HEADER + "\n" + "\n".join(blocks), encoding="utf-8")
