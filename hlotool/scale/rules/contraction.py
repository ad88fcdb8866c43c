"""Products of matrices, and windows that move over arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hlotool.ir.attributes import AttributeValue, ConvolutionDimensions, Window, WindowDim
from hlotool.ir.module import Instruction
from hlotool.scale.rules.base import Number, Relations, Restated, place, relates
from hlotool.scale.terms import Size


@relates("dot")
def dot(known: Relations, instruction: Instruction) -> None:
    """Batch dimensions, then those of the left that are free, then those of the right."""
    left, right = known.of(instruction.operands[0]), known.of(instruction.operands[1])
    if len(instruction.operands) > 2:
        known.freeze_around(instruction, f"{place(instruction)}: sparse operands")
        return
    batch = instruction.integers("lhs_batch_dims", ()), instruction.integers("rhs_batch_dims", ())
    summed = (
        instruction.integers("lhs_contracting_dims", ()),
        instruction.integers("rhs_contracting_dims", ()),
    )
    for one, other in (*zip(*batch), *zip(*summed)):
        known.sizes.unify(left[one], right[other])
    free = [s for n, s in enumerate(left) if n not in (*batch[0], *summed[0])]
    free += [s for n, s in enumerate(right) if n not in (*batch[1], *summed[1])]
    known.sizes.unify_all(known.of(instruction), [*(left[n] for n in batch[0]), *free])


@relates("convolution")
def convolution(known: Relations, instruction: Instruction) -> Restated:
    """Features and batch are related where groups allow it; spatial dimensions by their windows."""
    sizes, roles = known.sizes, instruction.attribute("dim_labels", ConvolutionDimensions)
    image, kernel = known.of(instruction.operands[0]), known.of(instruction.operands[1])
    result = known.of(instruction)
    groups = sizes.new(instruction.integer("feature_group_count", 1))
    batches = sizes.new(instruction.integer("batch_group_count", 1))
    why = f"{place(instruction)}: groups that cannot be told"
    # Groups lie one behind the other: the image's features are groups of those that the kernel takes.
    sizes.same_product([image[roles.input_feature]], [groups, kernel[roles.kernel_input_feature]], why)
    given, made = image[roles.input_batch], result[roles.output_batch]
    sizes.same_product([given], [batches, made], why)
    features, out = kernel[roles.kernel_output_feature], result[roles.output_feature]
    sizes.unify(features, out)
    for count in (groups, batches):
        if count.value > 1:
            sizes.same_product([features], [count, sizes.new(features.value // count.value)], why)
    windows = _windows(
        known,
        instruction,
        [image[d] for d in roles.input_spatial],
        [kernel[d] for d in roles.kernel_spatial],
        [result[d] for d in roles.output_spatial],
    )

    def restated(number: Number) -> dict[str, AttributeValue]:
        """The number of groups, and windows."""
        made = windows(number)
        if groups.value > 1:
            made["feature_group_count"] = number(groups)
        if batches.value > 1:
            made["batch_group_count"] = number(batches)
        return made

    return restated


@relates("reduce-window")
def reduce_window(known: Relations, instruction: Instruction) -> Restated:
    """Every dimension by its window; all inputs are alike."""
    inputs = instruction.operands[: len(instruction.operands) // 2]
    first, results = known.of(inputs[0]), known.leaves(instruction)
    for one in inputs[1:]:
        known.sizes.unify_all(first, known.of(one))
    for dims in results[1:]:
        known.sizes.unify_all(results[0], dims)
    windows = [known.sizes.new(dim.size) for dim in instruction.window.dims]
    return _windows(known, instruction, first, windows, results[0])


@relates("select-and-scatter")
def select_and_scatter(known: Relations, instruction: Instruction) -> Restated:
    """The operand and the result are alike, and windows lead from them to the source."""
    operand, source, _ = (known.of(one) for one in instruction.operands)
    known.sizes.unify_all(operand, known.of(instruction))
    windows = [known.sizes.new(dim.size) for dim in instruction.window.dims]
    return _windows(known, instruction, operand, windows, source)


def _windows(
    known: Relations,
    instruction: Instruction,
    given: Sequence[Size],
    windows: Sequence[Size],
    made: Sequence[Size],
) -> Callable[[Number], dict[str, AttributeValue]]:
    """Relate sizes before and after windows; returns what restates the attribute `window`."""
    dims = instruction.window.dims
    if len(dims) != len(given):
        dims = (WindowDim(1),) * len(given)
    restating = [_window(known, instruction, *each) for each in zip(dims, given, windows, made)]

    def restated(number: Number) -> dict[str, AttributeValue]:
        """Windows of the new sizes, steps and padding."""
        if "window" not in instruction.attributes:
            return {}
        return {"window": Window(tuple(restate(number) for restate in restating))}

    return restated


#: One dimension of a window, as it is when sizes are other numbers.
_Restated = Callable[[Number], WindowDim]


def _window(
    known: Relations, instruction: Instruction, dim: WindowDim, given: Size, window: Size, made: Size
) -> _Restated:
    """Relate one dimension."""
    sizes, why = known.sizes, f"{place(instruction)}: a window of {dim.size} over {given.value}"
    is_plain = dim.base_dilation == 1 and (dim.window_dilation == 1 or dim.size == 1)
    is_padded = dim.pad_low != 0 or dim.pad_high != 0
    if is_plain and not is_padded and dim.size == given.value and made.value == 1:
        # One window over everything.
        sizes.unify(given, window)
        is_tile = dim.stride == dim.size
        return lambda number: replace(
            dim, size=number(window), stride=number(window) if is_tile else dim.stride
        )
    if is_plain and not is_padded and 1 < dim.stride == dim.size and given.value == dim.size * made.value:
        # Tiles side by side.
        sizes.same_product([given], [made, window], why)
        return lambda number: replace(dim, size=number(window), stride=number(window))
    if instruction.opcode == "reduce-window" and is_plain and _are_tiles(dim, given.value, made.value):
        return lambda number: _tiles(dim, number(given), number(made))
    if _is_running(dim, given.value, made.value):
        # Everything up to here, or from here on.
        sizes.unify(given, made)
        sizes.unify(given, window)
        return lambda number: replace(
            dim,
            size=number(window),
            pad_low=number(window) - 1 if dim.pad_low else 0,
            pad_high=number(window) - 1 if dim.pad_high else 0,
        )
    sizes.freeze(window, why)
    _strided(known, dim, given, made, why)
    return lambda number: dim


def _strided(known: Relations, dim: WindowDim, given: Size, made: Size, why: str) -> None:
    """Windows that stay, over more or fewer elements: what is taken in steps of `stride` gives as many
    more as there are steps more, and what is set `base_dilation` apart so many times more.

    A window that holds more than there is, or nothing but padding, says nothing of other sizes.
    """
    sizes, stride, apart = known.sizes, dim.stride, dim.base_dilation
    says_nothing = min(given.value, made.value) < 2 or dim.size >= given.value * apart
    if (says_nothing and (given.value != made.value or stride != apart)) or min(stride, apart) > 1:
        sizes.freeze_all((given, made), why)
        return
    large, small = (given, made) if apart == 1 else (made, given)
    sizes.same_multiple(large, small, stride * apart, why)


def _are_tiles(dim: WindowDim, given: int, made: int) -> bool:
    """Whether every element is in one window, with padding around all of them."""
    padded = given + dim.pad_low + dim.pad_high
    return (
        1 < dim.stride == dim.size
        and 0 <= dim.pad_low < dim.size
        and 0 <= dim.pad_high < dim.size
        and padded == made * dim.size > given
    )


def _tiles(dim: WindowDim, given: int, made: int) -> WindowDim:
    """As many windows that hold every element once; XLA: tree_reduction_rewriter.cc pads them so."""
    size = -(-given // made)
    padding = made * size - given
    low = padding * dim.pad_low // (dim.pad_low + dim.pad_high)
    return replace(dim, size=size, stride=size, pad_low=low, pad_high=padding - low)


def _is_running(dim: WindowDim, given: int, made: int) -> bool:
    """Whether the window sees everything up to each element, or everything from it on: a running sum."""
    is_plain = dim.stride == dim.base_dilation == dim.window_dilation == 1
    one_sided = sorted((dim.pad_low, dim.pad_high)) == [0, given - 1]
    return is_plain and given == made == dim.size and one_sided
