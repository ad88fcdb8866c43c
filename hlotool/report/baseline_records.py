"""What was known before, as plain data: a baseline, and how a record compares with one."""

from __future__ import annotations

from typing import Literal

from hlotool.findings.records import CommandRecord, Record


class KnownRecord(Record, frozen=True, kw_only=True):
    """A finding that is known.

    Attributes:
        command: that found it.
        identity: what is equal for the same finding in another run, wherever its files are.
        name: of the module when it was found.
        kind: its verdict or rule.
        message: in one line.
        count: how often it was found; what is found more often is new.
    """

    command: str
    identity: list[str]
    name: str
    kind: str
    message: str = ""
    count: int = 1


class BaselineRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool baseline update` writes, and `--baseline` reads.

    Attributes:
        file: that was written.
        known: findings.
        added: names of what was not known before.
        removed: names of what was known before, and is no longer found.
    """

    schema: Literal["hlotool.baseline/1"] = "hlotool.baseline/1"
    file: str = ""
    known: list[KnownRecord] = []
    added: list[str] = []
    removed: list[str] = []
    exit_code: int = 0


class ComparedRecord(Record, frozen=True, kw_only=True):
    """How the findings of a record compare with a baseline.

    Attributes:
        file: the baseline.
        known: positions of outcomes that are known, among those that the command lists.
        new: names of those that are not.
        fixed: names of known findings whose module was looked at, and which are no longer found.
        absent: names of known findings whose module was not looked at.
    """

    file: str
    known: list[int] = []
    new: list[str] = []
    fixed: list[str] = []
    absent: list[str] = []
