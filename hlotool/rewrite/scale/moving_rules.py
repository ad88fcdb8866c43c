"""Sizes around what only moves values: reshapes, slices, gathers, scatters, calls, loops, tuples."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from hlotool.ir.attributes import AttributeValue, PaddingDim, SliceDim
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.walk import branches
from hlotool.rewrite.scale.sizes import Number, Relations, Restated, place, relates
from hlotool.rewrite.scale.terms import Size


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
    known.sizes.same_elements(given, result, f"{place(instruction)} cannot be derived as factors")


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
        known.sizes.same_elements(left, right, f"{place(instruction)} cannot be derived as factors")


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
    why = f"{place(instruction)}: parts that cannot be derived"
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
    sizes, why = known.sizes, f"{place(instruction)}: bounds that cannot be derived"
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
            whole, part, bound.stride, f"{place(instruction)}: steps that cannot be derived"
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
    why = f"{place(instruction)}: padding that cannot be derived"
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


def _parts(known: Relations, wholes: Sequence[Size], parts: Sequence[Size]) -> None:
    """A window is all of a dimension, one element, or no larger than it."""
    for whole, part in zip(wholes, parts):
        if whole.value == part.value:
            known.sizes.unify(whole, part)
        elif part.value > 1:
            known.sizes.no_larger(part, whole)


@relates("dynamic-slice")
def dynamic_slice(known: Relations, instruction: Instruction) -> Restated:
    """The result is a window of the operand."""
    result = known.of(instruction)
    _parts(known, known.of(instruction.operands[0]), result)
    _free_of_places(known, instruction.operands[1:])
    return lambda number: {"dynamic_slice_sizes": tuple(map(number, result))}


@relates("dynamic-update-slice")
def dynamic_update_slice(known: Relations, instruction: Instruction) -> None:
    """The update is a window of the operand, which the result is like."""
    operand, update = known.of(instruction.operands[0]), known.of(instruction.operands[1])
    known.sizes.unify_all(operand, known.of(instruction))
    _parts(known, operand, update)
    _free_of_places(known, instruction.operands[2:])


def _free_of_places(known: Relations, places: Sequence[Instruction]) -> None:
    """Where a window begins: scalars, or a vector with a number for each dimension."""
    for one in places:
        known.freeze(one, "a number for each dimension")


@relates("gather")
def gather(known: Relations, instruction: Instruction) -> Restated:
    """Windows of the operand, one for each vector of indices."""
    sizes = known.sizes
    operand, indices = (known.of(one) for one in instruction.operands)
    result, old = known.of(instruction), instruction.integers("slice_sizes")
    windows = [sizes.new(size) for size in old]
    _parts(known, operand, windows)
    batching = instruction.integers("operand_batching_dims", ())
    gone = (*instruction.integers("collapsed_slice_dims"), *batching)
    offsets = instruction.integers("offset_dims")
    seen = [window for number, window in enumerate(windows) if number not in gone]
    for size, window in zip((result[d] for d in offsets), seen):
        sizes.unify(size, window)
    _batches(
        known, instruction, operand, indices, [s for n, s in enumerate(result) if n not in offsets], batching
    )
    sizes.freeze_all([s for n, s in enumerate(windows) if n in gone], "one element")
    return lambda number: {"slice_sizes": tuple(map(number, windows))}


def _batches(
    known: Relations,
    instruction: Instruction,
    operand: Sequence[Size],
    indices: Sequence[Size],
    batches: Sequence[Size],
    batching: Sequence[int],
) -> None:
    """All dimensions of the indices but the vector's are those of the result that no window has."""
    vector = instruction.integer("index_vector_dim")
    if vector < len(indices):
        known.sizes.freeze(indices[vector], "a number for each dimension")
    known.sizes.unify_all([s for n, s in enumerate(indices) if n != vector], batches)
    name = (
        "start_indices_batching_dims" if instruction.opcode == "gather" else "scatter_indices_batching_dims"
    )
    for one, other in zip(batching, instruction.integers(name, ())):
        known.sizes.unify(operand[one], indices[other])


@relates("scatter")
def scatter(known: Relations, instruction: Instruction) -> None:
    """Windows of updates, one for each vector of indices, go into operands that the results are like."""
    count = len(instruction.operands) // 2
    operands = [known.of(one) for one in instruction.operands[:count]]
    indices = known.of(instruction.operands[count])
    for operand, result in zip(operands, known.leaves(instruction)):
        known.sizes.unify_all(operand, result)
    batching = instruction.integers("input_batching_dims", ())
    gone = (*instruction.integers("inserted_window_dims"), *batching)
    windows = instruction.integers("update_window_dims")
    for operand, update in zip(operands, map(known.of, instruction.operands[count + 1 :])):
        known.sizes.unify_all(operands[0], operand)
        kept = [size for number, size in enumerate(operand) if number not in gone]
        _parts(known, kept, [update[d] for d in windows])
        free = [size for number, size in enumerate(update) if number not in windows]
        _batches(known, instruction, operand, indices, free, batching)


def _arguments(known: Relations, instruction: Instruction, callee: Computation, first: int = 0) -> None:
    for parameter, operand in zip(callee.parameters, instruction.operands[first:]):
        known.equal(parameter, operand)


@relates("tuple")
def tuple_(known: Relations, instruction: Instruction) -> None:
    """The operands side by side."""
    result = known.dims[instruction]
    for number, operand in enumerate(instruction.operands):
        for index, dims in known.dims[operand].items():
            known.sizes.unify_all(dims, result[number, *index])


@relates("get-tuple-element")
def element(known: Relations, instruction: Instruction) -> None:
    """One element of a tuple."""
    whole, number = known.dims[instruction.operands[0]], instruction.integer("index")
    for index, dims in known.dims[instruction].items():
        known.sizes.unify_all(dims, whole[number, *index])


@relates("call", "fusion")
def call(known: Relations, instruction: Instruction) -> None:
    """What the computation takes and returns."""
    for callee in instruction.called:
        _arguments(known, instruction, callee)
        known.equal(instruction, callee.root)


@relates("while")
def loop(known: Relations, instruction: Instruction) -> None:
    """The state is what both computations take and the body returns."""
    body, condition = instruction.computation("body"), instruction.computation("condition")
    known.equal(instruction, instruction.operands[0])
    _arguments(known, instruction, body)
    _arguments(known, instruction, condition)
    known.equal(instruction, body.root)


@relates("conditional")
def conditional(known: Relations, instruction: Instruction) -> None:
    """Each branch takes its operand, and all return the same."""
    for number, callee in enumerate(branches(instruction)):
        _arguments(known, instruction, callee, 1 + number)
        known.equal(instruction, callee.root)


@relates("async-start")
def begun(known: Relations, instruction: Instruction) -> None:
    """((operands…), result, contexts…)."""
    for callee in instruction.called:
        _arguments(known, instruction, callee)
    result = known.dims[instruction]
    for number, operand in enumerate(instruction.operands):
        for index, dims in known.dims[operand].items():
            known.sizes.unify_all(dims, result[0, number, *index])
    for callee in instruction.called:
        for index, dims in known.dims[callee.root].items():
            known.sizes.unify_all(dims, result[1, *index])


@relates("async-update")
def goes_on(known: Relations, instruction: Instruction) -> None:
    """What was begun."""
    known.equal(instruction, instruction.operands[0])


@relates("async-done", "copy-done", "all-gather-done", "collective-permute-done")
def done(known: Relations, instruction: Instruction) -> None:
    """Of what was begun the result: the second part, of a copy the first."""
    number = 0 if instruction.opcode == "copy-done" else 1
    whole = known.dims[instruction.operands[0]]
    for index, dims in known.dims[instruction].items():
        if (number, *index) not in whole:
            known.freeze_around(instruction, f"{place(instruction)}: another tuple than was begun")
            return
        known.sizes.unify_all(dims, whole[number, *index])


@relates("copy-start")
def copy_begun(known: Relations, instruction: Instruction) -> None:
    """(destination, source, context)."""
    given, result = known.of(instruction.operands[0]), known.dims[instruction]
    for number in (0, 1):
        known.sizes.unify_all(given, result[(number,)])
