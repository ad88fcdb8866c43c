"""The parts of the suite. Each runs in processes of its own, within its time, and leaves what it found."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from benchmarks.gpu.lines import LATE, Limits, Stopped, lines_of, main_command
from benchmarks.gpu.targets import targets
from benchmarks.gpu.work import TESTS, Work
from hlotool.backends.registry import parse_spec

#: What the smoke tries, in order: what says how large the cases have to be comes early, and XLA last, since
#: it may abort.
ROWS = ("context", "nvrtc", "nvcc", "g++", "copy", "cublas", "transfers", "xla")
#: One of them has to work.
COMPILERS = ("nvrtc", "nvcc", "g++")
#: Seconds without news after which a row is given up: XLA takes 5 to 10 to start, and more where its
#: libraries, gigabytes, come from a disk.
_ROW = 25.0
#: Seconds without news after which XLA is given up: for a product, it compiles and times dozens of kernels.
_XLA = 45.0
#: Bytes of cases where no device says how many it takes: what an H200 needs.
_USUAL_SIZE = 400_000_000
#: Seconds of a test after which it is given up. The longest replay 50 programs, each compiled for the first
#: time.
_TEST = 60.0


def with_compiler(backend: str, compiler: str) -> str:
    """A backend's spec with its compiler named, where it is of the backend's choice."""
    spec = parse_spec(backend)
    if spec.name != "cuda":
        return backend
    return str(replace(spec, options={**spec.options, "compiler": compiler}))


def smoke(work: Work) -> None:
    """What everything else needs, each on its own; says in `blocked` why nothing else is to be run."""
    settings = work.settings
    rows: dict[str, dict[str, Any]] = {}
    work.part.update(rows=rows, done=[], spent={})
    options: list[object] = ["--backend", settings.backend]
    options += ["--xla", settings.xla] if settings.xla else []
    options += ["--copied", settings.copied]

    def command(pending: list[str]) -> list[str]:
        return main_command("smoke", *options, *pending)

    late = work.collect(command, ROWS, work.findings(rows), silence=_ROW)
    for row in rows.values():
        if "failed" in row:  # its process died, or fell silent
            row.update(state="failed", said=row.pop("failed"))
    states = {name: rows.get(name, {}).get("state") for name in ROWS}
    settles = states["nvrtc"] == "failed" and states["nvcc"] == "passed"
    work.about["backend"] = with_compiler(settings.backend, "nvcc") if settles else settings.backend
    work.about["no_xla"] = rows["xla"]["said"] if states["xla"] == "skipped" else None
    compiled = [name for name in COMPILERS if states[name] == "passed"]
    needed = [] if states["context"] == "passed" and compiled else ["context", *COMPILERS]
    work.part["blocked"] = "; ".join(_said(rows, needed, "failed") or _said(rows, needed, "skipped"))[:600]
    if needed and not work.part["blocked"]:
        work.part["blocked"] = late or "no compiler was tried"
    wrong = [name for name, state in states.items() if state == "failed"]
    work.judge(late, "; ".join(_said(rows, wrong, "failed")) if wrong else None)


def _said(rows: dict[str, dict[str, Any]], names: list[str], state: str) -> list[str]:
    found = {name: rows[name] for name in names if rows.get(name, {}).get("state") == state}
    return [f"{name}: {row['said']}" for name, row in found.items()]


def speed(work: Work) -> None:
    """Times by the device's clock, registers, the same bits again."""
    project = work.settings.project
    reason = _measure(work, "speed", ["--project", project] if project else [])
    _judge(work, "speed", reason)


def xla(work: Work) -> None:
    """XLA on the same cases."""
    if work.settings.xla is None:
        return work.skip("it is left out")
    if work.about.get("no_xla"):
        return work.skip(work.about["no_xla"])
    reason = _measure(work, "xla", ["--xla", work.settings.xla], silence=_XLA)
    return _judge(work, "xla", reason)


def accuracy(work: Work) -> None:
    """Results beside the numpy reference's, of some cases at the same time: most of it is the host's."""
    reason = _measure(work, "accuracy", [], processes=work.settings.processes)
    _judge(work, "accuracy", reason)


def _measure(work: Work, what: str, options: list[str], **how: Any) -> str | None:
    """Run `measure` on the cases that have run at all; returns why not all were finished.

    Args:
        work: of the part.
        what: of `measure`.
        options: of `measure`.
        how: of `Work.collect`.
    """
    settings = work.settings
    size = settings.size or work.about.get("size", _USUAL_SIZE)
    findings = work.findings(work.cases, what)
    given = ["--backend", work.backend, "--size", size, "--repeats", settings.repeats, *options, what]
    # What crashed or hung would do so again. That XLA did says nothing.
    good = [n for n in work.wanted() if not work.cases.get(n, {}).get("failed", "").startswith("speed: ")]

    def command(pending: list[str]) -> list[str]:
        return main_command("measure", *given, *pending)

    return work.collect(command, good, findings, **how)


def _judge(work: Work, what: str, reason: str | None) -> None:
    """By the targets that this part decides, and the cases that failed in it."""
    missed = [t.name for t in targets(work.cases, work.about) if t.part == what and t.met is False]
    failed = [n for n, found in work.cases.items() if f"{what}: " in found.get("failed", "")]
    wrong = [f"missed: {'; '.join(missed)}"] if missed else []
    wrong += [f"failed: {', '.join(failed)}"] if failed else []
    work.judge(reason, "; ".join(wrong))


def tests(work: Work) -> None:
    """The tests that need a device: some at a time, those that must have it alone one after the other."""
    if not TESTS.is_dir():
        return work.skip("there is no tests/gpu")
    results = work.part.setdefault("tests", {})
    findings = work.findings(results)
    limits = Limits(work.until, _TEST * work.settings.patience)
    try:
        listed = list(lines_of(main_command("testing", "--list", TESTS), limits, work.settings.environment))
    except Stopped as stop:
        return work.judge(LATE) if stop.is_late else work.judge(None, str(stop))
    alone: dict[str, bool] = json.loads(listed[0])["about"]["tests"]

    def command(pending: list[str]) -> list[str]:
        return main_command("testing", TESTS, *pending)

    reasons = [
        work.collect(command, [n for n, a in alone.items() if a is is_alone], findings, processes, _TEST)
        for is_alone, processes in ((False, work.settings.processes), (True, 1))
    ]
    failed = [name for name, found in results.items() if "failed" in found]
    counts = {
        state: sum(r.get("outcome") == state for r in results.values()) for state in ("passed", "skipped")
    }
    said = ", ".join(
        f"{count} {state}" for state, count in {**counts, "failed": len(failed)}.items() if count
    )
    work.judge(next(filter(None, reasons), None), f"{said}: {', '.join(failed)}" if failed else None)
    if work.part["state"] == "passed":
        work.part.update(state="passed" if counts["passed"] else "skipped", reason=said or "there is none")
    return None


def fuzz(work: Work) -> None:
    """Random fusions, as many as time allows."""
    batches = work.part.setdefault("batches", {})
    findings = work.findings(batches)
    numbers = [str(n) for n in range(work.settings.batches)]

    def command(pending: list[str]) -> list[str]:
        return main_command("fuzz", "--backend", work.backend, *pending)

    reason = work.collect(command, numbers, findings)
    failed = {n: b["failed"] for n, b in batches.items() if "failed" in b}
    fusions = sum(batch.get("fusions", 0) for batch in batches.values())
    differing = {n: b["differing"] for n, b in batches.items() if b.get("differing")}
    work.part.update(fusions=fusions, differing=differing)
    wrong = f"of {fusions} fusions results in {len(differing)} batches differ; {len(failed)} batches failed"
    wrong += "".join(f"; {n}: {why}" for n, why in list(failed.items())[:1])
    # Being out of time is how this part ends.
    work.judge(None if fusions else reason, wrong if differing or failed else None)
    if work.part["state"] == "passed":
        work.part["reason"] = f"{fusions} fusions, equal to the bit"
