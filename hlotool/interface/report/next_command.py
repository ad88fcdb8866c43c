"""The command to type next: the last line of a report that is not all well."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from hlotool.backends.registry import executes_code, portable, with_flags
from hlotool.checks.records import Finding
from hlotool.errors import EndlessLoop
from hlotool.interface.report.module import worst_last
from hlotool.interface.report.records import RunRecord
from hlotool.interface.report.words import short_names
from hlotool.judge.verdicts import DIFFERING, EXCUSED, FAILED, Verdict
from hlotool.runs.options.kept import RunOptions
from hlotool.runs.records import ModuleRecord
from hlotool.system.records import ConfigurationRecord

if TYPE_CHECKING:
    # Every `hlotool run` would pay for importing the searches.
    from hlotool.blame.bisection.records import CulpritRecord
    from hlotool.interface.report.command_records import BisectRecord, ReduceRecord
    from hlotool.interface.report.lab_records import FuzzRecord
    from hlotool.interface.report.triage_records import TriageRecord
    from hlotool.runs.two_dumps import CompareRecord

_FLAGS = 'XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.*"'
_SAVE_FOLDER = "hlotool-outputs"

#: What `hlotool bisect` does not take.
_NOT_BISECTED: dict[str, object] = {
    "backend": "numpy", "budget": None, "compare": (), "coverage": None, "fail_on": (),
    "first_divergence": None, "fp8": False, "further_sets": True, "repeat": 1, "save_outputs": None,
    "save_values": None, "stages": (), "thorough": False, "values": "",
}  # fmt: skip


def command_after_run(run: RunRecord, verbose: bool) -> str:
    """A complete command line that looks closer at the worst record; empty when nothing failed."""
    if run.interrupted:
        return command_line(run)
    known = set(run.baseline.known) if run.baseline is not None else ()
    return _closest_look(run, [row for n, row in enumerate(run.modules) if n not in known], verbose)


def command_after_row(run: RunRecord, row: ModuleRecord) -> str:
    """A complete command line that looks closer at one record of a run; empty where there is none."""
    return _closest_look(run, [row], verbose=False)


def _closest_look(run: RunRecord, modules: Sequence[ModuleRecord], verbose: bool) -> str:
    """What to type about the worst of some records of `run`; empty when none failed."""
    if found := _worst(modules, DIFFERING):
        return _closer_look(run, found, verbose)
    # What never ends takes longer than any limit.
    ending = [m for m in modules if m.error is None or m.error.kind != EndlessLoop.__name__]
    if found := _worst(ending, {Verdict.TIMEOUT}):
        return command_line(run, found, timeout=10 * run.options.timeout)
    if found := _worst(modules, {Verdict.OUT_OF_MEMORY}):
        return _with_more_memory(run, found)
    if found := _worst(modules, {Verdict.NOT_COMPILED}):
        return command_after_death(found.path)
    if found := _worst(ending, FAILED):
        is_of_compiler = verbose and run.options.backend != run.options.reference
        smaller = command_after_death(found.path, run.options.backend) if is_of_compiler else ""
        return smaller or command_line(run, found) + " --verbose"
    special = [m for m in modules if m.nothing_but_nan or m.is_not_finite(run.options.fail_on)]
    if special and not verbose:
        return command_line(run, special[-1]) + " --verbose"
    if found := _worst(modules, {Verdict.DIFFERS}):
        return _typed_command("bisect", run, found, _NOT_BISECTED | {"exact": True})
    if found := _worst(modules, {Verdict.UNSTABLE}):
        return _beyond_values(run, found)
    others = [m for m in modules if m.verdict in EXCUSED or m.fails_on(run.options.fail_on)]
    if others and not verbose:
        return command_line(run, worst_last(others)[-1]) + " --verbose"
    return _of_two_programs(modules)


def _of_two_programs(modules: Sequence[ModuleRecord]) -> str:
    """Two programs in files of their own, with results alike, may be meant to be one function."""
    paths = [module.path for module in modules]
    shapes = [[output.shape for output in module.outputs] for module in modules]
    is_pair = len(set(paths)) == 2 and all(m.verdict is Verdict.NOT_COMPARED for m in modules)
    if not is_pair or len(paths) != 2 or shapes[0] != shapes[1] or not all(map(os.path.isfile, paths)):
        return ""
    return shlex.join(["hlotool", "prove", *paths])


def _only(name: str, names: Collection[str]) -> str:
    """The shortest expression for one of some names that TensorFlow may have made long."""
    short = short_names([name])[name]
    is_enough = short != name and sum(other.startswith(short) for other in names) == 1
    return f"^{re.escape(short)}" if is_enough else f"^{re.escape(name)}$"


def _beyond_values(run: RunRecord, module: ModuleRecord) -> str:
    """What to type where values say nothing: the programs say more, where there are two."""
    rows = [row for row in run.modules if row.name == module.name]
    if len(run.paths) == 1 and any(row.stage_tested not in (None, row.stage_reference) for row in rows):
        only = _only(module.name, {row.name for row in run.modules})
        return shlex.join(["hlotool", "prove", *run.paths, "--only", only])
    return command_line(run, module) + " --verbose"


def command_after_death(path: str, backend: str = "xla") -> str:
    """A complete command line that makes a program small while XLA dies of it; empty where it is in no file.

    Args:
        path: of the program that XLA was given.
        backend: with the XLA that died of it.
    """
    return shlex.join(["hlotool", "reduce", path, "--backend", backend]) if os.path.isfile(path) else ""


def command_after_bisect(record: BisectRecord) -> str:
    """A complete command line; empty when there is nothing to do."""
    if record.interrupted:
        return _same_bisection(record)
    for found in record.flags:
        if found.wrong_with:
            return _same_bisection(record, backend=with_flags(found.backend, found.wrong_with[0]))
    exact = " --exact" if record.options.exact else ""
    if any(map(_lacks_dumps, record.culprits)):
        return f"{_FLAGS} for the same program, then hlotool bisect DIR{exact}"
    culprit = next((c for c in record.culprits if c.repro), None)
    asked = record.options.backend
    if culprit is None and asked != record.options.reference:
        died_of = [m.path for m in record.modules if Verdict(m.verdict) in FAILED]
        if died_of:
            return command_after_death(died_of[0], asked)
    dead = [m.path for m in record.modules if m.verdict == Verdict.NOT_COMPILED.value]
    if culprit is None and dead:
        return command_after_death(dead[-1])
    if culprit is None:
        return _same_bisection(record, exact=True) if _has_other_functions(record) else ""
    return command_after_culprit(culprit)


def command_after_culprit(culprit: CulpritRecord) -> str:
    """A complete command line that shows one fault again; empty where it has no bundle."""
    trigger = culprit.trigger
    shown = trigger is not None and trigger.status == "triggers"
    return verification(culprit.repro, trigger.backend if trigger is not None and shown else "")


def command_after_finding(paths: Sequence[str], finding: Finding) -> str:
    """A complete command line that shows nothing but what one rule of `check` finds in `paths`."""
    return shlex.join(["hlotool", "check", *paths, "--only", finding.rule])


def _has_other_functions(record: BisectRecord) -> bool:
    """Nothing is wrong, and yet some programs are other functions, which was not asked about."""
    return not record.culprits and any(m.verdict == Verdict.DIFFERS.value for m in record.modules)


def _same_bisection(record: BisectRecord, **changes: object) -> str:
    """The command again, with some options changed; its journal is found by its options."""
    options = record.options
    given: dict[str, object] = {field: getattr(options, field) for field in options.__struct_fields__}
    if options.backend == options.reference:
        given["backend"] = RunOptions().backend
    return shlex.join(["hlotool", "bisect", *record.paths, *_flags(given | changes, record.configuration)])


def _lacks_dumps(culprit: CulpritRecord) -> bool:
    """No pass is accused, and none of its module was dumped."""
    is_dumped = any(candidate.pipeline for candidate in culprit.candidates)
    return culprit.level == "pass" and not culprit.pass_name and not is_dumped


def command_after_reduce(record: ReduceRecord) -> str:
    """A complete command line that shows the failure again; empty where there is none."""
    if record.repro or not record.check:
        if record.check:
            return verification(record.repro, "", "--trust")
        return verification(record.repro, record.options.backend)
    return shlex.join([*shlex.split(record.check), record.output]) if record.output else ""


def command_after_comparison(record: CompareRecord) -> str:
    """A complete command line that looks closer at the first finding; empty where there is none."""
    from hlotool.runs.two_dumps import Conclusion

    wrong = {
        Conclusion.LEFT_WRONG.value: 0,
        Conclusion.BOTH_WRONG.value: 0,
        Conclusion.RIGHT_WRONG.value: 1,
    }
    for one in record.functions:
        if one.conclusion == Conclusion.FRONTEND.value:
            return shlex.join(["hlotool", "diff", *record.paths])
        side = wrong.get(one.conclusion)
        if side is not None and record.backends:
            backend = ["--backend", record.backends[side]]
            return shlex.join(["hlotool", "bisect", *record.paths, *backend])
        if side is not None:
            titles = {(other.left, other.right)[side] for other in record.functions}
            only = _only((one.left, one.right)[side], titles)
            return shlex.join(["hlotool", "bisect", record.paths[side], "--only", only])
    return ""


def command_after_fuzz(record: FuzzRecord) -> str:
    """A complete command line that shows the last fault again; empty where there is none."""
    bundles = [fault.bundle for fault in record.faults if fault.status == "new" and fault.bundle]
    return verification(bundles[-1], record.options.backend) if bundles else ""


def command_after_triage(record: TriageRecord) -> str:
    """A complete command line that shows the most frequent new fault again; empty where there is none."""
    new = [fault for fault in record.numbered if fault.status == "new" and fault.bundle]
    return verification(max(new, key=lambda fault: fault.count).bundle, record.backend) if new else ""


def verification(folder: str, backend: str = "", *options: str) -> str:
    """The command that runs a bundle again; a bundle does not say where on this machine a compiler lies."""
    elsewhere = ["--backend", backend] if backend and portable(backend) != backend else []
    return shlex.join(["hlotool", "repro", "verify", folder, *elsewhere, *options]) if folder else ""


def command_line(run: RunRecord, module: ModuleRecord | None = None, **changes: object) -> str:
    """The command of `run` again, for one module if given, with some options changed."""
    return _typed_command("run", run, module, changes)


def _typed_command(name: str, run: RunRecord, module: ModuleRecord | None, changes: dict[str, object]) -> str:
    options = run.options
    only = options.only
    if module is not None and any(record.name != module.name for record in run.modules):
        only = _only(module.name, {record.name for record in run.modules})
    given: dict[str, object] = {field: getattr(options, field) for field in options.__struct_fields__}
    if options.compare:
        given |= {"reference": "numpy", "backend": "numpy"}
    if module is not None:
        given |= {"last_failed": False, "shard": None, "sample": 0, "max_failures": 0}
    if module is not None and module.inputs is not None:
        made = module.inputs
        given |= {"inputs": made.file} if made.file else {}
        given |= {"seed": made.seed} if made.seed is not None else {}
        given |= {"input_range": made.input_range} if made.input_range else {}
    changed = given | changes | {"only": only}
    return shlex.join(["hlotool", name, *run.paths, *_flags(changed, run.configuration)])


def _closer_look(run: RunRecord, module: ModuleRecord, verbose: bool) -> str:
    """Who did it, where a program has a history; after `--verbose` the values."""
    has_history = module.stage_tested not in (None, module.stage_reference)
    is_bisected = has_history and not run.options.stages
    if not verbose and is_bisected and _is_of_one_backend(run.options):
        return _typed_command("bisect", run, module, _NOT_BISECTED)
    if not verbose and executes_code(run.options.backend) and not run.options.compare:
        return _typed_command("bisect", run, module, _NOT_BISECTED | {"backend": run.options.backend})
    saved = run.options.save_outputs
    if not (saved and verbose):
        return command_line(run, module, save_outputs=saved or _SAVE_FOLDER) + " --verbose"
    # Everything is on the table. Whether it depends on the values is the next question.
    return command_line(run, module, seed=run.options.seed + 1)


def _is_of_one_backend(options: RunOptions) -> bool:
    """Whether a difference must come from the programs, and `hlotool bisect` judges it as this run did."""
    by_user = options.output_rtol or options.output_atol or options.compare_with
    return not options.compare and options.backend == options.reference and not by_user


def _with_more_memory(run: RunRecord, module: ModuleRecord) -> str:
    """The module alone with more memory; empty where it had all that there is."""
    limit = run.options.memory_limit
    if not limit and (run.options.jobs == 1 or len(run.modules) == 1):
        return ""
    return command_line(run, module, memory_limit=4 * limit if limit else limit, jobs=1)


def _worst(
    modules: Sequence[ModuleRecord], verdicts: set[Verdict] | frozenset[Verdict]
) -> ModuleRecord | None:
    found = [module for module in modules if module.verdict in verdicts]
    return worst_last(found)[-1] if found else None


def _flags(values: dict[str, object], configuration: ConfigurationRecord | None) -> list[str]:
    """Options that differ from their defaults, or from what the configuration makes these, as typed."""
    flags = _configuration_flags(configuration)
    replaced = configuration.replaced if configuration else []
    defaults = RunOptions()
    for field, value in values.items():
        is_default = value == getattr(defaults, field)
        if is_default and (field.replace("_", "-") not in replaced or value in (None, (), "")):
            continue
        name = f"--{field.replace('_', '-')}"
        if isinstance(value, bool):
            flags.append(name if value else f"--no-{name[2:]}")
        elif field.startswith("output_") and isinstance(value, tuple):
            # That of a single output is that of all, with the output's name before the value.
            option = name.replace("--output-", "--")
            flags += [part for output, amount in value for part in (option, f"{output}:{amount:g}")]
        elif field == "input_range" and isinstance(value, tuple):
            flags.append(f"{name}={value[0]:g},{value[1]:g}")
        else:
            flags += [name, _typed(field, value)]
    return flags


def _configuration_flags(configuration: ConfigurationRecord | None) -> list[str]:
    """What was said of the configuration; one that is found is found again."""
    if configuration is None or not configuration.named:
        return []
    return ["--config", configuration.file] if configuration.file else ["--no-config"]


def _typed(field: str, value: object) -> str:
    if field == "memory_limit" and isinstance(value, int):
        return _size(value)
    if isinstance(value, float):
        return f"{value:g}"
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _size(size: int) -> str:
    """`8G` rather than `8589934592`; 0 is no limit."""
    if not size:
        return "none"
    for unit, shift in (("G", 30), ("M", 20), ("K", 10)):
        if size % (1 << shift) == 0:
            return f"{size >> shift}{unit}"
    return str(size)
