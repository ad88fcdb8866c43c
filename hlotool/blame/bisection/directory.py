"""Many modules: which are healthy, wrong, or fail in the same way, and what made them so.

Also how far a module agrees that can neither be called healthy nor wrong, and bisection with the compiler
at hand: dumps made here, passes switched off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from hlotool.blame.bisection.compiler import Live, find_repairs, go_live
from hlotool.blame.bisection.culprits import Locator
from hlotool.blame.bisection.passes import Ends, ends_of
from hlotool.blame.bisection.records import BisectedModule, CulpritRecord, FlagsRecord
from hlotool.blame.bisection.stages import Question, StageOracle
from hlotool.judge.failures import Signature
from hlotool.judge.verdicts import AGREEING, DIFFERING, FAILED, Answer, Verdict
from hlotool.runs.records import ModuleRecord
from hlotool.runs.task import Task, unfinished_row


@dataclass(slots=True)
class Findings:
    """What the bisection of a directory came to.

    Attributes:
        modules: one entry per module that was searched, or of which nothing is established.
        healthy: names of the modules of which both ends are known and agree, and all that was to be judged.
        culprits: all that were found; where several modules fail in the same way, that of the smallest.
        comparisons: number of stages judged.
        unusable: number of steps that gave no answer: what crashed, and what cannot be judged.
        stages_only: some are healthy as far as their stages show; what they return is not known.
        notes: what was judged otherwise than the user asked for.
        flags: what the flags of the compiler have to do with each module, where that was the question.
    """

    modules: list[BisectedModule] = field(default_factory=list)
    healthy: list[str] = field(default_factory=list)
    culprits: list[CulpritRecord] = field(default_factory=list)
    comparisons: int = 0
    unusable: int = 0
    stages_only: bool = False
    notes: list[str] = field(default_factory=list)
    flags: list[FlagsRecord] = field(default_factory=list)

    def pass_over(self, row: ModuleRecord) -> None:
        """Note what holds no program that could be searched."""
        self.modules.append(
            BisectedModule(name=row.name, path=row.path, verdict=row.verdict.value, reason=row.reason)
        )


def bisect_directory(
    tasks: Sequence[Task],
    oracle: StageOracle,
    findings: Findings,
    exhaustive: bool = False,
    every_module: bool = False,
) -> None:
    """Find the modules that are wrong and what made them so.

    Args:
        tasks: the modules.
        oracle: judges their stages.
        findings: gets what is found, as it is found.
        exhaustive: look at every stage of every module, so that no fault that was repaired can hide.
        every_module: a culprit for each wrong module, also for those that fail in the same way.
    """
    directory = _Directory(oracle, findings, exhaustive)
    oracle.steps.listener.phase("modules", len(tasks))
    wrong: dict[str | Signature, list[Ends]] = {}
    for ends in ends_of(tasks, oracle):
        found = directory.settled(ends)
        if found is None:
            continue
        group: str | Signature = found.task.module.title
        if found.wrong is not None and not every_module:
            group = found.wrong.signature.elsewhere()
        wrong.setdefault(group, []).append(found)
    for alike in wrong.values():
        directory.search(alike)


@dataclass(slots=True)
class _Directory:
    """The bisection of a directory, on its way; the arguments of `bisect_directory`."""

    oracle: StageOracle
    findings: Findings
    exhaustive: bool

    def settled(self, ends: Ends) -> Ends | None:
        """The ends if there is something to search between them; otherwise what they show is noted."""
        if ends.task.options.exact and ends.stages is not None and (reason := ends.stages.exact_refusal):
            self.findings.notes.append(f"{ends.task.module.title}: judged by values alone: {reason}")
        if ends.wrong is not None or (self.exhaustive and len(ends.task.module.stages) > 1):
            return ends
        bracket = self._bracket(ends)
        if bracket is not None and bracket.is_wrong:
            return replace(ends, stages=bracket.row, stop=bracket.stop)
        found = BisectedModule(
            name=ends.task.module.title,
            path=ends.task.path,
            verdict="not compared",
            stages=len(ends.task.module.stages),
            judged=sum(row.verdict in AGREEING | DIFFERING for row in ends.rows) + (bracket is not None),
        )
        self._note(ends, found, bracket)
        return None

    def search(self, alike: Sequence[Ends]) -> None:
        """Search modules whose outputs are wrong in the same way, the smallest first."""
        known: list[CulpritRecord] = []
        try:
            for ends in sorted(alike, key=_size):
                self._search_one(ends, known)
        finally:
            self.findings.culprits += known

    def _search_one(self, ends: Ends, known: list[CulpritRecord]) -> None:
        """Search one module; its culprits join those in `known`, or become one of them."""
        self.oracle.steps.listener.phase(ends.task.module.title)
        hints = [(culprit.stage_before, culprit.stage) for culprit in known]
        found = Locator(ends, self.oracle, self.exhaustive, hints).run()
        if not found.culprits:
            self._note(ends, found, self._bracket(ends))
            return
        fresh = [one for one in found.culprits if not _joined(one, known)]
        known += fresh
        if fresh:
            self.findings.modules.append(msgspec.structs.replace(found, culprits=fresh))

    def _bracket(self, ends: Ends) -> Bracket | None:
        """How far the stages agree, where the last one neither agrees nor is wrong."""
        if ends.stages is None or ends.stages.verdict in AGREEING | DIFFERING:
            return None
        return find_bracket(ends.task, self.oracle.ask, self.oracle.steps.listener.left)

    def _note(self, ends: Ends, found: BisectedModule, bracket: Bracket | None) -> None:
        """Note a module without culprit: healthy if that is established, otherwise why it is not."""
        gaps = _gaps(ends.task) if self.exhaustive else []
        unusable = [*found.unusable, *gaps]
        if ends.agree and not ends.missing and not unusable:
            self.findings.healthy.append(found.name)
            self.findings.stages_only |= ends.result is None
            if ends.stages is not None and ends.stages.scaled is not None:
                sizes = ends.stages.scaled.text
                self.findings.notes.append(f"{found.name}: healthy with smaller sizes: {sizes}")
            return
        if ends.task.module.unfinished:
            self.findings.modules.append(_unfinished(ends, found))
            return
        row = ends.decisive
        reason = row.reason if row else ends.task.module.unpaired_reason
        if ends.agree:
            reason = ends.missing or f"the ends agree, but not every stage could be judged: {unusable[0]}"
        if bracket is not None:
            unusable = unusable or [f"{bracket.row.verdict.value}, {bracket.row.reason}"]
            reason = str(bracket)
        if ends.result is not None and ends.result.verdict in DIFFERING:
            reason = f"{reason}; what the program returned is wrong: {ends.result.reason}"
        self.findings.modules.append(
            msgspec.structs.replace(
                found, verdict=row.verdict.value if row else "not compared", reason=reason, unusable=unusable
            )
        )


def _unfinished(ends: Ends, found: BisectedModule) -> BisectedModule:
    """A module whose compilation did not finish, and how far its stages agree."""
    row = unfinished_row(ends.task)
    last = f"; right up to {ends.task.module.stages[-1].numbered}" if ends.agree else ""
    return msgspec.structs.replace(
        found, path=row.path, verdict=row.verdict.value, reason=f"{row.reason}{last}"
    )


def _joined(culprit: CulpritRecord, known: list[CulpritRecord]) -> bool:
    """Whether a known culprit is of the same kind; it then stands for this one, too."""
    kind = _kind(culprit)
    for number, other in enumerate(known):
        if kind is not None and kind == _kind(other) and culprit.module != other.module:
            known[number] = msgspec.structs.replace(other, others=[*other.others, culprit.module])
            return True
    return False


def _kind(culprit: CulpritRecord) -> tuple[object, ...] | None:
    """What two culprits must share to be one: pass, stages, source, operations and pattern.

    Of a culprit whose source is not known that cannot be said: None.
    """
    source, row = culprit.source, culprit.comparison
    if source is None or row is None or not (source.file or source.op_name):
        return None
    wrong = [leaf for leaf in row.leaves if leaf.verdict in DIFFERING]
    return (
        (culprit.level, culprit.pass_name, culprit.pipeline, culprit.stage_before, culprit.stage),
        (source.file, source.file_line) if source.file else source.op_name,
        tuple(culprit.opcodes),
        row.signature.elements,
        tuple(dict.fromkeys(leaf.evidence.pattern for leaf in wrong if leaf.evidence)),
    )


def _gaps(task: Task) -> list[str]:
    """Numbers of stages that the dump lacks: XLA leaves no gaps, and begins anew in a renumbered module."""
    numbers = [stage.sequence for stage in task.module.stages if stage.sequence is not None]
    found: list[int] = []
    expected = 0
    for number in numbers:
        found += range(0 if number < expected else expected, number)
        expected = number + 1
    return [f"{n:04d}: not in the dump" for n in found]


def _size(ends: Ends) -> int:
    return len(ends.task.module.stages[0].source.read_bytes())


# How far a module agrees that can neither be called healthy nor wrong.


@dataclass(frozen=True, slots=True)
class Bracket:
    """The two stages between which a module stops to agree.

    Attributes:
        task: the module.
        good: number of a stage that agrees with the first one.
        stop: number of a later stage that does not; the next one, unless it is wrong.
        row: what is said of it.
    """

    task: Task
    good: int
    stop: int
    row: ModuleRecord

    @property
    def is_wrong(self) -> bool:
        """A wrong stage was met on the way: there is something to search after all."""
        return self.row.verdict.answer is Answer.BAD

    def __str__(self) -> str:
        stages = self.task.module.stages
        return f"right up to {stages[self.good].numbered}, from {stages[self.stop].numbered} on {self._why}"

    @property
    def _why(self) -> str:
        verdict = self.row.verdict
        if verdict in FAILED or verdict in (Verdict.UNSUPPORTED, Verdict.BAD_INPUT):
            return f"it cannot be run: {self.row.reason}"
        return f"{verdict.value}: {self.row.reason}"


def find_bracket(
    task: Task,
    ask: Callable[[Question, str], ModuleRecord],
    left: Callable[[int], None] = lambda points: None,
) -> Bracket | None:
    """Halve the history of a module whose last stage does not agree; None when the first one cannot be run.

    Args:
        task: a module of several stages.
        ask: judges a stage.
        left: called with the number of open stages before each halving.
    """

    def judged(number: int) -> ModuleRecord:
        return ask(Question(task, number), task.module.stages[number].numbered)

    low, high = 0, len(task.module.stages) - 1
    if judged(low).verdict not in AGREEING:
        return None
    row = judged(high)
    while high - low > 1 and row.verdict.answer is not Answer.BAD:
        middle = (low + high) // 2
        left(high - low - 1)
        found = judged(middle)
        if found.verdict in AGREEING:
            low = middle
        else:
            high, row = middle, found
    return Bracket(task, low, high, row)


#: Runs of each compiled program, to see whether they differ.
REPEATS = 3


@dataclass(slots=True)
class Compiler:
    """Compiles modules and asks what they become without some passes.

    Attributes:
        backend: its spec.
        root: folder for dumps.
        oracle: whose workers work.
        repeats: runs of each compiled program.
        switches_off: ask what becomes of a culprit without some passes.
    """

    backend: str
    root: Path
    oracle: StageOracle
    repeats: int = REPEATS
    switches_off: bool = True
    _lives: dict[str, Live] = field(default_factory=dict)

    def bisect(
        self,
        tasks: Sequence[Task],
        findings: Findings,
        exhaustive: bool = False,
        every_module: bool = False,
    ) -> None:
        """As `bisect_directory`, on dumps that are made here, and with what switching off passes does."""
        self.oracle.steps.listener.phase(f"compile on {self.backend}", len(tasks))
        dumps: list[Task] = []
        for task in tasks:
            live = go_live(task, self.backend, self.root, self.oracle, self.repeats)
            if live.task is None:
                findings.modules.append(_not_compiled(live))
                continue
            if live.record.error:
                findings.modules.append(_not_compiled(live))
            if live.record.results > 1:
                findings.culprits.append(_flaky(live))
            self._lives[live.task.module.title] = live
            dumps.append(live.task)
        known = len(findings.culprits)
        bisect_directory(dumps, self.oracle, findings, exhaustive, every_module)
        found = findings.culprits[known:]
        findings.culprits[known:] = [self._confirmed(culprit) for culprit in found]
        findings.modules = [self._renamed(module) for module in findings.modules]
        doubtful = {*(m.name for m in findings.modules), *(c.module for c in findings.culprits)}
        names = map(self._origin, findings.healthy)
        findings.healthy = [name for name in names if name not in doubtful]

    def _origin(self, name: str) -> str:
        """The name of the module that was asked for, of a dump made here."""
        return self._lives[name].origin.module.title if name in self._lives else name

    def _renamed(self, module: BisectedModule) -> BisectedModule:
        culprits = [msgspec.structs.replace(c, module=self._origin(c.module)) for c in module.culprits]
        return msgspec.structs.replace(module, name=self._origin(module.name), culprits=culprits)

    def _confirmed(self, culprit: CulpritRecord) -> CulpritRecord:
        """The culprit with what switching passes off does to it."""
        live = self._lives[culprit.module]
        assert live.task is not None
        culprit = msgspec.structs.replace(
            culprit,
            module=live.origin.module.title,
            others=[self._origin(name) for name in culprit.others],
        )
        if not self.switches_off:
            return culprit
        self.oracle.steps.listener.phase("switch passes off")
        repairs = find_repairs(live.origin, live.task.module, self.backend, culprit.pass_name, self.oracle)
        return msgspec.structs.replace(
            culprit,
            evidence=[*culprit.evidence, *repairs.evidence(culprit.pass_name)],
            repaired_without=[list(names) for names in repairs.sets],
        )


def _not_compiled(live: Live) -> BisectedModule:
    return BisectedModule(
        name=live.origin.module.title,
        path=live.origin.path,
        verdict="crashed" if live.record.folder else "unsupported",
        reason=live.record.error or "no dump was written",
    )


def _flaky(live: Live) -> CulpritRecord:
    """The same arguments gave different results."""
    record = live.record
    found = record.origin
    return CulpritRecord(
        module=live.origin.module.title,
        level="flaky",
        stage="result",
        signature=f"{record.results} different results in {record.runs} runs",
        instructions=found.instructions if found else [],
        opcodes=[found.source.opcode] if found else [],
        source=found.source if found else None,
        confirmed=True,
        evidence=[
            "the program and its arguments were the same in all runs, to the bit",
            *(found.notes if found else ()),
        ],
    )
