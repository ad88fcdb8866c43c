"""Which rules apply, and which findings a project has accepted: from the command line and a `hlotool.toml`.

[check]
skip = ["host-callback"]

[[check.ignore]]
rule = "recompilation"
module = "jit_warmup"
reason = "two sizes are meant"
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from hlotool.check.catalogue import all_rules
from hlotool.check.findings import Finding
from hlotool.errors import UsageError
from hlotool.findings.files import read_toml

#: Looked for in the current folder.
DEFAULT_NAME = "hlotool.toml"


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

    def covers(self, finding: Finding) -> bool:
        """Whether `finding` is one of these."""
        return (
            finding.rule == self.rule
            and re.search(self.module, finding.module) is not None
            and re.search(self.instruction, finding.instruction) is not None
        )


class CheckConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table `[check]`.

    Attributes:
        skip: ids of rules that do not apply.
        ignore: findings that are accepted.
    """

    skip: list[str] = []
    ignore: list[Ignore] = []


class _File(msgspec.Struct, frozen=True):
    check: CheckConfig = CheckConfig()


def load_config(path: str | None) -> CheckConfig:
    """The configuration in `path`, or in `hlotool.toml` if there is one here.

    Raises:
        UsageError: it cannot be read, or says something unknown.
    """
    file = Path(path or DEFAULT_NAME)
    if path is None and not file.is_file():
        return CheckConfig()
    config = read_toml(file, _File, UsageError).check
    try:
        for ignore in config.ignore:
            re.compile(ignore.module)
            re.compile(ignore.instruction)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"{file}: {error}") from error
    choose_rules((), [*config.skip, *(ignore.rule for ignore in config.ignore)])
    return config


def choose_rules(only: Sequence[str], skip: Iterable[str]) -> frozenset[str]:
    """Ids of the rules that apply.

    Raises:
        UsageError: there is no rule of such a name.
    """
    known = all_rules()
    skipped = set(skip)
    for name in (*only, *skipped):
        if name not in known:
            raise UsageError(f"no rule {name!r}; `hlotool check --list-rules` shows those there are")
    return frozenset(only or known) - skipped


def accepted(findings: Sequence[Finding], config: CheckConfig) -> tuple[list[Finding], int]:
    """The findings that are not accepted, and how many are."""
    kept = [f for f in findings if not any(ignore.covers(f) for ignore in config.ignore)]
    return kept, len(findings) - len(kept)
