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
from importlib import import_module

import msgspec

from hlotool.checks.records import Finding
from hlotool.checks.rules import RULES, Rule
from hlotool.errors import UsageError
from hlotool.system.user_input import complaint_about, did_you_mean

_MODULES = (
    "hlotool.checks.fusions",
    "hlotool.checks.compiled",
    "hlotool.checks.compile_lints",
    "hlotool.checks.lints",
    "hlotool.checks.offload.rules",
    "hlotool.checks.validity",
)
for _module in _MODULES:
    import_module(_module)


def all_rules() -> dict[str, Rule]:
    """All rules by id."""
    return RULES


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


def choose_rules(only: Sequence[str], skip: Iterable[str]) -> frozenset[str]:
    """Ids of the rules that apply.

    Raises:
        UsageError: there is no rule of such a name.
    """
    skipped = set(skip)
    for name in (*only, *sorted(skipped)):
        if complaint := _unknown(name):
            raise UsageError(f"{complaint}; `hlotool check --list-rules` shows those there are")
    return frozenset(only or all_rules()) - skipped


def _unknown(rule: str) -> str:
    """What is wrong with the name of a rule that there is not; empty where there is one."""
    return "" if rule in all_rules() else f"no rule {rule!r}{did_you_mean(rule, all_rules())}"


def accepted(findings: Sequence[Finding], ignores: Sequence[Ignore]) -> tuple[list[Finding], int]:
    """The findings that are not accepted, and how many are."""
    kept = [f for f in findings if not any(ignore.covers(f) for ignore in ignores)]
    return kept, len(findings) - len(kept)
