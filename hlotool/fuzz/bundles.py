"""The bundle of a fault: what reduction and blame came to, in the form in which any failure is filed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hlotool.fuzz.attribution import Blame
from hlotool.replay.options import RunOptions
from hlotool.report.fuzz_records import FaultRecord
from hlotool.repro.bundle import Bundle
from hlotool.repro.from_case import bundle_of_case, trigger_on
from hlotool.repro.from_culprit import bundle_of
from hlotool.search.reduction.case import Case
from hlotool.search.reduction.case_worker import Outcome
from hlotool.search.reduction.reducer import Reduction


def fault_bundle(
    fault: FaultRecord,
    case: Case,
    reduction: Reduction | None,
    blame: Blame,
    last: Outcome,
    options: RunOptions,
    versions: Mapping[str, str],
) -> Bundle:
    """The bundle of a fault.

    Args:
        fault: as far as it is described.
        case: the smallest program.
        reduction: that it comes from; None where it is the program that failed first.
        blame: who did it.
        last: how the smallest program fails.
        options: reference and backend.
        versions: of everything that took part.
    """
    found = reduction or Reduction(case, fault.before, str(last.failure), last.reason, None)
    bundle = bundle_of_case(found, options, "", versions, last.row)
    title = fault.title if blame.level else bundle.title
    bundle = replace(
        bundle,
        title=title,
        culprit={"level": blame.level, "pass": blame.pass_name} if blame.level else {},
        evidence=(*bundle.evidence, "it failed twice, the second time in a fresh process", *blame.evidence),
        # What a backend dies of has no comparison, which else says on which compiler it was seen.
        trigger=bundle.trigger or trigger_on(options.backend, versions.get("backend")),
    )
    pair = bundle_of(blame.culprit, options, versions) if blame.culprit is not None else None
    if pair is None:
        return bundle
    bundle = replace(bundle, culprit=pair.culprit)
    if pair.kind != "stages":
        return replace(bundle, kernel=pair.kernel, kernel_inputs=pair.kernel_inputs)
    return replace(bundle, pass_before=pair.program, pass_after=pair.after, pass_inputs=pair.inputs)
