"""The parts of the suite. Each runs in processes of its own, within its time, and leaves what it found."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from benchmarks.gpu.cases import ROOT, all_cases
from benchmarks.gpu.lines import LATE, Findings, Limits, collect, end, main_command
from benchmarks.gpu.targets import targets
from hlotool.backends.spec import parse_spec

#: The state of a part and all that it found, as it goes into the results.
Part: TypeAlias = dict[str, Any]

#: Seconds without news after which a process is given up.
_SILENCE = 90.0
#: Scale of the cases that sanitizers watch: they are 10 to 100 times slower then.
_WATCHED = 1 / 4096
#: What needs a device.
_TESTS = ROOT / "tests" / "gpu"
#: Tools of compute-sanitizer.
_CHECKS = ("memcheck", "racecheck")
#: Of compute-sanitizer, where it has found something.
_FOUND = 86
#: Batches of random fusions, if time allows.
BATCHES = 400


@dataclass(frozen=True, slots=True)
class Settings:
    """What to run.

    Attributes:
        backend: that is measured.
        scale: of the cases.
        repeats: readings of the clock for each case.
        xla: platform of XLA to compare with; None to leave it out.
        cases: names of cases to run; all if there are none.
        batches: of random fusions.
        environment: of all processes.
    """

    backend: str
    scale: float
    repeats: int
    xla: str | None
    cases: tuple[str, ...] = ()
    batches: int = BATCHES
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Work:
    """What a part is given.

    Attributes:
        settings: of the run.
        part: where it leaves what it finds.
        until: when it has to be over, on the clock `time.monotonic`.
        save: writes the results as they are.
    """

    settings: Settings
    part: Part
    until: float
    save: Callable[[], None]

    @property
    def left(self) -> float:
        """Seconds."""
        return max(1.0, self.until - time.monotonic())


def measure(work: Work) -> None:
    """Times, errors and XLA, case by case."""
    settings = work.settings
    findings = Findings(about={"xla_platform": settings.xla})
    work.part.update(about=findings.about, cases=findings.items)
    options: list[object] = ["--backend", settings.backend, "--scale", settings.scale]
    options += ["--repeats", settings.repeats, *(["--xla", settings.xla] if settings.xla else [])]

    def command(pending: list[str]) -> list[str]:
        basics = [] if "basics" in findings.about else ["--basics"]
        return main_command("measure", *options, *basics, *pending)

    names = [case.name for case in all_cases(settings.scale)]
    wanted = [name for name in names if not settings.cases or name in settings.cases]
    reason = _collect(work, command, wanted, findings)
    missed = [target.name for target in targets(findings.items, findings.about) if target.met is False]
    _judge(work.part, reason, f"missed: {'; '.join(missed)}" if missed else None)


def fuzz(work: Work) -> None:
    """Random fusions, as many as time allows."""
    findings = Findings()
    batches = findings.items
    numbers = [str(n) for n in range(work.settings.batches)]

    def command(pending: list[str]) -> list[str]:
        return main_command("fuzz", "--backend", work.settings.backend, *pending)

    work.part.update(batches=batches)
    reason = _collect(work, command, numbers, findings)
    # Being out of time is how this part ends: the last batch was just not finished.
    failed = {n: b["failed"] for n, b in batches.items() if not b.get("failed", LATE).startswith(LATE)}
    fusions = sum(batch.get("fusions", 0) for batch in batches.values())
    differing = {n: b["differing"] for n, b in batches.items() if b.get("differing")}
    work.part.update(fusions=fusions, differing=differing)
    wrong = f"of {fusions} fusions results in {len(differing)} batches differ; {len(failed)} batches failed"
    wrong += "".join(f"; {n}: {why}" for n, why in list(failed.items())[:1])
    _judge(work.part, None if fusions else reason, wrong if differing or failed else None)
    if work.part["state"] == "passed":
        work.part["reason"] = f"{fusions} fusions, equal to the bit"


def tests(work: Work) -> None:
    """The tests that need a device."""
    if not _TESTS.is_dir():
        return _skip(work.part, "there is no tests/gpu")
    code, output = run(_pytest(), work)
    found = re.findall(r"^.*\b\d+ (?:passed|failed|skipped|errors?|deselected)\b.*$", output, re.MULTILINE)
    summary = found[-1].strip("= ") if found else f"pytest ended with status {code}"
    work.part.update(output=output[-6000:])
    if code is None:
        return _judge(work.part, LATE)
    if code:
        return _judge(work.part, None, summary)
    if "passed" not in summary:
        return _skip(work.part, summary)
    work.part.update(state="passed", reason=summary)
    return None


def _pytest() -> list[str]:
    # Plug-ins of the machine's Python may be of other versions of pytest than the one brought along.
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--color=no", str(_TESTS)]


def sanitizers(work: Work) -> None:
    """compute-sanitizer on small cases and, if no case is named, on small tests: bad addresses, races."""
    path = os.pathsep.join([work.settings.environment["PATH"], "/usr/local/cuda/bin"])
    tool = shutil.which("compute-sanitizer", path=path)
    if tool is None:
        return _skip(work.part, "there is no compute-sanitizer on the PATH")
    if parse_spec(work.settings.backend).name != "cuda":
        return _skip(work.part, f"compute-sanitizer watches kernels of a GPU, not {work.settings.backend}")
    options = ["--backend", work.settings.backend, "--scale", _WATCHED, "--repeats", 1]
    watched = {"cases": main_command("measure", *options, *work.settings.cases)}
    if _TESTS.is_dir() and not work.settings.cases:
        watched["tests"] = [*_pytest(), "-k", "small"]
    named = [(f"{check} on {title}", check, c) for title, c in watched.items() for check in _CHECKS]
    for name, check, command in named:
        work.part[name] = _watch([tool, "--tool", check], command, work)
        work.save()
        if work.part[name]["unsupported"]:
            return _skip(work.part, "compute-sanitizer does not support this device, or what virtualises it")
    late = [name for name, _, _ in named if work.part[name]["status"] is None]
    wrong = [name for name, _, _ in named if work.part[name]["wrong"]]
    unfinished = f"no time left for {', '.join(late)}" if late else None
    _judge(work.part, unfinished, f"see {', '.join(wrong)}" if wrong else None)
    return None


def _watch(tool: list[str], command: list[str], work: Work) -> dict[str, Any]:
    """What one tool says of one command."""
    flags = ["--error-exitcode", str(_FOUND), "--target-processes", "all"]
    code, output = run([*tool, *flags, *command], work)
    summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: .*", output)
    return {
        "status": code,
        "summary": summary[-1] if summary else output[-500:],
        # A case that failed has said so in a line of JSON.
        "wrong": bool(code) or '"failed"' in output,
        "unsupported": "Device not supported" in output,
    }


def run(command: Sequence[str], work: Work) -> tuple[int | None, str]:
    """Status and output of a command in the checkout; no status where time was up."""
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=dict(work.settings.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    code: int | None = None
    try:
        output, _ = process.communicate(timeout=work.left)
        code = process.returncode
    except subprocess.TimeoutExpired:
        end(process)
        output, _ = process.communicate()
    finally:
        end(process)
    return code, output


def _collect(
    work: Work, command: Callable[[list[str]], list[str]], items: list[str], findings: Findings
) -> str | None:
    limits = Limits(work.until, _SILENCE)
    return collect(command, items, findings, limits, work.settings.environment, work.save)


def _skip(part: Part, reason: str) -> None:
    """Say why a part cannot run here."""
    part.update(state="skipped", reason=reason)


def _judge(part: Part, unfinished: str | None, wrong: str | None = None) -> None:
    """Set state and reason: what is wrong counts more than what was not finished."""
    if wrong:
        part.update(state="failed", reason=wrong)
    elif unfinished:
        part.update(state="unfinished", reason=unfinished)
    else:
        part.update(state="passed", reason=None)
