"""Which failures are one fault, or look so; and faults that are known: `known.toml`, files of the user's."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path

import msgspec

from hlotool.backends.registry import parse_spec
from hlotool.blame.reduction.case_worker import CaseOutcome
from hlotool.errors import UsageError
from hlotool.interface.report.lab_records import FailureRecord, FaultRecord, Kind
from hlotool.ir.module import Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import array_shapes
from hlotool.lab.fuzz.attribution import Blame
from hlotool.lab.fuzz.oracle import FAILURES
from hlotool.parser.reader import parse_module
from hlotool.system.paths import read_toml

#: Cases of a fault that are looked into in full; later ones that look like it are only counted: each is a
#: minute that another fault could have.
_ENOUGH = 2
#: Passes that compute what is constant, one instruction after the other: to blame is the code for the opcode
#: whose value is wrong, whatever its operands are made by.
_FOLDING = frozenset({"constant_folding"})
#: Bits from which on a type needs no code of its own that packs and unpacks it.
_BYTE = 8
_NARROW = ", narrow"

#: A shape in words whose numbers are gone, and which may end in the midst of it.
_SHAPE = re.compile(r"#\[[#,]*\]?")
#: Characters of words that say something: so many at the beginning have to be the same.
_WORDS = 60


def opcodes_of(module: Module) -> list[str]:
    """What a program is made of, parameters apart."""
    return list(dict.fromkeys(i.opcode for i in module.instructions() if i.opcode != "parameter"))


def families_of(module: Module, opcodes: Collection[str]) -> list[str]:
    """What a program does some work on: `abs of signed`, `popcnt of signed, narrow` for less than a byte."""
    found = set()
    for instruction in module.instructions():
        if instruction.opcode in opcodes:
            given = instruction.operands[0].shape if instruction.operands else instruction.shape
            for shape in array_shapes(given)[:1]:
                narrow = _NARROW if shape.element_type.bits < _BYTE else ""
                found.add(f"{instruction.opcode} of {shape.element_type.family.value}{narrow}")
    return sorted(found)


def alike(faults: Iterable[FaultRecord], kind: Kind, backend: str, module: Module) -> Iterator[FaultRecord]:
    """The frequent faults that a failure may be a case of: their operations are all in its program.

    They work on types of the same families there: that integers wrap is no fault of floats.

    Args:
        faults: of the campaign.
        kind: of the failure.
        backend: that failed.
        module: the program.
    """
    opcodes = opcodes_of(module)
    families = set(families_of(module, opcodes))
    for fault in faults:
        if (
            fault.status in ("new", "known")
            and (fault.kind, fault.backend) == (kind, backend)
            and fault.count >= _ENOUGH
            and fault.work
            and set(fault.work) <= set(opcodes)
            and families.issuperset(fault.families)
        ):
            yield fault


def key_of(kind: Kind, outcome: CaseOutcome, blame: Blame, work: Iterable[str]) -> str:
    """What failures of one fault share: pass, pattern and the work done; of a death its words, too."""
    failure = outcome.failure
    pattern = kind if failure is None else f"{kind}: {failure.words}" if failure.words else failure.kind
    who = f"{blame.level} {blame.pass_name}".strip() or "no pass"
    return f"{pattern} by {who}: {', '.join(sorted(work)) or 'moves only'}"


#: A place in the compiler's source, its line left out.
_IN_SOURCE = re.compile(r"\w\.(?:cc|h):# .*\bfailed\b")


def is_same(one: FaultRecord, other: FaultRecord) -> bool:
    """Whether two failures are taken for one fault: by what is said of both, and by the work that is done.

    The smallest programs of one fault differ in what makes the values that it needs: the work of one of them
    is then a part of the other's. Deaths say the same besides: a signal alone says nothing of what died; a
    check of the compiler's source that failed says so much that works need only meet. Code that packs numbers
    of less than a byte has faults of its own.
    """
    if one.key == other.key:
        return True
    if (one.kind, one.level, one.pass_name) != (other.kind, other.level, other.pass_name):
        return False
    if one.kind not in ("wrong", "crashed", "hang") or (
        one.kind != "wrong" and not say_the_same(one.signature, other.signature)
    ):
        return False
    if one.pass_name in _FOLDING and one.signature == other.signature and " of " in one.signature:
        return True
    first, second = {*one.work}, {*other.work}
    if one.kind == "crashed" and _IN_SOURCE.search(one.signature) and first & second:
        return True
    if not first or not second or not (first <= second or second <= first):
        return False
    return one.level != "codegen" or _packs(one, first & second) == _packs(other, first & second)


def _packs(fault: FaultRecord, opcodes: Collection[str]) -> bool:
    """Whether some of these operations work on numbers of less than a byte."""
    narrow = {family.partition(" of ")[0] for family in fault.families if family.endswith(_NARROW)}
    return not narrow.isdisjoint(opcodes)


def say_the_same(one: str, other: str) -> bool:
    """Whether two dead compilers said the same, whatever the rank of the shapes in it.

    Words are cut at some length, so that those with the longer shapes end earlier.
    """
    first, second = sorted((_SHAPE.sub("#", said) for said in (one, other)), key=len)
    return first == second or (len(first) >= _WORDS and second.startswith(first))


#: They move values about or make them, and are in the smallest program of almost any fault.
PLUMBING = opcodes_with(Trait.STRUCTURE, Trait.REGROUPS) - {"transpose"} | {"iota"}


# An entry says what failures of the fault have in common; everything that it says must hold of a failure:
#
# ```toml
# [[fault]]
# name = "nested-dynamic-slice"                        # short, as reports name it
# about = "a dynamic slice of a dynamic slice whose start is out of range"
# link = "https://github.com/openxla/xla/pull/48024"
# kind = "wrong"                                       # wrong, crashed, hang, nondeterministic
# backend = "gpu-ptx"                                  # that fails, without its options
# pass = "algsimp"                                     # the accused pass
# opcodes = ["dynamic-slice"]                          # all of them are in the smallest program,
# others = 1                                           # and at most so many that do work besides
# words = "Check failed: .*rank"                       # regular expression: what a dead compiler says
# text = "[su]8\[.*dynamic-slice"                     # regular expression: in the text of that program
# ```


class KnownFault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fault that is known.

    Attributes:
        name: short, as reports name it.
        about: what is wrong, in a sentence.
        link: to its report or its mending.
        kind: of its failures; empty for any.
        backend: that fails, without its options; empty for any.
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
    backend: str = ""
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
            and self.backend in ("", parse_spec(fault.backend).name)
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
    places = [Path(str(files("hlotool.lab.fuzz") / "known.toml"))] if committed else []
    found: list[KnownFault] = []
    for path in [*places, *map(Path, own)]:
        for entry in read_toml(path, _File, UsageError).fault:
            _check(entry, path)
            found.append(entry)
    return found


def _check(entry: KnownFault, path: Path) -> None:
    """Refuse an entry that would hide unknown faults."""
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


def work_of(blame: Blame, opcodes: Iterable[str]) -> list[str]:
    """See `FaultRecord.work`."""
    spot = blame.culprit.spot if blame.culprit is not None and blame.level == "pass" else None
    given = opcodes_of(parse_module(spot.before)) if spot is not None and spot.before else []
    return [o for o in given if o not in PLUMBING] or [o for o in opcodes if o not in PLUMBING]


def title_of(kind: Kind, blame: Blame, opcodes: Sequence[str], reason: str) -> str:
    """The fault in one line."""
    of = f" of {', '.join(opcodes[-4:])}" if opcodes else ""
    unnamed = "a pass" if blame.level == "pass" else blame.level or "the compiler"
    who = f"{blame.level} {blame.pass_name}" if blame.pass_name else unnamed
    if kind == "wrong":
        return f"{who} changes the result{of}"
    if kind == "nondeterministic":
        return f"two runs of the same program differ{of}"
    verb = "hangs" if kind == "hang" else "dies"
    return f"{who} {verb}{of}: {reason}"[:200]


def _repaired_without(blame: Blame) -> list[str]:
    sets = blame.culprit.repaired_without if blame.culprit is not None else []
    return next(iter(sets), [])


def described_fault(
    failure: FailureRecord, outcome: CaseOutcome, blame: Blame, opcodes: Sequence[str]
) -> FaultRecord:
    """What a failure is, from who is blamed and from the opcodes of the smallest program."""
    work = work_of(blame, opcodes)
    return FaultRecord(
        status="new",
        kind=failure.kind,
        key=key_of(failure.kind, outcome, blame, work),
        title=title_of(failure.kind, blame, work or opcodes, failure.reason),
        reason=failure.reason,
        level=blame.level,
        pass_name=blame.pass_name,
        cure=[blame.pass_name] if blame.pass_name else _repaired_without(blame),
        place=blame.place,
        opcodes=list(opcodes),
        work=work,
        backend=failure.backend,
        program=failure.program,
        index=failure.index,
    )
