"""The JSON of `bisect`, `repro verify`, `exec`, `prove`, `reduce`, `diff`, `inspect` and `cache`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from hlotool import errors
from hlotool.blame.bisection.records import BisectedModule, CulpritRecord, FlagsRecord, Verification
from hlotool.blame.diff_records import LayersRecord, ProgramDiffRecord, ResultDiffRecord
from hlotool.checks.inspect_records import AlarmInfo
from hlotool.checks.records import FailedFile, FunctionInfo, ModuleInfo
from hlotool.errors import BackendFailed, ExitCode, InputError
from hlotool.interface.report.records import CauseRecord, ComparedRecord, CompileRecord, RunRecord
from hlotool.judge.verdicts import DIFFERING, Verdict, exit_code_of
from hlotool.rewrite.scale.records import PlanRecord
from hlotool.runs.capture.records import EventRecord, ProcessRecord
from hlotool.runs.exact.records import ProvedRecord
from hlotool.runs.options.kept import RunOptions
from hlotool.runs.records import InputsRecord
from hlotool.system.records import CommandRecord, ErrorRecord, Record


class CacheRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool cache --json` prints.

    Attributes:
        action: `info`, `prune` or `clear`.
        folder: where verdicts are kept.
        entries: how many answers are there, after the action.
        size: their bytes.
        limit: bytes that may stay; what is used least gives way.
        removed: answers that the action removed.
        removed_size: their bytes.
        environments: with a release of jaxlib each, which `releases` keeps, after the action.
        environments_size: their bytes.
        removed_environments: how many of them the action removed.
    """

    schema: Literal["hlotool.cache/1"] = "hlotool.cache/1"
    action: Literal["info", "prune", "clear"]
    folder: str
    entries: int
    size: int
    limit: int
    removed: int = 0
    removed_size: int = 0
    environments: int = 0
    environments_size: int = 0
    removed_environments: int = 0
    exit_code: int = 0


class ScalePlansRecord(CommandRecord, frozen=True, kw_only=True):
    """What `--show-scale --json` prints, of whichever command.

    Attributes:
        versions: of hlotool, Python, the packages that compute, and the platform.
        paths: as given.
        scale: as given.
        memory: bytes that a comparison may take; None where there is no limit.
        seconds: that a comparison may take.
        plans: one per module, or per pair of programs.
        notes: what was passed over.
        exit_code: the command's exit status.
    """

    schema: Literal["hlotool.scale/1"] = "hlotool.scale/1"
    versions: dict[str, str]
    paths: list[str]
    scale: str
    memory: int | None
    seconds: float
    plans: list[PlanRecord]
    notes: list[str] = []
    exit_code: int = 0


class InspectRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool inspect --json` prints.

    Attributes:
        paths: as given.
        functions: of the user's program, in the order of the dump.
        modules: in the order of the dump.
        failures: paths that hold no HLO, where there are others that do.
        alarms: slow operations that logs tell of, where `--compile-time` asked for that.
        notes: what was passed over.
    """

    schema: Literal["hlotool.inspect/1"] = "hlotool.inspect/1"
    versions: dict[str, str]
    paths: list[str]
    functions: list[FunctionInfo] = []
    modules: list[ModuleInfo] = []
    failures: list[FailedFile] = []
    alarms: list[AlarmInfo] = []
    notes: list[str] = []
    exit_code: int = 0
    seconds: float = 0.0


class ReduceRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool reduce --json` prints.

    Attributes:
        path: as given.
        options: that decide about the result.
        check: the command that judged the programs; empty when a backend did.
        inputs: where the arguments of the original come from.
        failure: how the program fails.
        reason: in one line.
        failure_rate: failures per run, when it does not fail always.
        instructions_before: of the original, parameters not counted.
        instructions_after: of what is left.
        program: HLO text of what is left.
        output: file that holds it, its arguments beside it as .npz; empty when none was asked for.
        passing: file of the nearest program seen that does not fail; empty when there is none.
        repro: folder of the repro bundle, empty when none was written.
        programs_judged: in this run and, if it goes on, in the interrupted one.
        notes: warnings, and what could not be tried.
        error: why the command came to nothing.
        interrupted: the user stopped it; the same command goes on.
    """

    schema: Literal["hlotool.reduce/1"] = "hlotool.reduce/1"
    versions: dict[str, str]
    path: str
    options: RunOptions
    check: str = ""
    inputs: InputsRecord | None = None
    failure: str = ""
    reason: str = ""
    failure_rate: float | None = None
    instructions_before: int = 0
    instructions_after: int = 0
    program: str = ""
    output: str = ""
    passing: str = ""
    repro: str = ""
    programs_judged: int = 0
    notes: list[str] = []
    error: ErrorRecord | None = None
    interrupted: bool = False
    exit_code: int
    seconds: float = 0.0


class ExtractRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool extract --json` prints.

    Attributes:
        path: as given.
        instructions: that were asked for.
        program: HLO text of the new module.
        parameters: what each of its parameters stands for in the original.
        output: file that holds it; empty when none was asked for.
        inputs_file: file of the values that occurred; empty when there are no parameters, or no file.
        inputs: where the arguments of the original come from.
        size: instructions of the new module, parameters not counted.
        calls: how often the computation that they are part of was executed.
        notes: what was passed over.
    """

    schema: Literal["hlotool.extract/1"] = "hlotool.extract/1"
    path: str
    instructions: list[str]
    program: str
    parameters: list[str]
    output: str
    inputs_file: str
    inputs: InputsRecord | None
    size: int = 0
    calls: int = 1
    notes: list[str] = []
    exit_code: int


class DiffRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool diff --json` prints.

    Attributes:
        left: path as given.
        right: likewise.
        kind: `programs`, `results` or `layers`.
        programs: pairs of programs that were compared.
        results: pairs of arrays that were compared.
        layers: two executions layer by layer; null where that was not asked.
        only_left: programs, arrays or layers without a partner.
        only_right: likewise.
        notes: what was passed over.
    """

    schema: Literal["hlotool.diff/1"] = "hlotool.diff/1"
    versions: dict[str, str]
    left: str
    right: str
    kind: str
    programs: list[ProgramDiffRecord] = []
    results: list[ResultDiffRecord] = []
    layers: LayersRecord | None = None
    only_left: list[str] = []
    only_right: list[str] = []
    notes: list[str] = []
    exit_code: int = 0


def differs(record: DiffRecord) -> bool:
    """Whether anything differs, or is on one side only; of layers, whether one leaves legal spread."""
    if record.layers is not None:
        return record.layers.first is not None
    return bool(
        record.only_left
        or record.only_right
        or any(not program.is_same and program.error is None for program in record.programs)
        or any(result.comparison.verdict in DIFFERING for result in record.results)
    )


class BisectRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool bisect --json` prints.

    Attributes:
        paths: as given.
        options: that decide about the results.
        culprits: what was found, one entry per fault.
        causes: culprits that are the same fault, the most frequent last.
        baseline: how they compare with what was known before; null without a baseline.
        modules: those that were searched, and those that could not be judged.
        healthy: names of the modules that agree from end to end.
        flags: what the flags of XLA have to do with each module, where `--flags` asked for that.
        comparisons: stages judged, those known from an interrupted run included.
        unusable: steps that gave no answer: what crashed, and what cannot be judged.
        stages_only: some are called healthy for their stages, and what they return is not known.
        notes: what was passed over, and warnings.
        error: why the whole command came to nothing.
        interrupted: the user stopped it; the same command goes on.
    """

    schema: Literal["hlotool.bisect/1"] = "hlotool.bisect/1"
    versions: dict[str, str]
    paths: list[str]
    options: RunOptions
    culprits: list[CulpritRecord] = []
    causes: list[CauseRecord] = []
    baseline: ComparedRecord | None = None
    modules: list[BisectedModule] = []
    healthy: list[str] = []
    flags: list[FlagsRecord] = []
    comparisons: int = 0
    unusable: int = 0
    stages_only: bool = False
    notes: list[str] = []
    error: ErrorRecord | None = None
    interrupted: bool = False
    exit_code: int
    seconds: float = 0.0


class VerifyRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool repro verify --json` prints.

    Attributes:
        bundles: one entry per bundle.
    """

    schema: Literal["hlotool.repro/1"] = "hlotool.repro/1"
    bundles: list[Verification]
    exit_code: int


def bisect_exit_code(
    culprits: Sequence[CulpritRecord],
    modules: Sequence[BisectedModule],
    healthy: Sequence[str],
    flags: Sequence[FlagsRecord] = (),
) -> ExitCode:
    """The exit status of a bisection.

    A confirmed culprit decides, then a compiler that died. Nothing wrong is only claimed when every module is
    healthy; where some are not, but something was compared, the bisection is inconclusive.
    """
    if flags:
        return exit_code_of(one.verdict for one in flags)
    if culprits:
        return ExitCode.MISMATCH if all(c.confirmed for c in culprits) else ExitCode.INCONCLUSIVE
    if not modules:
        return ExitCode.AGREE if healthy else ExitCode.NOTHING_COMPARED
    if any(m.verdict == Verdict.NOT_COMPILED.value for m in modules):
        return ExitCode.BACKEND_FAILED
    if healthy or any(m.judged or Verdict(m.verdict) in DIFFERING for m in modules):
        return ExitCode.INCONCLUSIVE
    return exit_code_of(Verdict(module.verdict) for module in modules)


def verify_exit_code(bundles: Sequence[Verification]) -> ExitCode:
    """The gravest of the bundles' own."""
    order = (ExitCode.MISMATCH, ExitCode.INCONCLUSIVE, ExitCode.NOTHING_COMPARED)
    found = {bundle.exit_code for bundle in bundles}
    return next((code for code in order if code in found), ExitCode.AGREE)


class ProgramRecord(Record, frozen=True, kw_only=True):
    """The program that was run.

    Attributes:
        command: as given.
        status: its exit status; negative: the number of the signal that ended it.
        seconds: wall time.
        processes: those that loaded XLA.
    """

    command: list[str]
    status: int
    seconds: float
    processes: list[ProcessRecord] = []


class ExecRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool exec --json` prints.

    Attributes:
        program: what was run, and how it ended.
        dump: folder of the dump; empty where it was removed, as nothing in it is worth a second look.
        events: what `--keep-when` found, in its order.
        run: what the replays found, as `hlotool run` has it.
        bisect: what the search found, where one was asked for and something was wrong.
        compiled: the same programs for another device, where that was asked for.
        error: why the whole command came to nothing.
        interrupted: the user stopped the replays or the search; what is here was finished before.
    """

    schema: Literal["hlotool.exec/1"] = "hlotool.exec/1"
    versions: dict[str, str]
    program: ProgramRecord
    dump: str = ""
    events: list[EventRecord] = []
    run: RunRecord
    bisect: BisectRecord | None = None
    compiled: CompileRecord | None = None
    error: ErrorRecord | None = None
    interrupted: bool = False
    exit_code: int
    seconds: float = 0.0

    @property
    def notes(self) -> list[str]:
        """Of all parts."""
        return [note for part in (self.run, self.bisect, self.compiled) if part for note in part.notes]


def exec_exit_code(replays: int, status: int) -> int:
    """The exit status of the command.

    A mismatch is what the command was called for; else the program's own failure is passed on, with 128 and
    the number of the signal as a shell does it; else what the replays say.
    """
    if replays == ExitCode.MISMATCH or not status:
        return replays
    return status if status > 0 else 128 - status


class ProveRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool prove --json` prints.

    Attributes:
        schema: name and version of this format.
        versions: of hlotool, Python, the packages that compute, and the platform.
        left: path as given.
        right: likewise; empty where the stages of one dump were compared.
        explain: the report lists laws, constants and unknown functions.
        pairs: one entry per pair of programs.
        only_left: programs without a partner.
        only_right: likewise.
        notes: what was passed over.
        exit_code: the command's exit status.
    """

    schema: Literal["hlotool.prove/1"] = "hlotool.prove/1"
    versions: dict[str, str]
    left: str
    right: str = ""
    explain: bool = False
    pairs: list[ProvedRecord] = []
    only_left: list[str] = []
    only_right: list[str] = []
    notes: list[str] = []
    exit_code: int = 0


def prove_exit_code(record: ProveRecord) -> ExitCode:
    """1 if a pair is unequal or a program has no partner, 0 if all are equal, else why that is not known.

    5 where all are equal, and some only where it was covered.
    """
    relations = {pair.relation for pair in record.pairs}
    if "unequal" in relations or record.only_left or record.only_right:
        return ExitCode.MISMATCH
    kinds = {pair.error.kind for pair in record.pairs if pair.error is not None}
    for kind in (InputError, BackendFailed):
        if any(issubclass(getattr(errors, name), kind) for name in kinds):
            return kind.exit_code
    if "refused" in relations:
        return ExitCode.NOTHING_COMPARED
    return ExitCode.INCONCLUSIVE if "equal where" in relations else ExitCode.AGREE
