"""What a part of the suite is given, how it is judged, and how it starts processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from benchmarks.gpu.cases import ROOT, all_cases
from benchmarks.gpu.lines import Findings, Limits, collect, end

#: The state of a part and all that it found, as it goes into the results.
Part: TypeAlias = dict[str, Any]

#: What needs a device.
TESTS = ROOT / "tests" / "gpu"
#: Options of pytest. Plug-ins of the machine's Python may be of other versions of pytest than the one brought
#: along, so none is loaded, and what the project's settings say to one is left out.
PYTEST = (
    *("-q", "-p", "no:cacheprovider", "--color=no"),
    *("-o", "addopts=", "--import-mode=importlib", "--strict-markers", "-m", "not slow"),
)

#: Seconds without news after which a process is given up: the slowest to say something is nvcc on the
#: training step.
_SILENCE = 30.0
#: Batches of random fusions, if time allows.
BATCHES = 400
#: Processes that share a device and the cores where nothing is timed. Each compiles, and a reference takes
#: one core; with more, contexts and imports take longer than what they save.
PROCESSES = 4


@dataclass(frozen=True, slots=True)
class Settings:
    """What to run.

    Attributes:
        backend: that is measured; the smoke may settle for one of its compilers.
        size: bytes that each case is to move at least; None to ask the device.
        repeats: readings of the clock for each case.
        xla: platform of XLA to compare with; None to leave it out.
        cases: names of cases to run; all if there are none.
        batches: of random fusions.
        copied: bytes that are copied to see how fast a device does it.
        patience: times the seconds after which a process without news is given up.
        project: the path of nvcc, where the host's share of the work for a large GPU is timed, too.
        environment: of all processes.
    """

    backend: str
    size: int | None = None
    repeats: int = 30
    xla: str | None = None
    cases: tuple[str, ...] = ()
    batches: int = BATCHES
    copied: int = 1 << 30
    patience: float = 1.0
    project: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def processes(self) -> int:
        """That work at the same time where nothing is timed."""
        return max(1, min(PROCESSES, (os.cpu_count() or 1) // 2))


@dataclass(frozen=True, slots=True)
class Work:
    """What a part is given.

    Attributes:
        name: of the part.
        settings: of the run.
        part: where it leaves what it finds; what an earlier run found is in it.
        until: when it has to be over, on the clock `time.monotonic`.
        save: writes the results as they are.
        about: what is known of the machine and the device; parts add to it.
        cases: what is known of each case; parts add to it.
    """

    name: str
    settings: Settings
    part: Part
    until: float
    save: Callable[[], None]
    about: dict[str, Any] = field(default_factory=dict)
    cases: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def left(self) -> float:
        """Seconds."""
        return max(1.0, self.until - time.monotonic())

    @property
    def backend(self) -> str:
        """The backend's spec: as the smoke found that it works, else as asked for."""
        return str(self.about.get("backend", self.settings.backend))

    def findings(self, items: dict[str, dict[str, Any]], title: str = "") -> Findings:
        """Where processes of this part put what they find, `items` by item; goes on with an earlier run's."""
        found = Findings(self.about, items, self.part.get("done", []), self.part.get("spent", {}), title)
        self.part.update(done=found.done, spent=found.spent)
        return found

    def collect(
        self,
        command: Callable[[list[str]], list[str]],
        items: Sequence[str],
        findings: Findings,
        processes: int = 1,
        silence: float = _SILENCE,
    ) -> str | None:
        """As `lines.collect`, within this part's time; says what is done, as soon as it is on disk."""
        limits = Limits(self.until, silence * self.settings.patience)
        said = len(findings.done)

        def save() -> None:
            nonlocal said
            self.save()
            for item in findings.done[said:]:
                print(f"gpu-suite: {self.name}: {item} is done", file=sys.stderr, flush=True)
            said = len(findings.done)

        return collect(command, items, findings, limits, self.settings.environment, save, processes)

    def wanted(self) -> list[str]:
        """Names of the cases to run."""
        names = [case.name for case in all_cases(1)]
        return [name for name in names if not self.settings.cases or name in self.settings.cases]

    def skip(self, reason: str) -> None:
        """Say why the part cannot run here."""
        self.part.update(state="skipped", reason=reason)

    def judge(self, unfinished: str | None, wrong: str | None = None) -> None:
        """Set state and reason: what is wrong counts more than what was not finished."""
        state = "failed" if wrong else "unfinished" if unfinished else "passed"
        self.part.update(state=state, reason="; ".join(filter(None, (wrong, unfinished))) or None)

    def run(self, command: Sequence[str]) -> tuple[int | None, str]:
        """Status and output of a command in the checkout; no status where time was up."""
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=dict(self.settings.environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        code: int | None = None
        try:
            output, _ = process.communicate(timeout=self.left)
            code = process.returncode
        except subprocess.TimeoutExpired:
            end(process)
            output, _ = process.communicate()
        finally:
            end(process)
        return code, output
