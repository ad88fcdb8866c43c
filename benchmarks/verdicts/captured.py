"""Legal pairs as a user has them: a dump of both texts, and what XLA really returned, given with `--outputs`.

The result is judged by itself, and inherits the verdict on the last stage where that gives the same.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.verdicts.judge import PairVerdict
from benchmarks.verdicts.legal import Failure, Pair, legal_pairs
from benchmarks.verdicts.peers import BOUNDS, passes
from benchmarks.verdicts.programs import Subject
from benchmarks.verdicts.records import LegalRecord
from benchmarks.verdicts.runs import Runs
from hlotool.inputs.given import npz_bytes
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.records import REALITY, ModuleRecord
from hlotool.runs.run import replay_module
from hlotool.runs.task import Task
from hlotool.sources.directory import open_dump


def captured_pairs(subject: Subject, runs: Runs, other_python: str, seed: int) -> Iterator[LegalRecord]:
    """Everything that XLA returned for a program, judged beside its dump of both texts, if there are."""
    if not subject.optimized:
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for stage, text in (("before", subject.text), ("cpu_after", subject.optimized)):
            (folder / f"module_0000.program.{stage}_optimizations.txt").write_text(text, encoding="utf-8")
        for pair in legal_pairs(subject, runs, other_python, seed):
            if isinstance(pair, Pair) and pair.tested is None and pair.way != "xla vs xla":
                verdict = _judged(folder, pair)
                yield LegalRecord(subject.name, f"captured: {pair.way}", pair.detail, pair.case.seed, verdict)
            elif isinstance(pair, Failure):
                yield LegalRecord(subject.name, f"captured: {pair.way}", pair.detail, 0, None, pair.reason)


def _judged(folder: Path, pair: Pair) -> PairVerdict:
    inputs, outputs = folder / "inputs.npz", folder / "outputs.npz"
    inputs.write_bytes(npz_bytes(pair.case.arguments))
    outputs.write_bytes(npz_bytes(pair.actual))
    (module,) = open_dump(folder).modules
    options = ReplayOptions(inputs=str(inputs), outputs=str(outputs), first_divergence=False)
    began = time.perf_counter()
    row = _result(replay_module(Task(module, options)))
    evidence = [leaf.evidence for leaf in row.leaves if leaf.evidence is not None]
    return PairVerdict(
        verdict=row.verdict.value,
        reason=row.reason,
        leaves=[leaf.verdict.value for leaf in row.leaves],
        patterns=[e.pattern for e in evidence if e.pattern],
        members=max((e.members for e in evidence), default=0),
        seconds=time.perf_counter() - began,
        run_seconds=0.0,
        plan_seconds=0.0,
        peers=[name for name, bounds in BOUNDS.items() if passes(pair.expected, pair.actual, bounds)],
    )


def _result(rows: Sequence[ModuleRecord]) -> ModuleRecord:
    """The row of what was returned; the one that says why there is none."""
    return next((row for row in rows if row.stage_tested == REALITY), rows[-1])
