"""Versions of installed packages, and the name of the system, without what takes long to ask.

Names and versions are also those of the folders that `pip` writes (PyPA, "Recording installed projects");
`importlib.metadata` reads what is in these with a parser of mails. `platform.platform` starts a process on
Linux, for a word that it leaves out there.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Sequence
from functools import lru_cache

_RECORD = re.compile(r"([\w.]+)-([^-]+)\.dist-info")


def version_of(package: str) -> str:
    """The version of an installed package; empty where it is not installed."""
    known = _recorded(tuple(sys.path)).get(package.replace("-", "_").lower())
    if known is not None:
        return known
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return ""


@lru_cache(maxsize=1)
def _recorded(path: Sequence[str]) -> dict[str, str]:
    """Version by name of what is recorded in the folders of a search path; the first of each counts."""
    found: dict[str, str] = {}
    for folder in path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            if record := _RECORD.fullmatch(name):
                found.setdefault(record[1].lower(), record[2])
    return found


def system_name() -> str:
    """What `platform.platform` says: system, release, machine, the C library."""
    if sys.platform != "linux":
        return platform.platform()
    system = os.uname()
    return "-".join((system.sysname, system.release, system.machine, "with", "".join(platform.libc_ver())))
