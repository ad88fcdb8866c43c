"""Which configuration there is: a `hlotool.toml`, or `[tool.hlotool]` of a `pyproject.toml`.

It is looked for as other tools look for theirs: in the folder that the command is called in and those around
it, up to the root of the repository. Whoever calls the command may name another one, or want none.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hlotool.amounts import size_text
from hlotool.errors import UsageError

OWN_FILE, SHARED_FILE = "hlotool.toml", "pyproject.toml"
#: The name of the file, for whoever does not want to type `--config FILE` each time.
VARIABLE = "HLOTOOL_CONFIG"
#: Folders that hold a repository's history: above them nobody looks.
_ROOTS = (".git", ".hg")
#: Bytes; tables of options have a thousandth of that.
_MOST = 1 << 20


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a file says about the options of commands.

    Attributes:
        path: of the file.
        is_named: the user named it; otherwise it was found, and may be somebody else's.
        text: of the file.
        prefix: of its keys' paths: `("tool", "hlotool")` in a pyproject.toml.
        content: its tables and keys.
    """

    path: Path
    is_named: bool
    text: str = ""
    prefix: tuple[str, ...] = ()
    content: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """What paths in the file are relative to."""
        return self.path.parent

    def error(self, complaint: str, *keys: str | int) -> UsageError:
        """The error to raise where the key or table of that path is wrong; it names the line."""
        from hlotool.findings.toml_lines import line_of

        line = line_of(self.text, (*self.prefix, *keys))
        return UsageError(f"{self.path}{f':{line}' if line else ''}: {complaint}")


def find_configuration(named: str | None, start: Path | None = None) -> Configuration | None:
    """The configuration that applies.

    Args:
        named: the file that the user named on the command line; else `$HLOTOOL_CONFIG` may.
        start: where to begin the search, by default the current folder.

    Raises:
        UsageError: it cannot be read, or is no TOML.
    """
    if name := named or os.environ.get(VARIABLE):
        return _read(Path(name), is_named=True)
    try:
        folder = (start or Path.cwd()).absolute()
    except OSError:  # the current folder was removed
        return None
    for around in (folder, *folder.parents):
        for name in (OWN_FILE, SHARED_FILE):
            path = Path(name) if start is None and around == folder else around / name
            if path.is_file() and (found := _read(path, is_named=False)) is not None:
                return found
        if any((around / root).exists() for root in _ROOTS):
            return None
    return None


def _read(path: Path, is_named: bool) -> Configuration | None:
    """The configuration in a file; None where it has none and nobody said that it has."""
    is_shared = path.name == SHARED_FILE
    content = _bytes(path)
    if is_shared and not is_named and b"hlotool" not in content:
        return None
    from hlotool.findings.files import parse_toml

    text, document = parse_toml(path, UsageError)
    if not is_shared:
        return Configuration(path, is_named, text, (), document)
    tools = document.get("tool")
    own = tools.get("hlotool") if isinstance(tools, dict) else None
    if isinstance(own, dict):
        return Configuration(path, is_named, text, ("tool", "hlotool"), own)
    if own is not None or is_named:
        raise UsageError(f"{path}: there is no table [tool.hlotool]")
    return None


def _bytes(path: Path) -> bytes:
    from hlotool.findings.files import read_whole

    try:
        if path.is_file() and path.stat().st_size > _MOST:
            raise UsageError(f"{path}: larger than a configuration may be ({size_text(_MOST)})")
    except OSError as problem:
        raise UsageError(f"{path}: {problem.strerror or problem}") from problem
    return read_whole(path, UsageError)
