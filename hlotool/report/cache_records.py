"""The JSON of `hlotool cache`."""

from __future__ import annotations

from typing import Literal

from hlotool.findings.records import CommandRecord


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
    """

    schema: Literal["hlotool.cache/1"] = "hlotool.cache/1"
    action: Literal["info", "prune", "clear"]
    folder: str
    entries: int
    size: int
    limit: int
    removed: int = 0
    removed_size: int = 0
    exit_code: int = 0
