"""Rules of the language: what XLA's own verifier enforces."""

from __future__ import annotations

from collections.abc import Iterator

from hlotool.check.findings import Severity
from hlotool.check.rules import Applies, Problem, module_rule
from hlotool.check.subject import Subject
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.verifier import verify

#: The rule that everything in the text is as it must be, constants included.
VALIDITY = "invalid-hlo"


@module_rule(
    VALIDITY,
    Severity.ERROR,
    "HLO that XLA's verifier rejects",
    remedy="a pass or a tool wrote it: `hlotool bisect` finds which",
    applies=Applies.EVERY_STAGE,
)
def invalid_hlo(subject: Subject) -> Iterator[Problem]:
    """Every broken rule of the verifier, named in the message."""
    module = subject.module
    named: dict[str, Instruction | Computation] = {c.name: c for c in module.computations}
    named.update((instruction.name, instruction) for instruction in module.instructions())
    for error in verify(module):
        yield Problem(f"{error.message} [{error.rule}]", named.get(error.instruction or ""))


@module_rule(
    "cut-text",
    Severity.ERROR,
    "a text that ends too early",
    remedy="dump it to files (--xla_dump_to=DIR): logs and messages have limits",
    applies=Applies.EVERY_STAGE,
)
def cut_text(subject: Subject) -> Iterator[Problem]:
    """Where the text ends; rules on the whole program are not applied to what is left."""
    if subject.module.cut:
        yield Problem(subject.module.cut)
