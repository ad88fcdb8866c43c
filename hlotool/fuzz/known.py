"""Faults that are known, so that a campaign finds others: `known.toml`, and files of the user's.

An entry says what failures of the fault have in common; everything that it says must hold of a failure:

```toml
[[fault]]
name = "nested-dynamic-slice"                        # short, as reports name it
about = "a dynamic slice of a dynamic slice whose start is out of range"
link = "https://github.com/openxla/xla/pull/48024"
kind = "wrong"                                       # wrong, crashed, hang, nondeterministic
pass = "algsimp"                                     # the accused pass
opcodes = ["dynamic-slice"]                          # all of them are in the smallest program,
others = 1                                           # and at most so many that do work besides
words = "Check failed: .*rank"                       # regular expression: what a dead compiler says
text = "[su]8\\[.*dynamic-slice"                     # regular expression: in the text of that program
```
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path

import msgspec

from hlotool.errors import UsageError
from hlotool.findings.files import read_toml
from hlotool.fuzz.oracle import FAILURES
from hlotool.fuzz.records import FaultRecord
from hlotool.ir.opcodes import Trait, opcodes_with

#: They move values about or make them, and are in the smallest program of almost any fault.
PLUMBING = opcodes_with(Trait.STRUCTURE, Trait.REGROUPS) - {"transpose"} | {"iota"}


class KnownFault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fault that is known.

    Attributes:
        name: short, as reports name it.
        about: what is wrong, in a sentence.
        link: to its report or its mending.
        kind: of its failures; empty for any.
        pass: accused of its failures; empty for any.
        level: where it comes in, such as `codegen`; empty for any.
        opcodes: all of them are in the smallest program.
        others: how many that do work may be there besides.
        words: regular expression of what a dead compiler says; empty where none dies.
        text: regular expression that the text of the smallest program has, such as a type or an attribute
            that the fault needs; empty for any.
    """

    name: str
    about: str = ""
    link: str = ""
    kind: str = ""
    pass_name: str = msgspec.field(name="pass", default="")
    level: str = ""
    opcodes: tuple[str, ...] = ()
    others: int = 1
    words: str = ""
    text: str = ""

    def fits(self, fault: FaultRecord, program: str = "") -> bool:
        """Whether a failure that was looked into is one of this fault.

        Args:
            fault: what was found; what the accused pass was not given makes the values that the fault needs.
            program: text of the smallest program.
        """
        work = set(fault.work or fault.opcodes) - PLUMBING
        return (
            self.kind in ("", fault.kind)
            and self.pass_name in ("", fault.pass_name)
            and self.level in ("", fault.level)
            and set(self.opcodes) <= set(fault.opcodes)
            and (not self.opcodes or len(work - set(self.opcodes)) <= self.others)
            and (not self.words or re.search(self.words, fault.reason) is not None)
            and (not self.text or re.search(self.text, program) is not None)
        )


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fault: tuple[KnownFault, ...] = ()


def known_faults(own: Iterable[str | Path] = (), committed: bool = True) -> list[KnownFault]:
    """The faults of `known.toml` and of the user's files.

    Args:
        own: the user's files.
        committed: whether those that hlotool comes with count.

    Raises:
        UsageError: a file cannot be read, is no such file, or an entry says nothing that tells its failures
            from others.
    """
    places = [Path(str(files("hlotool.fuzz") / "known.toml"))] if committed else []
    found: list[KnownFault] = []
    for path in [*places, *map(Path, own)]:
        for entry in read_toml(path, _File, UsageError).fault:
            _check(entry, path)
            found.append(entry)
    return found


def _check(entry: KnownFault, path: Path) -> None:
    """Refuse an entry that would hide faults nobody knows."""
    if entry.kind and entry.kind not in FAILURES:
        raise UsageError(
            f"{path}: {entry.name}: kind {entry.kind!r} is none of {', '.join(sorted(FAILURES))}"
        )
    if not entry.opcodes and not entry.words:
        raise UsageError(f"{path}: {entry.name}: say `opcodes` or `words`, or it would hide any other fault")
    for name, pattern in (("words", entry.words), ("text", entry.text)):
        try:
            re.compile(pattern)
        except re.error as error:
            raise UsageError(f"{path}: {entry.name}: {name}: {error}") from error


def first_known(known: Sequence[KnownFault], fault: FaultRecord, program: str) -> KnownFault | None:
    """The first known fault that a failure is one of; see `KnownFault.fits`."""
    return next((entry for entry in known if entry.fits(fault, program)), None)
