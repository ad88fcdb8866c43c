"""Products of matrices, and windows that move over arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hlotool.ir.attributes import AttributeValue, ConvolutionDimensions, Window, WindowDim
from hlotool.ir.module import Instruction
from hlotool.scale.rules.base import Number, Relations, Restated, place, relates
from hlotool.scale.rules.parts import is_in_parts, part_window
from hlotool.scale.sizes import Size


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
    parts = [
        instruction.opcode == "reduce-window" and is_in_parts(dim, whole.value, part.value)
        for dim, whole, part in zip(dims, given, made)
    ]
    pads = [
        (window, None, None) if in_parts else _window(known, instruction, dim, whole, window, part)
        for in_parts, dim, whole, window, part in zip(parts, dims, given, windows, made)
    ]
    for in_parts, window, part in zip(parts, windows, made):
        if in_parts:
            known.sizes.freeze_all((window, part), f"{place(instruction)}: parts of a reduction")

    def restated(number: Number) -> dict[str, AttributeValue]:
        """Windows of the new sizes, steps and padding."""
        changed = []
        for in_parts, dim, whole, window, part, (stride, low, high) in zip(
            parts, dims, given, windows, made, pads
        ):
            if in_parts:
                changed.append(part_window(dim, number(whole), number(part)))
                continue
            one = replace(dim, size=number(window), stride=number(stride))
            changed.append(
                replace(
                    one,
                    pad_low=dim.pad_low if low is None else number(low) - 1,
                    pad_high=dim.pad_high if high is None else number(high) - 1,
                )
            )
        return {"window": Window(tuple(changed))} if "window" in instruction.attributes else {}

    return restated


def _window(
    known: Relations, instruction: Instruction, dim: WindowDim, given: Size, window: Size, made: Size
) -> tuple[Size, Size | None, Size | None]:
    """Relate one dimension; returns the stride, and sizes that are one more than the padding where it
    scales."""
    sizes = known.sizes
    stride = sizes.fixed(dim.stride, "a stride")
    is_dilated = dim.base_dilation != 1 or (dim.window_dilation != 1 and dim.size != 1)
    is_padded = dim.pad_low != 0 or dim.pad_high != 0
    if dim.size == 1 and not is_padded and not is_dilated and dim.stride == 1:
        sizes.unify(given, made)
    elif not is_dilated and not is_padded and dim.size == given.value and made.value == 1:
        # One window over everything.
        sizes.unify(given, window)
        if dim.stride == dim.size:
            stride = window
    elif not is_dilated and not is_padded and dim.stride == dim.size and given.value == dim.size * made.value:
        # Tiles side by side.
        sizes.same_product([given], [made, window], f"{place(instruction)}: tiles that cannot be told")
        stride = window
    elif _is_running(dim, given.value, made.value):
        # Everything up to here, or from here on.
        sizes.unify(given, made)
        sizes.unify(given, window)
        return stride, window if dim.pad_low else None, window if dim.pad_high else None
    else:
        why = f"{place(instruction)}: a window of {dim.size} over {given.value}"
        sizes.freeze_all((given, window, made), why)
    return stride, None, None


def _is_running(dim: WindowDim, given: int, made: int) -> bool:
    """Whether the window sees everything up to each element, or everything from it on: a running sum."""
    is_plain = dim.stride == dim.base_dilation == dim.window_dilation == 1
    one_sided = sorted((dim.pad_low, dim.pad_high)) == [0, given - 1]
    return is_plain and given == made == dim.size and one_sided
