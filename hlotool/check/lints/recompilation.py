"""Functions that were compiled more than once, and what changed in between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from hlotool.check.facts import ProgramFacts, joined_shapes
from hlotool.check.findings import Finding, Severity
from hlotool.check.rules import dump_rule

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


def _key(program: ProgramFacts) -> tuple[str, ...]:
    """Folder and function. PyTorch/XLA calls all programs alike: the operations tell functions apart."""
    folder = program.module.rpartition("/")[0]
    distinct = program.structure if program.frontend == "torch" else ""
    return folder, program.frontend, program.function, distinct


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
