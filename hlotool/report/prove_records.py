"""The JSON that `hlotool prove --json` prints."""

from __future__ import annotations

from typing import Literal

from hlotool import errors
from hlotool.errors import BackendFailed, ExitCode, InputError
from hlotool.findings.records import CommandRecord
from hlotool.replay.exact.records import ProvedRecord


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
