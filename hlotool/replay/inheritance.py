"""A result that equals what the last stage gives on the reference: what is said of the one holds for both."""

from __future__ import annotations

import msgspec

from hlotool.replay.records import LeafRecord, ModuleRecord


def inherited_row(result: ModuleRecord, stage: ModuleRecord) -> ModuleRecord:
    """The row of a result, with the verdict of the stage that gives the same.

    Two texts can be executed in other ways than they were, a result cannot: the verdict on the stage knows
    more, and what it says happened before code was generated.

    Args:
        result: what the program returned, here or where it was captured, against the reference.
        stage: the last stage against the reference, on the same arguments.
    """
    return msgspec.structs.replace(
        stage,
        path=result.path,
        stage_tested=result.stage_tested,
        tested=result.tested,
        notes=list(dict.fromkeys([*stage.notes, *result.notes])),
        leaves=[_with_files(leaf, old) for leaf, old in zip(stage.leaves, result.leaves)],
        reason=f"the same as {stage.stage_tested} gives on the reference: {stage.reason}",
        seconds=result.seconds,
    )


def _with_files(leaf: LeafRecord, saved: LeafRecord) -> LeafRecord:
    return msgspec.structs.replace(leaf, expected_file=saved.expected_file, actual_file=saved.actual_file)
