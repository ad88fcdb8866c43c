"""What is moved: broadcasts, transposes, reshapes, slices, pads, concatenations, bitcasts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hlotool.ir.attributes import AttributeValue, PaddingDim, SliceDim
from hlotool.ir.module import Instruction
from hlotool.scale.rules.base import Number, Relations, Restated, place, relates
from hlotool.scale.terms import Size


@relates("broadcast")
def broadcast(known: Relations, instruction: Instruction) -> None:
    """Dimension i of the operand is dimension `dimensions[i]` of the result."""
    result = known.of(instruction)
    for size, target in zip(known.of(instruction.operands[0]), instruction.integers("dimensions", ())):
        if size.value == result[target].value:
            known.sizes.unify(size, result[target])


@relates("transpose")
def transpose(known: Relations, instruction: Instruction) -> None:
    """Dimension i of the result is dimension `dimensions[i]` of the operand."""
    given = known.of(instruction.operands[0])
    moved = [given[source] for source in instruction.integers("dimensions")]
    known.sizes.unify_all(known.of(instruction), moved)


@relates("reshape")
def reshape(known: Relations, instruction: Instruction) -> None:
    """The same elements, in row-major order."""
    given, result = known.of(instruction.operands[0]), known.of(instruction)
    known.sizes.same_elements(given, result, f"{place(instruction)} cannot be told as factors")


@relates("bitcast")
def bitcast(known: Relations, instruction: Instruction) -> None:
    """The same elements in the order of memory, which the layouts say.

    Layouts with tiles and padding, and other widths of elements, are understood only where no size changes.
    """
    (operand,) = instruction.operands
    given, result = operand.array_shape, instruction.array_shape
    sizes, others = known.of(operand), known.of(instruction)
    layouts = (given.layout_or_default, result.layout_or_default)
    is_plain = all(replace(layout, memory_space=0).is_plain for layout in layouts)
    if not is_plain and given.dims == result.dims and layouts[0].minor_to_major == layouts[1].minor_to_major:
        known.sizes.unify_all(sizes, others)
    elif not is_plain or given.element_type.bits != result.element_type.bits:
        known.freeze_around(instruction, f"{place(instruction)}: layouts with tiles, or other element types")
    else:
        left = [sizes[d] for d in reversed(given.minor_to_major)]
        right = [others[d] for d in reversed(result.minor_to_major)]
        known.sizes.same_elements(left, right, f"{place(instruction)} cannot be told as factors")


@relates("bitcast-convert")
def bitcast_convert(known: Relations, instruction: Instruction) -> None:
    """Other widths of elements add or take the last dimension, which stays."""
    given, result = known.of(instruction.operands[0]), known.of(instruction)
    shared = min(len(given), len(result))
    known.sizes.unify_all(given[:shared], result[:shared])
    known.sizes.freeze_all((*given[shared:], *result[shared:]), f"{place(instruction)}: parts of elements")


@relates("concatenate")
def concatenate(known: Relations, instruction: Instruction) -> None:
    """A sum along one dimension, the same sizes in all others."""
    (along,) = instruction.integers("dimensions")
    result = known.of(instruction)
    operands = [known.of(operand) for operand in instruction.operands]
    for dims in operands:
        for number, size in enumerate(dims):
            if number != along:
                known.sizes.unify(size, result[number])
    why = f"{place(instruction)}: parts that cannot be told"
    known.sizes.same_sum(result[along], [dims[along] for dims in operands], why)


@relates("slice")
def slice_(known: Relations, instruction: Instruction) -> Restated:
    """A part of a sum: what lies before it, itself, what lies behind it. One of every so many elements is
    a factor; other steps freeze both sizes."""
    restating: list[Callable[[Number], SliceDim]] = []
    bounds = instruction.listed("slice", SliceDim)
    for whole, part, bound in zip(known.of(instruction.operands[0]), known.of(instruction), bounds):
        if bound.stride != 1:
            restating.append(_in_steps(known, instruction, whole, part, bound))
        else:
            restating.append(_between(known, instruction, whole, part, bound))
    return lambda number: {"slice": tuple(restate(number) for restate in restating)}


def _between(
    known: Relations, instruction: Instruction, whole: Size, part: Size, bound: SliceDim
) -> Callable[[Number], SliceDim]:
    sizes, why = known.sizes, f"{place(instruction)}: bounds that cannot be told"
    before = sizes.new(bound.start) if bound.start > 1 else sizes.fixed(bound.start, "0 or 1")
    behind = sizes.new(whole.value - bound.limit)
    sizes.same_sum(whole, [before, part, behind], why)
    sizes.freeze_all([s for s in (before, part, behind) if sizes.root(whole).why], why)
    return lambda number: SliceDim(number(before), number(before) + number(part))


def _in_steps(
    known: Relations, instruction: Instruction, whole: Size, part: Size, bound: SliceDim
) -> Callable[[Number], SliceDim]:
    behind = whole.value - bound.limit
    if max(bound.start, behind) < bound.stride and whole.value == bound.stride * part.value > 0:
        known.sizes.same_multiple(
            whole, part, bound.stride, f"{place(instruction)}: steps that cannot be told"
        )
    else:
        known.sizes.freeze_all((whole, part), f"{place(instruction)}: a slice with steps")
    return lambda number: replace(bound, limit=number(whole) - behind)


@relates("pad")
def pad(known: Relations, instruction: Instruction) -> Restated:
    """A sum of what is added and what was there; what is taken away instead lies in the operand."""
    sizes = known.sizes
    given, result = known.of(instruction.operands[0]), known.of(instruction)
    amounts: list[tuple[Size, Size]] = []
    paddings = instruction.listed("padding", PaddingDim)
    why = f"{place(instruction)}: padding that cannot be told"
    for size, made, padding in zip(given, result, paddings):
        low, high = sizes.new(abs(padding.low)), sizes.new(abs(padding.high))
        amounts.append((low, high))
        if padding.interior:
            sizes.freeze_all((low, high), "beside padding between elements")
            if size.value > 1 and min(padding.low, padding.high) >= 0:
                sizes.same_multiple(made, size, padding.interior + 1, why)
            else:
                sizes.freeze_all((size, made), f"{place(instruction)}: padding between elements")
            continue
        kept = made.value - max(padding.low, 0) - max(padding.high, 0)
        if kept < 0 or ((padding.low < 0 or padding.high < 0) and kept == 0):
            sizes.freeze_all((size, made, low, high), why)
            continue
        middle = sizes.new(kept)
        left = [*([low] if padding.low < 0 else []), middle, *([high] if padding.high < 0 else [])]
        right = [*([low] if padding.low > 0 else []), middle, *([high] if padding.high > 0 else [])]
        sizes.same_sum(size, left, why)
        sizes.same_sum(made, right, why)

    def restated(number: Number) -> dict[str, AttributeValue]:
        """Amounts with the signs that they had."""
        return {
            "padding": tuple(
                PaddingDim(_signed(number(low), old.low), _signed(number(high), old.high), old.interior)
                for (low, high), old in zip(amounts, paddings)
            )
        }

    return restated


def _signed(amount: int, old: int) -> int:
    return -amount if old < 0 else amount
