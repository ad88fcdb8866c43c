"""What XLA allocated for a program, by the files of a dump that say it.

    allocation 3: size 4096, parameter 0, shape |f32[1024]| at ShapeIndex {}:
    allocation 7: size 512, color 1, preallocated-temp:

A color is a memory space; without one it is the device's own.

XLA: buffer_assignment.cc (BufferAllocation::ToString).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import TypeAlias

from hlotool.checks.inspect.run import ASSIGNMENT, USAGE_REPORT
from hlotool.facts.memory_kinds import Kind
from hlotool.sources.records import DumpModule

_ALLOCATION = re.compile(r"^allocation \d+: (?:0x[0-9a-f]+, )?size (\d+)(.*)", re.MULTILINE)
_TOTAL = re.compile(r"^Total bytes: (\d+)", re.MULTILINE)
#: By what stands in the line; the first that does.
_KINDS = {"parameter": Kind.ARGUMENT, "constant": Kind.CONSTANT, "live-out": Kind.RESULT}


#: Bytes, where they are known, and what they are for.
Allocated: TypeAlias = tuple[int | None, Mapping[Kind, int]]


def allocated_for(module: DumpModule) -> Allocated:
    """Bytes of the device's own memory, and what they are for, which only a buffer assignment tells.

    Nothing is known where a dump has several files of a kind.
    """
    if text := _only(module, ASSIGNMENT):
        found = _assigned(text)
        return sum(found.values()), found
    totals = _TOTAL.findall(_only(module, USAGE_REPORT))
    return (int(totals[0]) if totals else None), {}


def _only(module: DumpModule, name: str) -> str:
    files = [file for file in module.artefacts if file.name.text.endswith(name)]
    return files[0].source.read_text() if len(files) == 1 else ""


def _assigned(text: str) -> Counter[Kind]:
    """What threads keep for themselves is in no memory."""
    found: Counter[Kind] = Counter()
    for size, words in _ALLOCATION.findall(text):
        if "thread-local" not in words and ", color " not in words:
            kind = next((kind for word, kind in _KINDS.items() if word in words), Kind.TEMPORARY)
            found[kind] += int(size)
    return found
