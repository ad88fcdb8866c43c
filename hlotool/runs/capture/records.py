"""What captures tell of the program that ran, as plain data."""

from __future__ import annotations

from hlotool.judge.verdicts import AGREEING, DIFFERING, Verdict
from hlotool.system.records import Record


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


class EventRecord(Record, frozen=True, kw_only=True):
    """A condition of `--keep-when` that holds of an execution and did not hold of the one before.

    Attributes:
        module: name of the module, as its rows have it.
        execution: of the module, from 1.
        condition: as it was given.
        output: of which it holds (`out[1]`), the first of several; empty where it is about none.
        others: how many more outputs it began to hold of.
        detail: what is there, in words.
        is_kept: there was room for the execution, and it was replayed.
        again: what the device returned when it executed the same once more at once; empty where it did not.
        verdict: of what the device returned for it; None where that was not judged.
    """

    module: str = ""
    execution: int
    condition: str
    output: str = ""
    others: int = 0
    detail: str = ""
    is_kept: bool = True
    again: str = ""
    verdict: Verdict | None = None

    def __str__(self) -> str:
        what = f": {self.output} ({self.detail})" if self.output else ""
        what += f" and {self.others} more" if self.others else ""
        what += f"; run again: {self.again}" if self.again else ""
        return f"{self.condition} in {self.module}, execution {self.execution}{what}"

    @property
    def meaning(self) -> str:
        """Whose doing it is, in words."""
        if not self.is_kept:
            return "not kept: --keep-bytes was full"
        if self.verdict is None:
            return "not judged: no result of it was compared"
        if self.verdict in AGREEING:
            return f"{self.verdict.value}: the device computed what the program says; it is the program's own"
        if self.verdict in DIFFERING:
            return f"{self.verdict.value}: the device did not compute what the program says: a fault"
        return f"{self.verdict.value}: whose doing it is is left open"


class RepeatedRecord(Record, frozen=True, kw_only=True):
    """An execution that was run several times on the device, on the same arguments.

    Attributes:
        execution: of the module, from 1.
        runs: how often, the first time included.
        results: how many different ones there were, by their bits.
        usual: runs that gave the most frequent one.
        outputs: names of those that differ.
        files: of the different results, that of the execution itself first, each with its number of runs.
    """

    execution: int
    runs: int
    results: int
    usual: int
    outputs: list[str] = []
    files: dict[str, int]
