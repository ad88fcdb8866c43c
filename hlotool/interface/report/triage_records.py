"""What `hlotool triage` found, as plain data: the JSON format."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from hlotool.interface.report.lab_records import FaultRecord
from hlotool.interface.report.records import RunRecord
from hlotool.interface.report.words import plural
from hlotool.judge.verdicts import Verdict
from hlotool.system.records import CommandRecord, ErrorRecord, Record

#: What became of a program, and how many of them are called in a line. `doubtful`: wrong once, and not when
#: it was asked again, or a difference that rounding decides; `unjudged`: it could not be run, or compared.
Outcome = Literal["legal", "same", "wrong", "crashed", "sensitive", "doubtful", "unjudged"]


class TriagedRecord(Record, frozen=True, kw_only=True):
    """A program.

    Attributes:
        path: its file.
        name: of the module.
        outcome: see `Outcome`.
        verdict: the gravest of its comparisons.
        reason: of that.
        fault: number of the fault that it shows; 0 where it shows none, or where that is not known.
        backend: that compiled it, with the flags of its README where these were asked for; empty of a dump.
        accused: the pass without which, the README beside it says, there is no difference; empty for none.
        twin_of: path of the first program that is the same under another name; empty for the first one.
    """

    path: str
    name: str
    outcome: Outcome
    verdict: Verdict
    reason: str = ""
    fault: int = 0
    backend: str = ""
    accused: str = ""
    twin_of: str = ""


class TriageRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool triage --json` prints.

    Attributes:
        paths: as given.
        folder: gets programs that failed in `raw/`, and a bundle for each fault in `faults/`.
        backend: in question; empty where the stages of dumps are.
        programs: what became of each.
        faults: every failure that was looked into: faults with a number, further cases, and what did not fail
            a second time.
        counts: programs by outcome.
        pending: failures that have not been looked into; running the same command again does.
        run: all comparisons, as `hlotool run` has them; its causes are the faults.
        error: what ended the command.
        interrupted: the user stopped it; the same command goes on.
        notes: what else is to be said.
    """

    schema: Literal["hlotool.triage/1"] = "hlotool.triage/1"
    versions: dict[str, str]
    paths: list[str]
    folder: str
    backend: str = ""
    programs: list[TriagedRecord] = []
    faults: list[FaultRecord] = []
    counts: dict[Outcome, int] = {}
    pending: int = 0
    run: RunRecord
    error: ErrorRecord | None = None
    interrupted: bool = False
    notes: list[str] = []
    exit_code: int = 0
    seconds: float = 0.0

    @property
    def numbered(self) -> list[FaultRecord]:
        """The faults, each once."""
        return [fault for fault in self.faults if fault.number]

    @property
    def headline(self) -> str:
        """All of it in one line: `337 programs: 212 legal differences, 118 of 6 faults (4 known), …`."""
        counts = self.counts
        parts = [
            _counted(counts.get("same", 0), "the same"),
            _counted(legal := counts.get("legal", 0), f"legal difference{'' if legal == 1 else 's'}"),
            self._of_faults("wrong", ""),
            self._of_faults("crashed", f"crash{'' if counts.get('crashed', 0) == 1 else 'es'}"),
            _counted(counts.get("sensitive", 0), "too sensitive to judge"),
            _counted(counts.get("doubtful", 0), "in doubt"),
            _counted(counts.get("unjudged", 0), "not judged"),
        ]
        said = ", ".join(part for part in parts if part)
        return f"{plural(len(self.programs), 'program')}: {said or 'nothing'}"

    def _of_faults(self, outcome: Outcome, called: str) -> str:
        """How many programs failed in a way, and of how many faults these are."""
        shown = Counter(p.fault for p in self.programs if p.outcome == outcome)
        count, open_ = sum(shown.values()), shown.pop(0, 0)
        if not count:
            return ""
        known = sum(bool(fault.known) for fault in self.numbered if fault.number in shown)
        of = f"{called} of {plural(len(shown), 'fault')}" if shown else called or "wrong"
        more = [f"{known} known"] * bool(known) + [f"{open_} not looked into"] * bool(shown and open_)
        return " ".join([str(count), of.strip(), *([f"({', '.join(more)})"] if more else [])])


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count else ""
