"""A campaign: programs are drawn, judged and counted in rounds; between rounds what failed is looked into."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from hlotool.errors import BackendFailed, BackendTimeout, UsageError
from hlotool.interface.report.fuzz_progress import Listener
from hlotool.interface.report.lab_records import FailureRecord, FaultRecord, Kind, Tally
from hlotool.lab.fuzz.guidance import Guidance
from hlotool.lab.fuzz.oracle import FAILURES, FUNCTION, Judged, Question
from hlotool.lab.fuzz.programs import Drawn, Source
from hlotool.lab.fuzz.triage import Triage
from hlotool.runs.options.kept import RunOptions
from hlotool.system.cache import Journal
from hlotool.system.executor import Done, Executor
from hlotool.system.paths import write_file, writing

#: What is data in a message: names, numbers, texts that are quoted.
_DATA = re.compile(r"%[\w.-]+|'[^']*'|\"[^\"]*\"|(?<!aot:)\b\w*\d[\w.]*")
#: Reasons that are told apart; more would be data that is not recognised as such.
_MOST_REASONS = 200
#: Characters of a reason.
_LONGEST = 160


def counted(tally: Tally, origin: str, words: Iterable[str], judged: Judged) -> Tally:
    """The counts of a campaign and one more program."""
    is_run = judged.kind not in ("refused", "unjudged")
    return msgspec.structs.replace(
        tally,
        drawn=tally.drawn + 1,
        kinds=_and_one(tally.kinds, judged.kind),
        origins=_and_one(tally.origins, origin),
        refused=_and_reason(tally.refused, judged, "refused"),
        unjudged=_and_reason(tally.unjudged, judged, "unjudged"),
        passes=sorted({*tally.passes, *judged.passes}),
        words=sorted({*tally.words, *words}) if is_run else tally.words,
    )


def _and_one(counts: Mapping[str, int], name: str) -> dict[str, int]:
    return {**counts, name: counts.get(name, 0) + 1}


def _and_reason(counts: dict[str, int], judged: Judged, kind: Kind) -> dict[str, int]:
    if judged.kind != kind:
        return counts
    reason = _DATA.sub("·", " ".join(judged.reason.split()))[:_LONGEST]
    return _and_one(counts, reason if reason in counts or len(counts) < _MOST_REASONS else "other reasons")


#: Seconds of a round: a crash of this process costs one, and a failure waits so long at most.
_ROUND = 30.0
#: Of the time until now, what looking into failures may take: a frequent fault must not stop the search for
#: others.
_TRIAGE_SHARE = 0.5
#: Seconds that one failure takes to look into, as a rule: what is left for them when the time ends.
_EACH = 45.0
#: Of the whole time, what is kept for them at most.
_KEPT = 0.3
#: One program in so many is compiled with a dump, which shows the passes that changed it.
_DUMPED = 8
#: One in so many is given to the backend in another set-up, too.
_VARIED = 4


# Everything lies in one folder. `campaign.jsonl` is the journal, from which the same command goes on; `raw/`
# has every program that failed, `faults/` a bundle for each distinct fault, `refused/` and `unjudged/` what
# could not be judged. An end by force costs one round.


@dataclass(frozen=True, slots=True)
class Plan:
    """What a campaign is.

    Attributes:
        options: reference, backend, seed, limits.
        folder: of the campaign.
        minutes: it may take, all its calls together; None for no limit.
        programs: to judge; 0 for no limit.
        integers: only programs without floats.
        devices: that programs are for.
        variants: specs of the backend in other set-ups, which take turns.
    """

    options: RunOptions
    folder: Path
    minutes: float | None = None
    programs: int = 0
    integers: bool = False
    devices: int = 1
    variants: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """It may take."""
        return float("inf") if self.minutes is None else 60.0 * self.minutes

    @property
    def key(self) -> dict[str, Any]:
        """What another call has to share to go on with this campaign."""
        options = self.options
        return {
            "backend": options.backend,
            "reference": options.reference,
            "seed": options.seed,
            "integers": self.integers,
            "devices": self.devices,
        }


@dataclass(slots=True)
class Campaign:
    """A campaign on its way.

    Attributes:
        plan: what it is.
        source: draws programs.
        executor: judges them.
        triage: looks into failures.
        listener: receives the progress.
        tally: the counts, those of earlier calls included.
        guidance: what was reached, and what is drawn more often for it.
        waiting: failures that were not looked into yet.
        notes: what went wrong in hlotool itself.
    """

    plan: Plan
    source: Source
    executor: Executor
    triage: Triage
    listener: Listener
    tally: Tally = field(default_factory=Tally)
    guidance: Guidance = field(default_factory=Guidance)
    waiting: list[FailureRecord] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)
    _journal: Journal = field(init=False)
    _before: float = 0.0
    _began: float = field(default_factory=time.monotonic)
    _looked: float = 0.0

    def __post_init__(self) -> None:
        self._journal = Journal(self.plan.folder / "campaign.jsonl")

    def run(self, resume: bool = True) -> None:
        """Judge programs and look into failures until the time is over or the programs are judged.

        Raises:
            UsageError: the folder holds another campaign, or cannot be written.
        """
        if resume:
            self._recall()
        else:
            self._journal.remove()
        with writing(self.plan.folder):
            self.plan.folder.mkdir(parents=True, exist_ok=True)
        self._journal.add("plan", self.plan.key)
        try:
            while self._is_open():
                self._round()
                self._look(self._before + _TRIAGE_SHARE * self._elapsed)
                self._save()
            self._look(float("inf"))
        finally:
            self._save()
            self._journal.close()
            if self._journal.problem:
                self.notes[self._journal.problem] = 1

    @property
    def _elapsed(self) -> float:
        """Seconds of all calls until now."""
        return self._before + time.monotonic() - self._began

    def _is_open(self) -> bool:
        """Whether another round is to be drawn."""
        limit = self.plan.seconds
        kept = min(_EACH * len(self.waiting), _KEPT * limit) if self.waiting else 0.0
        is_done = bool(self.plan.programs) and self.tally.drawn >= self.plan.programs
        return not is_done and self._elapsed + kept < limit

    def _recall(self) -> None:
        """Take up what an earlier call has left."""
        known = self._journal.read()
        if not known:
            return
        if known.get("plan", self.plan.key) != self.plan.key:
            raise UsageError(
                f"{self.plan.folder}: another campaign lies there: {known['plan']}; "
                "take another --out, or --no-resume to begin anew"
            )
        if "state" in known:
            self.tally = msgspec.convert(known["state"], Tally)
            self._before = self.tally.seconds
            self._looked = self.tally.looked
        if self._guidance_file.is_file():
            try:
                self.guidance = Guidance.from_json(self._guidance_file.read_text(encoding="utf-8"))
            except ValueError as error:
                self.notes[f"{self._guidance_file}: {error}; nothing guides what is drawn"] = 1
            self.source.tell(self.guidance.weights, self.guidance.modules)
        faults = {key: value for key, value in known.items() if key.startswith("fault ")}
        self.triage.faults += [msgspec.convert(value, FaultRecord) for value in faults.values()]
        self.triage.recount()
        self.triage.reached += self.tally.passes
        done = {key.partition(" ")[2] for key in faults}
        self.waiting += [
            msgspec.convert(value, FailureRecord)
            for key, value in known.items()
            if key.startswith("failure ") and key.partition(" ")[2] not in done
        ]

    def _save(self) -> None:
        self.tally = msgspec.structs.replace(self.tally, seconds=self._elapsed, looked=self._looked)
        write_file(str(self._guidance_file), [self.guidance.to_json().encode("utf-8")])
        self._journal.add("state", msgspec.to_builtins(self.tally))

    @property
    def _guidance_file(self) -> Path:
        return self.plan.folder / "guidance.json"

    def _round(self) -> None:
        """Draw and judge programs for a while."""
        end = time.monotonic() + min(_ROUND, max(1.0, self.plan.seconds - self._elapsed))
        drawn: list[Drawn] = []

        def questions() -> Iterator[Question]:
            first = self.tally.drawn
            while time.monotonic() < end and self._wants(first + len(drawn)):
                one = self.source.draw(first + len(drawn))
                drawn.append(one)
                yield self._question(one)

        tally = self.tally
        for event in self.executor.run(FUNCTION, questions()):
            if isinstance(event, Done):
                one = drawn[event.index]
                judged = self._judged(one, event)
                before, tally = tally, counted(tally, one.origin, one.features, judged)
                if len(tally.refused) > len(before.refused):  # the first of its reason
                    self._write(one, b"", "refused")
                if judged.kind == "agree":  # the mutants of one that fails show the same fault again
                    self.guidance.learn(one, [f"pass:{name}" for name in judged.passes])
                self.triage.reached += [p for p in judged.passes if p not in self.triage.reached]
                self.listener.counted(
                    msgspec.structs.replace(tally, seconds=self._elapsed),
                    self.triage.faults,
                    len(self.waiting),
                )
        self.tally = tally
        self.source.tell(self.guidance.weights, self.guidance.modules)

    def _wants(self, index: int) -> bool:
        return not self.plan.programs or index < self.plan.programs

    def _question(self, drawn: Drawn) -> Question:
        number, variants = drawn.index, self.plan.variants
        variant = variants[number // _VARIED % len(variants)] if variants and number % _VARIED == 0 else ""
        options = msgspec.structs.replace(self.plan.options, seed=self.plan.options.seed + number)
        cures = self.triage.cures(drawn.module)
        return Question(drawn.module.to_text(), options, variant, number % _DUMPED == 1, cures)

    def _judged(self, drawn: Drawn, done: Done) -> Judged:
        """What became of a program; a failure is on the disk before anything else goes on."""
        if isinstance(done.value, BackendFailed):
            # A backend's end is an answer; this is the end of the worker that asks, or an exception of ours.
            reason = done.value.message
            if not isinstance(done.value, BackendTimeout):
                path = self._write(drawn, b"", "unjudged")
                reason = f"hlotool failed: {reason} ({path.name})"
                self.notes[reason] = 1
            return Judged(kind="unjudged", reason=reason)
        judged = msgspec.msgpack.decode(done.value, type=Judged)
        if judged.kind in FAILURES:
            path = self._write(drawn, judged.inputs, "raw")
            failure = FailureRecord(
                index=drawn.index,
                kind=judged.kind,
                failure=judged.failure,
                reason=judged.reason,
                backend=judged.backend,
                reference=judged.reference,
                set=judged.set,
                origin=drawn.origin,
                program=str(path),
                cured=judged.cured,
            )
            self._journal.add(f"failure {drawn.index}", msgspec.to_builtins(failure))
            if all(failure.index != other.index for other in self.waiting):
                self.waiting.append(failure)
        return judged

    def _write(self, drawn: Drawn, inputs: bytes, folder: str) -> Path:
        path = self.plan.folder / folder / f"{drawn.index:06d}.hlo"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(str(path), [drawn.module.to_text().encode("utf-8")])
        if inputs:
            write_file(str(path.with_suffix(".npz")), [inputs])
        return path

    def _look(self, until: float) -> None:
        """Look into failures, those first that are like the fewest others, while there is time for it."""
        seen: Counter[object] = Counter(fault.signature for fault in self.triage.faults)
        while self.waiting and self._looked < until and self._elapsed < self.plan.seconds:
            failure = min(self.waiting, key=lambda f: (seen[str(f.failure or f.kind)], f.index))
            began = time.monotonic()
            self.listener.looking(failure)
            found = self.triage.look_into(failure)
            self._looked += time.monotonic() - began
            seen[str(failure.failure or failure.kind)] += 1
            self._journal.add(f"fault {failure.index}", msgspec.to_builtins(found))
            self.waiting.remove(failure)
            self.listener.found(found)
