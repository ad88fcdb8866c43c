"""Compilations that did not finish, or are slow: functions compiled again, Python loops unrolled."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from hlotool.checks.facts import joined_shapes
from hlotool.checks.program_records import ProgramFacts
from hlotool.checks.records import Finding, Severity
from hlotool.checks.rules import Problem, Subject, dump_rule, module_rule
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.walk import post_order

_REMEDY = (
    "hlotool explain knows many messages of the compiler; hlotool reduce FILE --backend xla makes the program"
    " small while XLA fails on it. Was the process killed (memory, time), or still at work: nothing is wrong"
)


@dump_rule(
    "unfinished-compilation",
    Severity.ERROR,
    "a program that the compiler began with and did not come to an end with",
    remedy=_REMEDY,
)
def unfinished_compilation(programs: Sequence[ProgramFacts]) -> Iterator[Finding]:
    """One finding for each, with the pass that was entered last."""
    for program in programs:
        if program.unfinished:
            yield Finding(
                rule="unfinished-compilation",
                severity=Severity.ERROR,
                message=program.unfinished,
                file=program.file,
                module=program.module,
                remedy=_REMEDY,
            )


_REMEDIES = {
    "shapes": "pad to a few sizes, or let the dimension vary (tf.function input_signature with None)",
    "last batch": "drop the last partial batch (drop_remainder=True), or pad it",
    "types": "convert arguments to one dtype before the call; a Python number is weakly typed",
    "constants": "pass what changes as an array argument, not as a Python number or static argument",
    "same": "define the jitted function once, outside of the loop: each new function object compiles again",
    "program": "the function itself changed: closures, flags, a Python loop of another length",
}


@dump_rule(
    "recompilation",
    Severity.WARNING,
    "a function that was compiled several times",
)
def recompilation(programs: Sequence[ProgramFacts]) -> Iterator[Finding]:
    """One finding for each function with more than one program, and what differs from one to the next.

    Operations that JAX executes one by one, outside of any jitted function, are no functions.
    """
    groups: dict[tuple[str, ...], list[ProgramFacts]] = {}
    for program in programs:
        if program.is_eager:
            continue  # each shape once, as intended
        groups.setdefault(_key(program), []).append(program)
    for group in groups.values():
        if len(group) > 1:
            yield _finding(group)


_NUMBERED = re.compile(r"(?:^|\.)module_\d{4,}(?:\.|$)")


def _key(program: ProgramFacts) -> tuple[str, ...]:
    """Where it was compiled, and the function.

    That is the folder of a dump; files without a module's number, which somebody put side by side, are each
    for itself. PyTorch/XLA calls all programs alike: the operations tell functions apart. JAX calls a
    function and its gradient alike: they return another number of results.
    """
    folder, _, title = program.module.rpartition("/")
    if not _NUMBERED.search(title):
        folder = program.file.partition("#")[0]
    distinct = program.structure if program.frontend == "torch" else ""
    return folder, program.frontend, program.function, distinct, str(len(program.results))


def _finding(group: list[ProgramFacts]) -> Finding:
    changes = [change for one, other in pairwise(group) for change in _changes(one, other)]
    kinds = list(dict.fromkeys(kind for kind, _ in changes))
    if kinds == ["shapes"] and _is_last_batch(group):
        kinds = ["last batch"]
    return Finding(
        rule="recompilation",
        severity=Severity.WARNING,
        message=f"{group[0].function} was compiled {len(group)} times{_retraces(group)}: "
        + ", ".join(_WORDS[kind] for kind in kinds),
        file=group[0].file,
        module=group[0].module,
        details=[text for _, text in changes],
        remedy=_REMEDIES[kinds[0]],
    )


_WORDS = {
    "shapes": "the shapes of its arguments changed",
    "last batch": "the last batch is smaller",
    "types": "the element types of its arguments changed",
    "constants": "values that are compiled in changed",
    "same": "the same program again",
    "program": "the program itself changed",
}


def _retraces(group: Sequence[ProgramFacts]) -> str:
    """TensorFlow: whether it was also traced again."""
    traces = {program.trace for program in group if program.trace}
    if not traces:
        return ""
    return " from one trace" if len(traces) == 1 else f", traced {len(traces)} times"


def _changes(one: ProgramFacts, other: ProgramFacts) -> list[tuple[str, str]]:
    """What differs, as kind and line; the most telling kind alone."""
    step = f"{_number(one)} → {_number(other)}"
    if one.text == other.text:
        return [("same", f"{step}: no difference")]
    parameters = list(_parameter_changes(one, other))
    if parameters:
        return [(kind, f"{step}: {text}") for kind, text in parameters]
    if one.structure == other.structure:
        return [("constants", f"{step}: {text}") for text in _constant_changes(one, other)]
    results = f"; results {joined_shapes(one.results)} → {joined_shapes(other.results)}"
    counts = f"{one.instructions} → {other.instructions} instructions"
    return [("program", f"{step}: {counts}{results if one.results != other.results else ''}")]


def _number(program: ProgramFacts) -> str:
    """`module_0002` of the module's title."""
    return program.module.rsplit("/", 1)[-1].split(".", 1)[0]


def _parameter_changes(one: ProgramFacts, other: ProgramFacts) -> Iterator[tuple[str, str]]:
    if len(one.parameters) != len(other.parameters):
        yield "program", f"{len(one.parameters)} → {len(other.parameters)} arguments"
        return
    for number, (left, right) in enumerate(zip(one.parameters, other.parameters)):
        if left.shape != right.shape:
            same_type = left.shape.partition("[")[0] == right.shape.partition("[")[0]
            kind = "shapes" if same_type else "types"
            yield kind, f"argument {number} ({left.name}): {left.shape} → {right.shape}"


def _constant_changes(one: ProgramFacts, other: ProgramFacts) -> Iterator[str]:
    before, after = list(one.constants), list(other.constants)
    for value in one.constants:
        if value in after:
            after.remove(value)
            before.remove(value)
    changed = list(dict.fromkeys(f"{left} → {right}" for left, right in zip(before, after)))
    if changed:
        yield "constants " + "; ".join(changed[:4]) + ("; …" if len(changed) > 4 else "")
    else:
        yield f"results {joined_shapes(one.results)} → {joined_shapes(other.results)}"


def _is_last_batch(group: Sequence[ProgramFacts]) -> bool:
    """Two programs, the second with a smaller first dimension of some arguments and nothing else changed."""
    if len(group) != 2:
        return False
    pairs = [
        (left.shape, right.shape)
        for left, right in zip(group[0].parameters, group[1].parameters)
        if left.shape != right.shape
    ]
    return all(_is_smaller_batch(left, right) for left, right in pairs)


def _is_smaller_batch(left: str, right: str) -> bool:
    one, other = (shape.partition("[")[2].rstrip("]").split(",") for shape in (left, right))
    if len(one) != len(other) or one[1:] != other[1:] or not (one[0].isdecimal() and other[0].isdecimal()):
        return False
    return 1 < int(other[0]) < int(one[0]) or (other[0] == "1" and int(one[0]) > 2)


#: So many copies of one line of a program are taken for a loop.
COPIES = 8
#: From here on compile time and code size suffer.
MANY_COPIES = 64

_NUMBERS = re.compile(r"_\d+(?=/|$)")
_TRIVIAL = opcodes_with(Trait.STRUCTURE, Trait.REGROUPS) - {"copy", "transpose"} | {"iota", "convert"}


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
