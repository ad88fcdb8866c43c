"""From a program that failed to a report, without a person.

A failure is asked for again in a fresh process, made small, blamed on a pass or on code of the compiler,
compared with known faults and with earlier ones, written as a bundle, and the bundle is run. Each stage has
its time; one that comes to nothing is a line in the record, and the program that failed is kept in any case.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from hlotool.blame.bisection.compiler import without
from hlotool.blame.bisection.records import Verification
from hlotool.blame.reduction.case import Case, write_case
from hlotool.blame.reduction.case_worker import CaseOutcome
from hlotool.blame.reduction.oracle import BackendJudge, CaseOracle
from hlotool.blame.reduction.reducer import Loaded, Reduction, load_case, reduce_loaded
from hlotool.blame.repro.bundle import write_bundle
from hlotool.blame.repro.making import bundle_of
from hlotool.blame.repro.verify import verify
from hlotool.blame.steps import Steps
from hlotool.errors import BackendFailed, HlotoolError, UsageError
from hlotool.interface.report.lab_records import FailureRecord, FaultRecord, Kind
from hlotool.ir.module import Module
from hlotool.judge.failures import Signature
from hlotool.judge.verdicts import Answer
from hlotool.lab.fuzz.attribution import (
    Blame,
    LimitedJudge,
    blame_death,
    blame_dump,
    blame_wrong,
    fault_bundle,
)
from hlotool.lab.fuzz.confirmation import (
    EQUAL,
    asked_again,
    by_the_draw,
    confirmed,
    function_of,
    kind_of,
    relation_of,
)
from hlotool.lab.fuzz.known import (
    KnownFault,
    alike,
    described_fault,
    families_of,
    first_known,
    is_same,
    opcodes_of,
    say_the_same,
)
from hlotool.parser.reader import parse_module
from hlotool.runs.options.kept import PRELOAD, RunOptions
from hlotool.runs.task import Task
from hlotool.system.executor import Limits
from hlotool.system.pool import Pool

#: What a worker calls to run a bundle again.
VERIFY = "hlotool.lab.fuzz.triage:verify_bundle"

_SAME_FUNCTION = "what the passes make is mathematically equivalent: a tie, or digits that are lost, decide"


@dataclass(frozen=True, slots=True)
class Settings:
    """What all failures of a campaign are looked into with.

    Attributes:
        options: seed and limits.
        folder: of the campaign; bundles are made in `faults/`.
        known: faults that are known.
        versions: of everything that takes part, for reports.
        width: processes.
        seconds: that making small, and blaming, may take each.
        replays: passes are accused by replay alone, and a further case of a fault is recognised by what the
            accused pass was given, not by what a backend does without the pass.
    """

    options: RunOptions
    folder: Path
    known: Sequence[KnownFault] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    width: int = 1
    seconds: float = 90.0
    replays: bool = False


@dataclass(slots=True)
class Triage:
    """Looks into failures, one after the other.

    Attributes:
        settings: see there.
        faults: what was found so far, duplicates and known ones included.
        reached: passes that changed programs of the campaign.
    """

    settings: Settings
    faults: list[FaultRecord] = field(default_factory=list)
    reached: list[str] = field(default_factory=list)

    def look_into(self, failure: FailureRecord, dump: Task | None = None) -> FaultRecord:
        """What a failure is; never raises for what a program does.

        Args:
            failure: a program that failed.
            dump: of the compilation whose result is wrong, where no backend is in question.
        """
        began = time.perf_counter()
        try:
            found = self._fault(failure) if dump is None else self._fault_of_dump(failure, dump)
        except (HlotoolError, RecursionError, MemoryError) as error:
            found = _raw(failure, "unconfirmed", [f"{type(error).__name__}: {error}"])
        found = msgspec.structs.replace(found, seconds=time.perf_counter() - began)
        self.faults.append(found)
        self.recount()
        return found

    @property
    def distinct(self) -> list[FaultRecord]:
        """Faults of their own."""
        return [fault for fault in self.faults if fault.status == "new"]

    def recount(self) -> None:
        """Count duplicates with the faults that they are other cases of, after faults were added."""
        more = Counter(fault.duplicate_of for fault in self.faults if fault.duplicate_of)
        self.faults = [
            msgspec.structs.replace(fault, count=1 + more[fault.number]) if fault.number else fault
            for fault in self.faults
        ]

    def _fault(self, failure: FailureRecord) -> FaultRecord:
        options = self._options(failure)
        loaded = load_case(failure.program, options)
        if failure.cured and (found := self._by_likeness(failure, loaded.case, options)):
            return found  # The worker that judged it has asked all there is to ask.
        if found := self._by_replay(failure, loaded.case, options):
            return found
        failure, outcome = confirmed(failure, loaded.case, options)
        if kind_of(outcome) != failure.kind:
            said = outcome.reason or outcome.answer.value
            return _raw(failure, "unconfirmed", [f"not a second time, in a fresh process: {said}"])
        if said := by_the_draw(loaded.case, options, failure.kind):
            return _raw(failure, "unconfirmed", [said])
        reason = outcome.reason
        if found := self._by_likeness(failure, loaded.case, options):
            return msgspec.structs.replace(found, reason=reason)
        problems: list[str] = []
        reduction, last = self._reduced(loaded, options, failure.kind, problems)
        case = reduction.case if reduction is not None else loaded.case
        if reduction is not None and (said := by_the_draw(case, options, failure.kind)):
            return _raw(failure, "unconfirmed", [f"what is left of it: {said}"])
        blame = self._blamed(case, failure, outcome.failure or Signature(kind=failure.kind), options)
        problems += blame.problems
        described = msgspec.structs.replace(
            described_fault(failure, outcome, blame, opcodes_of(case.module)),
            signature=str(last.row.signature if last.row is not None else last.failure or failure.kind),
            reason=last.reason or reason,
            instructions=case.size,
            before=loaded.case.size,
            problems=problems,
        )
        families = families_of(case.module, described.work)
        described = msgspec.structs.replace(described, families=families)
        if (relation := relation_of(case, options, blame)) == EQUAL:
            return msgspec.structs.replace(described, status="excused", problems=[*problems, _SAME_FUNCTION])
        if relation:
            blame.evidence.append(f"in exact arithmetic the two stages are {relation}")

        def bundled(fault: FaultRecord, folder: Path) -> None:
            versions = self.settings.versions
            write_bundle(fault_bundle(fault, case, reduction, blame, last, options, versions), folder)
            write_case(case, str(folder / "smallest.hlo"))

        return self._identified(described, case.module.to_text(), bundled, options)

    def _fault_of_dump(self, failure: FailureRecord, dump: Task) -> FaultRecord:
        """A wrong compilation whose dump is there: the passes are accused by their stages."""
        blame = Blame()
        if failure.kind == "wrong":
            blame = blame_dump(dump, self.settings.seconds)
            if blame.culprit is None:
                return _raw(failure, "unconfirmed", blame.problems)
        culprit = blame.culprit
        spot = culprit.spot if culprit is not None else None
        text = (spot.before or spot.after) if spot is not None else ""
        module = parse_module(text) if text else None
        opcodes = opcodes_of(module) if module is not None else list(culprit.opcodes if culprit else ())
        outcome = CaseOutcome(answer=Answer.BAD, failure=failure.failure)
        described = described_fault(failure, outcome, blame, opcodes)
        described = msgspec.structs.replace(
            described,
            program=failure.origin,
            signature=culprit.signature if culprit is not None else str(failure.failure),
            families=families_of(module, described.work) if module is not None else [],
            instructions=len(spot.instructions) if spot is not None else 0,
            problems=blame.problems,
        )

        def bundled(fault: FaultRecord, folder: Path) -> None:
            made = bundle_of(culprit, self.settings.options, self.settings.versions) if culprit else None
            if made is None:
                raise UsageError("nothing small enough to be run again was cut out")
            write_bundle(made, folder)

        return self._identified(described, text, bundled, self.settings.options)

    def _options(self, failure: FailureRecord) -> RunOptions:
        inputs = Path(failure.program).with_suffix(".npz")
        return msgspec.structs.replace(
            self.settings.options,
            backend=failure.backend,
            reference=failure.reference,
            inputs=str(inputs) if inputs.is_file() else None,
        )

    def _identified(
        self,
        fault: FaultRecord,
        text: str,
        bundled: Callable[[FaultRecord, Path], None],
        options: RunOptions,
    ) -> FaultRecord:
        """The fault as a known one, another case of an earlier one, or one of its own, with a bundle."""
        known = first_known(self.settings.known, fault, text)
        same = next((f for f in self.faults if f.status in ("new", "known") and is_same(f, fault)), None)
        if known is not None:
            number = same.number if same is not None and same.status == "known" else 0
            return msgspec.structs.replace(
                fault,
                status="duplicate" if number else "known",
                number=0 if number else self._next(),
                duplicate_of=number,
                known=known.name,
                link=known.link,
            )
        if same is not None:
            return msgspec.structs.replace(
                fault, status="duplicate", duplicate_of=same.number, known=same.known, link=same.link
            )
        number = self._next()
        name = re.sub(r"[^\w.+=-]+", "-", f"{number:02d}-{fault.kind}-{fault.pass_name or fault.level}")
        folder = self.settings.folder / "faults" / name.rstrip("-")
        problems = list(fault.problems)
        triggers = False
        try:
            bundled(fault, folder)
            triggers = _verified(folder, options, problems)
        except HlotoolError as error:
            problems.append(f"bundle: {error}")
        return msgspec.structs.replace(
            fault, number=number, bundle=str(folder), triggers=triggers, problems=problems
        )

    def _next(self) -> int:
        return 1 + max((fault.number for fault in self.faults), default=0)

    def cures(self, module: Module) -> tuple[str, ...]:
        """The backend without what makes each frequent fault whose operations are all in a program."""
        backend = self.settings.options.backend
        found = alike(self.faults, "wrong", backend, module)
        return tuple(dict.fromkeys(without(backend, f.cure) for f in found if f.cure))

    def _by_likeness(self, failure: FailureRecord, case: Case, options: RunOptions) -> FaultRecord | None:
        """A failure that looks like a frequent fault: its operations are there, and so is the cure.

        A death says the same besides; where no pass is accused of it, there is no cure to try.
        """
        died = _says(failure)
        if self.settings.replays and not died:
            return None
        for fault in alike(self.faults, failure.kind, failure.backend, case.module):
            if (died and not say_the_same(fault.signature, died)) or not (died or fault.cure):
                continue
            cure = without(options.backend, fault.cure)
            if fault.cure and failure.cured != cure:
                cured = msgspec.structs.replace(options, backend=cure)
                if asked_again(case, cured, failure.kind).answer is not Answer.GOOD:
                    continue
            found = _raw(failure, "duplicate", ["not made small: it looks like a fault that is frequent"])
            return msgspec.structs.replace(
                found, key=fault.key, duplicate_of=fault.number, known=fault.known, link=fault.link
            )
        return None

    def _by_replay(self, failure: FailureRecord, case: Case, options: RunOptions) -> FaultRecord | None:
        """A failure whose passes, replayed, do what an earlier fault is: it need not be made small."""
        if not self.settings.replays or failure.kind != "wrong" or not self.faults:
            return None
        blame = self._blamed(case, failure, Signature(kind=failure.kind), options, compilations=1)
        found = described_fault(failure, CaseOutcome(answer=Answer.BAD), blame, ())
        if blame.level != "pass" or not found.work:
            return None
        same = next((f for f in self.faults if f.status in ("new", "known") and is_same(f, found)), None)
        if same is None:
            return None
        return msgspec.structs.replace(
            found, status="duplicate", duplicate_of=same.number, known=same.known, link=same.link
        )

    def _reduced(
        self, loaded: Loaded, options: RunOptions, kind: Kind, problems: list[str]
    ) -> tuple[Reduction | None, CaseOutcome]:
        """The smallest program that was found to fail in the same way, and how it fails."""
        limits = Limits(self.settings.width, options.timeout, options.memory_limit)
        with Pool(limits, PRELOAD, options.backend) as pool:
            judge = BackendJudge(pool, options, self.settings.width, function_of(kind))
            limited = LimitedJudge(judge, self.settings.seconds)
            oracle = CaseOracle(limited, Steps(), repeats=1)
            try:
                found = reduce_loaded(loaded, oracle)
            except HlotoolError as error:
                problems.append(f"reduction: {error}")
                return None, oracle.outcome(loaded.case, "the whole program")
            if limited.is_over:
                problems.append(f"reduction: not done after {self.settings.seconds:.0f} s")
            return found, oracle.outcome(found.case, "what is left")

    def _blamed(
        self, case: Case, failure: FailureRecord, how: Signature, options: RunOptions, compilations: int = 0
    ) -> Blame:
        seconds = self.settings.seconds
        if failure.kind == "wrong":
            name = f"{failure.index:06d}{'.whole' if compilations else ''}.hlo"
            path = self.settings.folder / "work" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_case(case, str(path))
            inputs = path.with_suffix(".npz") if case.arguments else None
            rest = {"compilations": compilations} if compilations else {}
            return blame_wrong(path, inputs, options, seconds, not self.settings.replays, **rest)
        if failure.kind in ("crashed", "hang"):
            return blame_death(case, how, options, self.reached, seconds, not self.settings.replays)
        return Blame(problems=["runs that differ are blamed on no pass"])


def verify_bundle(asked: tuple[str, str]) -> Verification:
    """Run the bundle in a folder on a backend; called in a worker, for it may take the process down."""
    return verify(Path(asked[0]), asked[1], trust=True)


def _says(failure: FailureRecord) -> str:
    """How a failure died, as the records of faults say it; empty where it did not."""
    return str(failure.failure) if failure.kind in ("crashed", "hang") and failure.failure else ""


def _verified(folder: Path, options: RunOptions, problems: list[str]) -> bool:
    """Whether the bundle fails in the same way when it is run in a fresh process."""
    with Pool(Limits(1, 2 * options.timeout, options.memory_limit), PRELOAD, options.backend) as pool:
        # A bundle does not say where it was found: another interpreter has another compiler.
        [end] = pool.call_all(VERIFY, [(str(folder), options.backend)])
    if isinstance(end.value, BackendFailed):
        problems.append(f"repro verify: {end.value}")
        return False
    found = msgspec.msgpack.decode(end.value, type=Verification)
    if not found.fails or not found.same:
        problems.append(f"repro verify: {found.found or found.reason or 'it does not fail'}")
    return found.fails is True and found.same


def _raw(failure: FailureRecord, status: str, problems: list[str]) -> FaultRecord:
    """The record of a failure of which no more is known than that."""
    return msgspec.convert(
        {
            "status": status,
            "kind": failure.kind,
            "title": f"{failure.kind}: {failure.reason}"[:200],
            "signature": str(failure.failure or failure.kind),
            "reason": failure.reason,
            "backend": failure.backend,
            "program": failure.program,
            "index": failure.index,
            "problems": problems,
        },
        FaultRecord,
    )
