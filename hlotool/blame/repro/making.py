"""Bundles of what a bisection found, and of what a reduction left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from hlotool.backends.registry import parse_spec, portable
from hlotool.blame.bisection.compiler import compiler_name
from hlotool.blame.bisection.records import CulpritRecord, TriggerRecord
from hlotool.blame.reduction.reducer import Reduction
from hlotool.blame.repro.bundle import Bundle, Kind
from hlotool.inputs.given import npz_bytes
from hlotool.judge.comparison import format_position
from hlotool.judge.records import output_name
from hlotool.judge.verdicts import Answer, Verdict
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.records import ModuleRecord


def culprit_title(culprit: CulpritRecord) -> str:
    """A culprit in one line."""
    source = culprit.source
    where = f" in {source.user_line}" if source and source.file else ""
    opcodes = ", ".join(dict.fromkeys(culprit.opcodes[-3:]))
    what = f" of {opcodes}" if opcodes else ""
    if culprit.level == "pass":
        is_unequal = culprit.comparison is not None and culprit.comparison.verdict is Verdict.UNEQUAL
        changed = "makes a mathematically different program" if is_unequal else "changes the result"
        return f"{culprit.pass_name or 'The compiler'} {changed}{what}{where}"
    made = "A library call" if culprit.level == "runtime-library" else "The compiled code"
    return f"{made}{what} gives a wrong result{where}"


def bundle_of(culprit: CulpritRecord, options: ReplayOptions, versions: Mapping[str, str]) -> Bundle | None:
    """The bundle of a culprit; None when there is nothing small enough to run again."""
    pair = _pair(culprit, options, versions) if culprit.level == "pass" else None
    if culprit.minimal:
        found = _minimal(culprit, options, versions)
        if pair is None:
            return found
        return replace(found, pass_before=pair.program, pass_after=pair.after, pass_inputs=pair.inputs)
    return pair if culprit.level == "pass" else _result(culprit, options, versions)


def _pair(culprit: CulpritRecord, options: ReplayOptions, versions: Mapping[str, str]) -> Bundle | None:
    """What the pass was given and what it made of it: around the spot, or else the spot alone."""
    spot = culprit.spot
    if spot is None:
        return None
    if (around := spot.around) is not None:
        stages = _bundle("stages", culprit, around.comparison, around.before, options, versions)
        return replace(stages, after=around.after, inputs=around.inputs)
    if not spot.after or spot.comparison is None:
        return None
    stages = _bundle("stages", culprit, spot.comparison, spot.before, options, versions)
    return replace(stages, after=spot.after, inputs=spot.inputs)


def _result(culprit: CulpritRecord, options: ReplayOptions, versions: Mapping[str, str]) -> Bundle | None:
    """The program as given and what it returned, with the kernel to blame."""
    spot, row = culprit.spot, culprit.comparison
    if spot is None or row is None or not spot.program:
        return None
    return replace(
        _bundle("result", culprit, row, spot.program, options, versions),
        kernel=spot.after,
        kernel_inputs=spot.inputs,
        inputs=spot.program_inputs,
        outputs=spot.outputs,
    )


def _minimal(culprit: CulpritRecord, options: ReplayOptions, versions: Mapping[str, str]) -> Bundle:
    """The smallest program that the compiler at hand gets wrong, with the kernel to blame."""
    row, trigger = culprit.minimal_comparison, culprit.trigger
    assert row is not None
    assert trigger is not None
    has_kernel = culprit.spot is not None and culprit.level != "pass"
    return replace(
        _bundle("backend", culprit, row, culprit.minimal, options, versions),
        kernel=culprit.spot.after if has_kernel and culprit.spot else "",
        kernel_inputs=culprit.spot.inputs if has_kernel and culprit.spot else b"",
        inputs=culprit.minimal_inputs,
        backend=portable(trigger.backend),
    )


def _bundle(
    kind: Kind,
    culprit: CulpritRecord,
    row: ModuleRecord,
    program: str,
    options: ReplayOptions,
    versions: Mapping[str, str],
) -> Bundle:
    """What all bundles of culprits share."""
    return Bundle(
        kind=kind,
        title=culprit_title(culprit),
        verdict=row.verdict.value,
        signature=str(row.signature),
        wrong=row.signature.outputs,
        reason=row.reason,
        program=program,
        reference=options.reference,
        culprit=_facts(culprit),
        evidence=tuple(culprit.evidence),
        versions=dict(versions),
        trigger=_trigger(culprit),
        element=_worst_element(row),
        tolerance=tolerance_of(options),
        exact=row.verdict is Verdict.UNEQUAL,
        opaque=options.opaque,
    )


def _worst_element(row: ModuleRecord | None) -> str:
    """The worst element of the first wrong output; programs that are other functions need not show one."""
    leaves = row.leaves if row is not None and row.verdict is not Verdict.UNEQUAL else []
    for leaf in leaves:
        if leaf.top and leaf.verdict.answer is Answer.BAD:
            worst = leaf.top[0]
            where = f" at {format_position(tuple(worst.index))}" if worst.index else ""
            return f"{output_name(leaf.index)}{where}: expected {worst.expected}, actual {worst.actual}"
    return ""


def _trigger(culprit: CulpritRecord) -> TriggerRecord | None:
    trigger = culprit.trigger
    if trigger is None:
        return None
    return msgspec.structs.replace(trigger, backend=portable(trigger.backend) if trigger.backend else "")


def tolerance_of(options: ReplayOptions) -> dict[str, float]:
    """The tolerances that the user set."""
    given = {"rtol": options.rtol, "atol": options.atol}
    return {name: value for name, value in given.items() if value is not None}


def _facts(culprit: CulpritRecord) -> dict[str, Any]:
    """What `repro.toml` says of the culprit."""
    source = culprit.source
    return {
        "level": culprit.level,
        "pass": culprit.pass_name,
        "pipeline": culprit.pipeline,
        "module": culprit.module,
        "stage": culprit.stage,
        "stage_before": culprit.stage_before,
        "instructions": culprit.instructions,
        "place": culprit.place,
        "source": source.user_line if source else "",
        "op_name": source.op_name if source else "",
    }


def bundle_of_case(
    found: Reduction,
    options: ReplayOptions,
    check: str,
    versions: Mapping[str, str],
    row: ModuleRecord | None = None,
) -> Bundle:
    """The bundle of a reduced program, which a backend gets wrong or a command calls bad.

    Args:
        found: the program.
        options: which backend is compared with which.
        check: the command that judged it, empty where a backend did.
        versions: of what took part, with the backend's.
        row: the comparison of the program; None where a backend died of it, or a command judged.
    """
    opcodes = dict.fromkeys(i.opcode for i in found.case.module.instructions() if i.opcode != "parameter")
    what = ", ".join(list(opcodes)[-3:])
    by = check or portable(options.backend)
    is_shown = row is not None and row.verdict.answer is Answer.BAD
    return Bundle(
        kind="check" if check else "backend",
        title=f"{by}: {found.failure} in a program of {what}",
        verdict="bad" if check else found.failure,
        signature=str(row.signature) if row is not None and is_shown else found.failure,
        wrong=row.signature.outputs if row is not None and is_shown else None,
        reason=found.reason,
        program=found.case.text,
        inputs=npz_bytes(found.case.arguments, found.case.copies) if found.case.arguments else b"",
        reference=options.reference,
        backend=portable(options.backend),
        command=check,
        evidence=(f"reduced from {found.before} to {found.case.size} instructions, failing in the same way",),
        versions=dict(versions),
        trigger=None if check else trigger_on(options.backend, versions.get("backend", "")),
        element=_worst_element(row),
        tolerance=tolerance_of(options),
        exact=options.exact,
        opaque=options.opaque,
    )


#: Backends that are compilers of their own, by their bug trackers.
_COMPILERS = frozenset({"aot", "gpu-ptx", "iree", "pjrt", "xla"})


def trigger_on(backend: str, version: str) -> TriggerRecord | None:
    """That a real compiler shows the fault of a reduced program; None where another judged, or none is known.

    Args:
        backend: spec of what judged.
        version: of it, as `compiler_name` says it, or as it says it itself.
    """
    if parse_spec(backend).name not in _COMPILERS or not version:
        return None
    name = compiler_name(version, backend)
    return TriggerRecord.of("triggers", name, backend=portable(backend), form="the reduced program", judged=1)
