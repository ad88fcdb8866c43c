"""Differences that may come from what stands in for something unknown, and so are no verdict.

Constants whose values a dump leaves out have generated ones, custom calls that nobody else can execute have
stand-ins. What agrees with them agrees; what differs may do so only because the true ones are others.
"""

from __future__ import annotations

from collections import Counter

from hlotool.findings.verdict import DIFFERING, Verdict
from hlotool.ir.module import Instruction, Module

#: Verdicts that say that the programs are not the same.
_DOUBTED = DIFFERING | {Verdict.DIFFERS}


def opaque_calls(module: Module) -> list[Instruction]:
    """The custom calls of a program that have stand-ins."""
    if not module.has_stand_ins:
        return []
    from hlotool.backends.numpy.custom_calls import unknown_calls

    return list(unknown_calls(module))


def doubt(reference: Module, tested: Module) -> str:
    """Why a difference of two programs may come from what is unknown alone; empty where it cannot."""
    return _doubt_of_constants(reference, tested) or _doubt_of_calls(reference, tested)


def doubt_of(verdict: Verdict, reference: Module, tested: Module) -> str:
    """`doubt` of a verdict that says that the programs are not the same; empty for others."""
    return doubt(reference, tested) if verdict in _DOUBTED else ""


def _doubt_of_calls(reference: Module, tested: Module) -> str:
    """Calls of other keys have other stand-ins, though they may compute the same."""
    known, calls = opaque_calls(reference), opaque_calls(tested)
    if not known and not calls:
        return ""
    from hlotool.backends.numpy.opaque import key_of

    keys = Counter(map(key_of, known))
    other = next((call for call in calls if not keys[key_of(call)]), None)
    if other is not None:
        return f"the opaque call %{other.name} is written in another way than any of the original program"
    return ""


def _doubt_of_constants(reference: Module, tested: Module) -> str:
    """A compiler that knew the true values may have computed with them.

    Then a constant is gone, or there is one that the original program does not have.
    """
    if not reference.generated and not tested.generated:
        return ""
    names = {i.name for i in tested.instructions()}
    if gone := [name for name in reference.generated if name not in names]:
        return f"the compiler may have computed with the true value of %{gone[0]}, which is generated here"
    known = {i.literal.key for i in reference.instructions() if i.opcode == "constant" and i.literal}
    own = (i for i in tested.instructions() if i.opcode == "constant" and i.literal)
    made = next((i.name for i in own if i.literal and i.literal.key not in known), None)
    return f"%{made} may be computed from the true value of a constant that is generated here" if made else ""
