"""Which failures are one fault, and which look as if they were."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from hlotool.fuzz.attribution import Blame
from hlotool.ir.module import Module
from hlotool.ir.types import array_shapes
from hlotool.report.fuzz_records import FaultRecord, Kind
from hlotool.search.reduction.case_worker import Outcome

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


def key_of(kind: Kind, outcome: Outcome, blame: Blame, work: Iterable[str]) -> str:
    """What failures of one fault share: pass, pattern and the work done; of a death its words, too."""
    failure = outcome.failure
    pattern = kind if failure is None else f"{kind}: {failure.words}" if failure.words else failure.kind
    who = f"{blame.level} {blame.pass_name}".strip() or "nobody"
    return f"{pattern} by {who}: {', '.join(sorted(work)) or 'moves only'}"


def is_same(one: FaultRecord, other: FaultRecord) -> bool:
    """Whether two failures are taken for one fault: by what is said of both, and by the work that is done.

    The smallest programs of one fault differ in what makes the values that it needs: the work of one of them
    is then a part of the other's. Deaths say the same besides: a signal alone tells nothing of what died.
    Code that packs numbers of less than a byte has faults of its own.
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
