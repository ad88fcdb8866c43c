"""All rules, which of them apply, and which findings a project has accepted.

The modules that define rules are imported here, and nowhere else. Of a project's configuration:

[check]
skip = ["host-callback"]

[[check.ignore]]
rule = "recompilation"
module = "jit_warmup"
reason = "two sizes are meant"
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

import msgspec

from hlotool.checks.records import Finding
from hlotool.errors import UsageError
from hlotool.system.user_input import complaint_about, did_you_mean

if TYPE_CHECKING:
    from hlotool.checks.rules import Rule

_MODULES = (
    "hlotool.checks.fusions",
    "hlotool.checks.compiled",
    "hlotool.checks.compile_lints",
    "hlotool.checks.lints",
    "hlotool.checks.offload.rules",
    "hlotool.checks.validity",
)


@cache
def all_rules() -> dict[str, Rule]:
    """All rules by id. Their modules take long to import: without them one may know what is asked for."""
    for module in _MODULES:
        import_module(module)
    from hlotool.checks.rules import RULES

    return RULES


def chosen_rules(ids: frozenset[str] | None) -> list[Rule]:
    """Those of the ids; all of them for None."""
    return [rule for rule in all_rules().values() if ids is None or rule.id in ids]


def needs_every_stage(ids: frozenset[str]) -> bool:
    """Whether one of the rules looks at more than the program as the user wrote it."""
    from hlotool.checks.rules import Applies

    return any(all_rules()[rule].applies is Applies.EVERY_STAGE for rule in ids)


class Ignore(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Findings that are accepted.

    Attributes:
        rule: id of the rule.
        reason: why.
        module: regular expression; without it any module.
        instruction: regular expression; without it any instruction.
    """

    rule: str
    reason: str
    module: str = ""
    instruction: str = ""

    def __post_init__(self) -> None:
        if complaint := _unknown(self.rule):
            raise ValueError(complaint)
        for name, pattern in (("module", self.module), ("instruction", self.instruction)):
            if complaint := complaint_about(pattern):
                raise ValueError(f"{name} {complaint}")

    def covers(self, finding: Finding) -> bool:
        """Whether `finding` is one of these."""
        return (
            finding.rule == self.rule
            and re.search(self.module, finding.module) is not None
            and re.search(self.instruction, finding.instruction) is not None
        )


def ignored(rows: Sequence[Ignore | Mapping[str, str]]) -> list[Ignore]:
    """What is accepted, from records or plain rows.

    Raises:
        UsageError: a row has an unknown rule or field, or lacks one.
    """
    try:
        return [row if isinstance(row, Ignore) else msgspec.convert(row, Ignore) for row in rows]
    except msgspec.ValidationError as error:
        raise UsageError(f"ignore: {error}") from error


def choose_rules(only: Sequence[str], skip: Iterable[str]) -> frozenset[str] | None:
    """Ids of the rules that apply; None for all.

    Raises:
        UsageError: there is no rule of such a name.
    """
    skipped = set(skip)
    for name in (*only, *sorted(skipped)):
        if complaint := _unknown(name):
            raise UsageError(f"{complaint}; `hlotool check --list-rules` shows those there are")
    return frozenset(only or all_rules()) - skipped if only or skipped else None


def _unknown(rule: str) -> str:
    """What is wrong with the name of a rule that there is not; empty where there is one."""
    return "" if rule in all_rules() else f"no rule {rule!r}{did_you_mean(rule, all_rules())}"


def accepted(findings: Sequence[Finding], ignores: Sequence[Ignore]) -> tuple[list[Finding], int]:
    """The findings that are not accepted, and how many are."""
    kept = [f for f in findings if not any(ignore.covers(f) for ignore in ignores)]
    return kept, len(findings) - len(kept)
