"""`hlotool.demo`: a dump with a planted fault, to try everything on."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

from hlotool.interface.api.compile import new_folder
from hlotool.interface.api.results import Result
from hlotool.runs.options.declared import Arguments, Folder, option, takes

if TYPE_CHECKING:
    from hlotool.interface.report.demo import DemoRecord, DemoStepRecord

#: What each command is for, the command, and its exit code.
_STEPS = (
    (
        "XLA wrote this dump of two programs, before and after optimization, and a pass made a mistake. run"
        " executes both sides on the same inputs and compares the results; --html writes a page of it.",
        "hlotool run dump --html page.html",
        1,
    ),
    (
        "One program returns other values after optimization. bisect goes through the passes in the dump,"
        " and names the first wrong one and what it changed.",
        "hlotool bisect dump",
        1,
    ),
    (
        "check reads the programs without running them. It finds what is legal and rarely meant: here a"
        " function was compiled a second time, for a smaller batch.",
        "hlotool check dump",
        1,
    ),
    (
        "Verdicts, rules and messages are explained offline: what they mean, how that was established,"
        " what to type next. hlotool explain alone lists them.",
        "hlotool explain wrong",
        0,
    ),
)


class DemoResult(Result["DemoStepRecord"]):
    """A folder with a dump, and what to type there: a row for each command."""

    record: DemoRecord

    @property
    def rows(self) -> Sequence[DemoStepRecord]:
        """One record per command, in their order."""
        return self.record.steps

    @property
    def folder(self) -> str:
        """Where the program and its dump are: `hlotool.replay(f"{found.folder}/dump")`."""
        return self.record.folder


class DemoArguments(Arguments):
    """What `demo` takes, and `hlotool demo`."""

    out: Folder = option("a new folder for it [a temporary one, which stays]", default=None)


@takes(DemoArguments)
def demo(asked: DemoArguments) -> DemoResult:
    """Write a program and a dump of it with a planted fault, and say what to type there.

    Raises:
        UsageError: the folder cannot be made, or there is something in it.
    """
    from hlotool.interface.report.demo import DemoRecord, DemoStepRecord

    folder = new_folder("--out", asked.out)
    source = files("hlotool.corpus.demo")
    (folder / "dump").mkdir()
    for path, to in ((source, folder), (source / "dump", folder / "dump")):
        for file in (one for one in path.iterdir() if one.is_file()):
            (to / file.name).write_bytes(file.read_bytes())
    steps = [DemoStepRecord(about=about, command=line, exit_code=code) for about, line, code in _STEPS]
    return DemoResult(DemoRecord(folder=str(folder), steps=steps))
