"""Versions of installed packages, and the name of the system, without what takes long to ask.

`importlib.metadata.version` has a parser of mails read all of a package's description, and
`platform.platform` starts a process on Linux, for a word that it leaves out there.
"""

from __future__ import annotations

import os
import platform
import re
import sys

_VERSION = re.compile(r"^Version:[ \t]*(\S+)", re.MULTILINE)


def version_of(package: str) -> str:
    """The version of an installed package; empty where it is not installed."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        found = distribution(package)
    except PackageNotFoundError:
        return ""
    about = found.read_text("METADATA") or found.read_text("PKG-INFO") or ""
    match = _VERSION.search(about)
    return match[1] if match else ""


def system_name() -> str:
    """What `platform.platform` says: system, release, machine, the C library."""
    if sys.platform != "linux":
        return platform.platform()
    system = os.uname()
    return "-".join((system.sysname, system.release, system.machine, "with", "".join(platform.libc_ver())))
