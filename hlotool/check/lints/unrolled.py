"""Python loops that were unrolled into the program."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hlotool.check.findings import Severity
from hlotool.check.rules import Problem, module_rule
from hlotool.check.subject import Subject
from hlotool.ir.module import Instruction
from hlotool.ir.walk import post_order

#: So many copies of one line of a program are taken for a loop.
COPIES = 8
#: From here on compile time and code size suffer.
MANY_COPIES = 64

_NUMBERS = re.compile(r"_\d+(?=/|$)")
_TRIVIAL = frozenset(
    {
        "constant", "broadcast", "parameter", "tuple", "get-tuple-element", "reshape", "bitcast", "iota",
        "convert",
    }
)  # fmt: skip


@module_rule(
    "unrolled-loop",
    Severity.NOTE,
    "a Python loop whose every step became instructions of its own",
    remedy="lax.fori_loop, lax.scan or tf.range: one body, whatever the number of steps",
)
def unrolled_loop(subject: Subject) -> Iterator[Problem]:
    """The largest group of equal operations from one line of the user's program, in one computation."""
    for computation in subject.computations:
        groups: dict[tuple[str, str, object], list[Instruction]] = {}
        for instruction in computation.instructions:
            if key := _origin(instruction):
                groups.setdefault(key, []).append(instruction)
        largest = max(groups.values(), key=len, default=[])
        if len(largest) >= COPIES and _depends_in_turn(largest):
            involved = sum(len(group) for group in groups.values() if len(group) >= len(largest) - 1)
            yield Problem(
                f"one line of the program stands here {len(largest)} times, with {involved} instructions",
                largest[0],
                severity=Severity.WARNING if len(largest) >= MANY_COPIES else None,
            )


def _origin(instruction: Instruction) -> tuple[str, str, object] | None:
    """Opcode and position in the user's program, TensorFlow's numbering of equal names left out."""
    metadata = instruction.metadata
    if metadata is None or instruction.opcode in _TRIVIAL or not metadata.op_name:
        return None
    position = metadata.stack_frame_id or (metadata.source_file, metadata.source_line)
    return instruction.opcode, _NUMBERS.sub("", metadata.op_name), position


def _depends_in_turn(copies: list[Instruction]) -> bool:
    """Each copy needs the one before it, as the steps of a loop do; copies side by side are no loop."""
    reached: set[Instruction] = {copies[0]}
    chained = 0
    members = set(copies)
    for instruction in post_order(copies[1:]):
        if any(operand in reached for operand in instruction.operands):
            reached.add(instruction)
            chained += instruction in members
    return chained >= (len(copies) - 1) * 3 // 4
