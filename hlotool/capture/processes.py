"""The processes of a program that loaded XLA, as they tell of themselves, and what is odd about them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from hlotool.capture.launch import DumpWishes
from hlotool.capture.process import merged
from hlotool.findings.records import Record
from hlotool.findings.verdict import Verdict
from hlotool.replay.records import REALITY, ModuleRecord
from hlotool.replay.trials import CAPTURED, GENERATED, NO_RESULT


class ProcessRecord(Record, frozen=True, kw_only=True):
    """A process of the program that loaded XLA.

    Attributes:
        pid: its number.
        command: as it was started.
        packages: that brought XLA, with their versions.
        flags: that XLA was given.
        unknown: flags that this XLA does not know, and that it therefore was not given.
    """

    pid: int
    command: list[str]
    packages: dict[str, str] = {}
    flags: list[str] = []
    unknown: list[str] = []


def read_processes(folder: Path) -> list[ProcessRecord]:
    """The processes that dumped below `folder`, in the order in which they loaded XLA."""
    found = []
    for path in sorted(folder.glob("process_*.json"), key=os.path.getmtime):
        try:
            found.append(msgspec.json.decode(path.read_bytes(), type=ProcessRecord))
        except (OSError, msgspec.MsgspecError):
            continue
    return found


def notes_on(
    processes: Sequence[ProcessRecord],
    rows: Sequence[ModuleRecord],
    wishes: DumpWishes,
    given: Mapping[str, str],
    status: int = 0,
) -> Iterator[str]:
    """What the user should know of how the dump came about.

    Args:
        processes: that loaded XLA.
        rows: of what they compiled.
        wishes: what they were to write.
        given: the variables of the user.
        status: the exit status of the program.
    """
    kept = set(merged(given.get("XLA_FLAGS", ""), wishes.basic, wishes.wanted).split())
    for flag in given.get("XLA_FLAGS", "").split():
        if flag.startswith("-") and flag not in kept:
            yield f"XLA_FLAGS: {flag} gives way to what this command needs"
    yield from dict.fromkeys(text for process in processes for text in _unknown(process))
    if not processes:
        yield (
            "no process of the program was seen to load JAX, TensorFlow or PyTorch/XLA"
            " (Python with -I, -S or -E is not seen)"
        )
    elif not rows and status:
        yield (
            "XLA was loaded, nothing was dumped, and the program failed: if it died before XLA began to"
            " compile, its messages say why (COMMAND 2>&1 | hlotool explain -)"
        )
    elif not rows:
        yield "XLA was loaded and nothing dumped: nothing was compiled, or the program sets XLA_FLAGS late"
    if wishes.snapshots and rows:
        yield from _not_captured(rows)
        yield from _without_result(rows)


def _unknown(process: ProcessRecord) -> Iterator[str]:
    packages = " and ".join(" ".join(filter(None, package)) for package in process.packages.items())
    for flag in process.unknown:
        yield f"{packages} was not given {flag}: it does not know it, or dies of it"


def _not_captured(rows: Sequence[ModuleRecord]) -> Iterator[str]:
    rows = [row for row in rows if row.verdict is not Verdict.NOT_COMPILED]
    made = {row.name for row in rows if row.inputs is not None and row.inputs.origin == GENERATED}
    if made:
        yield (
            f"of {len(made)} of {len({row.name for row in rows})} modules no execution was captured: not"
            " executed, or XLA writes none here or for several devices; their inputs are generated"
        )


def _without_result(rows: Sequence[ModuleRecord]) -> Iterator[str]:
    captured = {row.name for row in rows if row.inputs is not None and row.inputs.origin == CAPTURED}
    lacking = captured - {row.name for row in rows if row.stage_tested == REALITY}
    if lacking:
        yield (
            f"of {len(lacking)} of {len({row.name for row in rows})} modules the arguments were captured and"
            f" the result was not: {NO_RESULT}"
        )
