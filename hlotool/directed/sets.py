"""What a set of inputs is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hlotool.analysis.custom_calls import TRANSPARENT
from hlotool.backends.base import Value
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Class

#: The name of the set that a replay always takes.
PLAIN = "plain"
#: What is odd about a set with such indices, which XLA clamps or skips.
OUT_OF_RANGE = "indices out of range"
#: What is odd about a set with numbers that a function is not made for: the logarithm of -1 is NaN, a shift
#: by more bits than there are is 0.
OUT_OF_DOMAIN = "numbers out of a domain"


@dataclass(frozen=True, slots=True, eq=False)
class InputSet:
    """Arguments for one run.

    Attributes:
        name: short, such as `ties`; unique among the sets of a program.
        values: one per entry parameter.
        odd: what is legal about them, and yet such that a framework may never pass it: `NaN`, `indices out of
            range`; empty for ordinary values.
        aims: the outcomes that it was made for, in words.
        is_hard: rounding is at its worst on such numbers (all alike, sorted, far apart, large): between
            programs on one backend that is the same for both, between backends nobody measured it.
    """

    name: str
    values: tuple[Value, ...]
    odd: tuple[str, ...] = ()
    aims: tuple[str, ...] = ()
    is_hard: bool = False

    @property
    def suits_other_backends(self) -> bool:
        """Whether all backends must agree on it: of odd values only indices out of range have one meaning."""
        return set(self.odd) <= {OUT_OF_RANGE} and not self.is_hard

    @property
    def is_plain(self) -> bool:
        """Whether it is the set that every replay takes."""
        return self.name == PLAIN


def in_words(one: InputSet) -> str:
    """A set as reports name it: what it was made for, and what is odd about it."""
    odd = f", with {' and '.join(one.odd)}" if one.odd else ""
    aims = f" ({', '.join(one.aims)})" if one.aims else ""
    return f"set `{one.name}`{aims}{odd}"


# What programs make of odd numbers is not always said by anybody: such sets are left out.

#: Odd values that operations may spread.
_NO_NUMBERS = frozenset({"NaN", "infinity", "extreme numbers", OUT_OF_DOMAIN})
#: Libraries that compilers call, and never rewrite: both sides make the same call.
_LAPACK: Final = ("lapack_", "blas_")
#: LAPACK's balancing before eigenvalues refuses a NaN with a message, and returns what was in memory.
_BALANCED: Final = ("geev",)


def left_open(module: Module, is_bounded: bool = False) -> frozenset[str]:
    """What is odd about sets, and nobody says what becomes of it.

    Bounds of the user (`is_bounded`) leave none of it. Linear algebra is a library's affair: of NaN LAPACK
    makes NaN, or says in its `info` that it failed, and XLA's CPU client and the reference call the same
    routines; infinities and the ends of the range depend on how a routine scales. Batch normalization is
    arithmetic (XLA: operation_semantics.md), in an order that is open where a number is infinite. And whether
    a convolution multiplies by the zeros of its padding, which makes NaN of infinity, is up to the compiler.
    """
    if is_bounded:
        return _NO_NUMBERS | {"negative zeros"}
    found: frozenset[str] = frozenset()
    for instruction in module.instructions():
        found |= _open_in(instruction)
    return found


def _open_in(instruction: Instruction) -> frozenset[str]:
    if instruction.opcode == "custom-call":
        target = instruction.custom_call_target
        if target in TRANSPARENT:
            return frozenset()
        is_known = target.startswith(_LAPACK) and not any(name in target for name in _BALANCED)
        return _NO_NUMBERS - {"NaN"} if is_known else _NO_NUMBERS
    if instruction.opcode == "convolution" or instruction.opcode.startswith("batch-norm-"):
        return _NO_NUMBERS - {"NaN"}
    return _NO_NUMBERS if instruction.row.opcode_class is Class.LIBRARY else frozenset()
