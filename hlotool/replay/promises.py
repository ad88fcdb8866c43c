"""Promises that a compiled program makes to the code that is generated for it, and that are not so.

Some attributes change no value that an interpreter computes, and yet a backend relies on them: a trip count
that stands in a loop's `backend_config`, `unique_indices` and `indices_are_sorted` of scatters and gathers, a
sort that need not be stable, an operation in place, a product that need not be exact. A pass may state what
it has found out, and it must be true.

What a program states about itself is checked without running it where that is possible, and on the values
that occur in a run otherwise. What the program as it was given promises itself is its author's affair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from hlotool.analysis.missing_copies import missing_copies
from hlotool.analysis.trip_counts import false_trip_counts
from hlotool.backends.base import Value
from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import HlotoolError
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Class, opcodes_with
from hlotool.ir.types import ElementType
from hlotool.numerics.contributions import rounding_epsilon
from hlotool.numerics.ulp import epsilon
from hlotool.replay.promised_values import PromiseWatch, is_unstable

#: Of each kind so many are named.
_NAMED = 3


def broken_promises(
    reference: Module, tested: Module, arguments: Sequence[Value] | None, unit: float = 0.0
) -> list[str]:
    """What `tested` promises and does not keep, a line each; nothing that `reference` breaks, too.

    Args:
        reference: the program as it was given.
        tested: the same after some passes.
        arguments: of a run; None: only what holds of all runs is looked at.
        unit: one ulp at 1 of what the target may round operands of products to (`Freedoms.algorithm_unit`).
    """
    found = [
        *_false_trip_counts(reference, tested),
        *_missing_copies(reference, tested),
        *_lowered_products(reference, tested, unit),
    ]
    if arguments is not None and not found:
        found = broken_on(reference, tested, arguments)
    return found[:_NAMED]


def depends_on_values(reference: Module, tested: Module) -> bool:
    """Whether `tested` promises what only values tell."""
    return bool(PromiseWatch(tested, _has_stable_sort(reference)).readers)


def weaker_promises(reference: Module, tested: Module) -> list[str]:
    """What `reference` asks for and `tested` no longer does, a line each: whether that shows is open."""
    if not _has_stable_sort(reference):
        return []
    return [
        f"sort %{one.name} need no longer be stable: a backend may leave equal keys in any order"
        for one in tested.instructions()
        if is_unstable(one)
    ][:_NAMED]


def _lowered_products(reference: Module, tested: Module, unit: float) -> Iterator[str]:
    """Products that are told to be less exact than the program as it was given wants them.

    A product that asks for its precision keeps it, unless it is taken apart, or its operands have another
    type. Of others the target decides: no `algorithm` may round more than it does.
    """
    before = [one for one in reference.instructions() if _is_product(one)]
    after = [one for one in tested.instructions() if _is_product(one)]
    coarsest = max([unit, *map(_rounds_operands_to, before)])
    asked = {_origin(one): one for one in before if _asks_for_precision(one)}
    parts = Counter(map(_origin, after))
    for one in after:
        wanted = asked.get(_origin(one)) if _origin(one)[0] and parts[_origin(one)] == 1 else None
        limit = coarsest if wanted is None else _rounds_operands_to(wanted)
        name = f"{one.opcode} %{one.name}"
        if _rounds_operands_to(one) > max(limit, *map(epsilon, _given(one))):
            yield f"{name} says algorithm={one.attributes['algorithm']}: it is to round more than it may"
        elif wanted is not None and not _asks_for_precision(one) and _given(one) == _given(wanted):
            yield f"{name} no longer asks for {_precision(wanted)}: a backend may compute it with less"


def _false_trip_counts(reference: Module, tested: Module) -> Iterator[str]:
    if any(True for _ in false_trip_counts(reference)):
        return
    for loop, stated, true in false_trip_counts(tested):
        yield f"while %{loop.name} runs {true} times and states known_trip_count {stated}, code may go by it"


def _missing_copies(reference: Module, tested: Module) -> Iterator[str]:
    if not any(True for _ in missing_copies(reference)):
        yield from map(str, missing_copies(tested))


def broken_on(reference: Module, tested: Module, arguments: Sequence[Value]) -> list[str]:
    """What `tested` promises and values of a run break, a line each; nothing that `reference` breaks, too."""
    stable = _has_stable_sort(reference)
    watch = PromiseWatch(tested, stable)
    if not watch.readers:
        return []
    try:
        NumpyBackend().compile(tested).run(arguments, watch)
        if not watch.broken:
            return []
        own = PromiseWatch(reference, False)
        if own.readers:
            NumpyBackend().compile(reference).run(arguments, own)
    except HlotoolError:
        # The verdict does not rest on it.
        return []
    return [] if own.broken else watch.broken


def _has_stable_sort(module: Module) -> bool:
    """Whether a program asks for stable sorts, and for no others, of several arrays."""
    sorts = [i for i in module.instructions() if i.opcode == "sort" and len(i.operands) > 1]
    return bool(sorts) and not any(map(is_unstable, sorts))


def _is_product(instruction: Instruction) -> bool:
    return (
        instruction.opcode in opcodes_with(Class.CONTRACTION) - {"scaled-dot"}
        and instruction.element_type.is_inexact
    )


def _given(product: Instruction) -> list[ElementType]:
    return [operand.element_type for operand in product.operands[:2]]


def _rounds_operands_to(product: Instruction) -> float:
    """One ulp at 1 of what its `algorithm` rounds operands to; 0 where it names none, or none that rounds."""
    if product.opcode == "convolution" or product.attributes.get("algorithm") is None:
        return 0.0
    return rounding_epsilon(product, product.element_type)


def _precision(instruction: Instruction) -> str:
    algorithm = instruction.attributes.get("algorithm")
    if algorithm is not None:
        return f"algorithm={algorithm}"
    asked = instruction.attributes.get("operand_precision", ())
    return f"operand_precision={{{','.join(map(str, asked))}}}" if isinstance(asked, tuple) else "more"


def _asks_for_precision(instruction: Instruction) -> bool:
    """Whether the operands' own types are to be multiplied; `default` leaves that to the target."""
    if instruction.attributes.get("algorithm") is not None:
        return True
    asked = instruction.attributes.get("operand_precision", ())
    return isinstance(asked, tuple) and any(str(one) in ("high", "highest") for one in asked)


def _origin(instruction: Instruction) -> tuple[str, str, int]:
    """What tells which operation of the frontend's an instruction comes from; empty names tell nothing."""
    metadata = instruction.metadata
    if metadata is None or not metadata.op_name:
        return "", "", 0
    return instruction.opcode, metadata.op_name, metadata.source_line or metadata.stack_frame_id or 0
