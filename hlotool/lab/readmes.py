"""What the README beside a program of a report says: its flags of XLA, and the pass that it accuses.

Reports of differential testing have a folder for each program, with the command that shows the difference.
What a stranger writes there is data: flags that name files, and dumps, are not taken.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import lru_cache

from hlotool.backends.registry import get_backend, with_flags
from hlotool.errors import HlotoolError, InputError
from hlotool.parser.reader import parse_module
from hlotool.runs.program import compile_program
from hlotool.runs.task import Task
from hlotool.sources.archives import list_archive
from hlotool.sources.locations import Source
from hlotool.sources.open_files import DEFAULT_LIMITS, File
from hlotool.system.urls import is_url

#: What a worker calls to learn which flags a backend refuses.
REFUSED = "hlotool.lab.readmes:refused_flags"

_README = re.compile(r"readme(\.(md|txt|rst))?$", re.IGNORECASE)
_GIVEN = re.compile(r"XLA_FLAGS=(?:'([^']*)'|\"([^\"]*)\"|(\S*))")
#: A flag whose value names no file; without one it is on.
_FLAG = re.compile(r"--(xla_(?!dump_)(?!\w*(?:_dir|_file|_path|_to)\b)\w+)(?:=([\w.+-]+))?(?=\s|$)")
_ACCUSED = re.compile(r"--xla_disable_hlo_passes=([\w.-]+)")
#: Of a README, so many bytes are read.
_MOST = 1 << 20
_TRIVIAL = "HloModule m\nENTRY e {\n  x = f32[] parameter(0)\n  ROOT r = f32[] negate(x)\n}\n"


def readme_of(task: Task) -> str:
    """The README in the folder of a program; empty where there is none."""
    source = task.module.stages[0].source if task.module.stages else None
    if source is None or is_url(source.path):
        return ""
    folder, name = os.path.split(source.member or source.path)
    beside = _names(source.file if source.member else None, folder)
    for other in beside:
        if other != name and _README.match(other):
            path = f"{folder}/{other}" if folder else other
            readme = Source(source.path, path) if source.member else Source(path)
            try:
                return readme.read_head(_MOST).decode("utf-8", "replace")
            except InputError:
                return ""
    return ""


@lru_cache(maxsize=256)
def _names(archive: File | None, folder: str) -> tuple[str, ...]:
    """The files of a folder, or of one in an archive."""
    try:
        if archive is None:
            return tuple(sorted(os.listdir(folder or ".")))
        names, _ = list_archive(archive, DEFAULT_LIMITS)
    except (OSError, InputError):
        return ()
    return tuple(os.path.basename(name) for name in names if os.path.dirname(name) == folder)


def flags_in(readme: str) -> list[str]:
    """The flags of the first command, `NAME=VALUE`; a pass that is left out there is of the reference."""
    given = _GIVEN.search(readme)
    text = next(filter(None, given.groups()), "") if given else ""
    found = {name: value or "true" for name, value in _FLAG.findall(text)}
    found.pop("xla_disable_hlo_passes", None)
    return [f"{name}={value}" for name, value in found.items()]


def accused_in(readme: str) -> str:
    """The pass without which, a README says, there is no difference; empty where it says no such thing."""
    return next(iter(_ACCUSED.findall(readme)), "")


def refused_flags(question: tuple[str, Sequence[str]]) -> list[str]:
    """Which flags a backend does not know, or not with this value; called in a worker."""
    backend, flags = question
    module = parse_module(_TRIVIAL)
    get_backend(backend)
    refused = []
    for flag in flags:
        try:
            compile_program("", "", module, with_flags(backend, [flag]))
        except HlotoolError:
            refused.append(flag)
    return refused
