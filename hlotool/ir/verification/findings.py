"""Collecting what is wrong instead of stopping at the first error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct, field

from hlotool.errors import Location, VerificationError
from hlotool.ir.module import Computation, Instruction, Module

#: Rules on the form in which XLA keeps programs. What a program computes does not depend on them.
FORMAL_RULES = frozenset(
    {
        "async-computation",
        "async-users",
        "collective-layout",
        "composite",
        "constrain-layout",
        "execution-thread",
        "fusion",
    }
)


class VerifyOptions(Struct, frozen=True):
    """How strict the verifier is.

    Attributes:
        mixed_precision: floating-point operands and results of one instruction may differ in width, as in
            programs compiled for TPU; XLA forbids it elsewhere.
        layout_sensitive: the program is past layout assignment, and its layouts are judged.
    """

    mixed_precision: bool = True
    layout_sensitive: bool = False


class Findings(Struct):
    """Everything that is wrong with a module, in the order it was found.

    Attributes:
        module: that is looked at; it does not change meanwhile.
        options: how strictly.
        errors: the findings.
        judged: opcodes with the shapes and attributes that were found right.
    """

    module: Module
    options: VerifyOptions = field(default_factory=VerifyOptions)
    errors: list[VerificationError] = field(default_factory=list)
    judged: set[tuple[object, ...]] = field(default_factory=set)

    def add(self, rule: str, message: str, where: Instruction | Computation | None = None) -> None:
        """Report a broken rule."""
        line = where.line if where is not None else 0
        location = Location(self.module.path, line)
        self.errors.append(VerificationError(rule, message, where.name if where else None, location))

    def check(
        self, holds: bool, rule: str, message: str, where: Instruction | Computation | None = None
    ) -> None:
        """Report a broken rule unless `holds`."""
        if not holds:
            self.add(rule, message, where)

    @contextmanager
    def collecting(self, where: Instruction) -> Iterator[None]:
        """Take up a VerificationError that the body raises, as a finding about `where`."""
        try:
            yield
        except VerificationError as error:
            self.add(error.rule, error.message, where)
