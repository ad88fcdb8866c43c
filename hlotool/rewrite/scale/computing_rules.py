"""Sizes around what computes: elementwise, reductions, sorts, products, windows, collectives.

Annotations that say on which devices values lie are related here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from hlotool.ir.attributes import AttributeValue, ConvolutionDimensions, Window, WindowDim
from hlotool.ir.devices import expand_groups
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import OPCODES, Class
from hlotool.ir.types import ArrayShape
from hlotool.rewrite.scale.sizes import Number, Relations, Restated, place, relates
from hlotool.rewrite.scale.terms import Dims, Size

_ELEMENTWISE = [name for name, row in OPCODES.items() if row.opcode_class is Class.ELEMENTWISE]


@relates(*_ELEMENTWISE, "reverse", "copy", "domain", "cholesky")
def elementwise(known: Relations, instruction: Instruction) -> None:
    """All sizes are equal; a scalar among arrays (`clamp`, `select`) says nothing."""
    for operand in instruction.operands:
        if isinstance(operand.shape, ArrayShape) and (operand.dims or not instruction.dims):
            known.sizes.unify_all(known.of(operand), known.of(instruction))


@relates("opt-barrier", "add-dependency", "all-reduce-done")
def handed_on(known: Relations, instruction: Instruction) -> None:
    """The first operand as it is."""
    known.equal(instruction, instruction.operands[0])


@relates("parameter", "constant", "iota", "after-all", "partition-id", "replica-id", "rng", "infeed")
def source(known: Relations, instruction: Instruction) -> None:
    """Of any size."""


@relates("rng-bit-generator")
def random_bits(known: Relations, instruction: Instruction) -> None:
    """The state is what the algorithm needs; the bits are of any size."""
    known.freeze(instruction.operands[0], "state of a random number generator")
    known.sizes.freeze_all(known.leaves(instruction)[0], "state of a random number generator")


@relates("rng-get-and-update-state")
def random_state(known: Relations, instruction: Instruction) -> None:
    """The state is what the algorithm needs."""
    known.freeze(instruction, "state of a random number generator")


@relates("reduce")
def reduce(known: Relations, instruction: Instruction) -> None:
    """Dimensions go, the others stay; all inputs are alike."""
    gone = set(instruction.integers("dimensions"))
    inputs = instruction.operands[: len(instruction.operands) // 2]
    first = known.of(inputs[0])
    kept = [size for number, size in enumerate(first) if number not in gone]
    for one in inputs[1:]:
        known.sizes.unify_all(first, known.of(one))
    for result in known.leaves(instruction):
        known.sizes.unify_all(kept, result)


@relates("sort")
def sort(known: Relations, instruction: Instruction) -> None:
    """All operands and results are alike."""
    first = known.of(instruction.operands[0])
    for one in instruction.operands[1:]:
        known.sizes.unify_all(first, known.of(one))
    for result in known.leaves(instruction):
        known.sizes.unify_all(first, result)


@relates("topk")
def topk(known: Relations, instruction: Instruction) -> Restated:
    """The last dimension becomes `k`, which is no larger."""
    values = largest(known, instruction)
    return lambda number: {"k": number(values[-1])}


def largest(known: Relations, instruction: Instruction) -> Dims:
    """Relate sizes where the last dimension becomes a number of largest elements; returns theirs."""
    given = known.of(instruction.operands[0])
    values, indices = known.leaves(instruction)
    known.sizes.unify_all(values, indices)
    known.sizes.unify_all(given[:-1], values[:-1])
    known.sizes.no_larger(values[-1], given[-1])
    return values


@relates("batch-norm-grad", "batch-norm-inference", "batch-norm-training")
def batch_norm(known: Relations, instruction: Instruction) -> None:
    """Arrays of the operand's shape, and vectors as long as its feature dimension."""
    whole = known.of(instruction.operands[0])
    feature = whole[instruction.integer("feature_index")]
    others = [known.of(operand) for operand in instruction.operands[1:]]
    for dims in (*others, *known.leaves(instruction)):
        known.sizes.unify_all(dims, whole if len(dims) == len(whole) > 1 else (feature,))


@relates("fft")
def fft(known: Relations, instruction: Instruction) -> None:
    """Lengths of transforms stay."""
    given, result = known.of(instruction.operands[0]), known.of(instruction)
    count = len(instruction.integers("fft_length"))
    known.sizes.unify_all(given[:-count], result[:-count])
    known.sizes.freeze_all(
        (*given[-count:], *result[-count:]), f"{place(instruction)}: length of a transform"
    )


@relates("triangular-solve")
def triangular_solve(known: Relations, instruction: Instruction) -> None:
    """Batches are alike; the matrix is square and as large as one side of the result."""
    matrix, right = (known.of(operand) for operand in instruction.operands)
    result = known.of(instruction)
    known.sizes.unify_all(right, result)
    known.sizes.unify_all(matrix[:-2], right[:-2])
    known.sizes.unify(matrix[-1], matrix[-2])
    side = -2 if instruction.flag("left_side") else -1
    known.sizes.unify(matrix[-1], right[side])


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
    why = f"{place(instruction)}: groups that cannot be derived"
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


#: Custom calls that hand on their operand: annotations of a partitioner, and of host offload.
HANDS_ON = frozenset(
    {
        "Sharding", "xla.sdy.FuncResultSharding", "MoveToHost", "MoveToDevice",
        "annotate_device_placement", "LayoutConstraint", "X64Combine", "Pin", "Unpin",
    }
)  # fmt: skip

#: Where a region in which devices have their own parts begins, and where it ends.
_REGIONS: Final = (
    "SPMDFullToShardShape",
    "xla.sdy.GlobalToLocalShape",
    "SPMDShardToFullShape",
    "xla.sdy.LocalToGlobalShape",
)


@relates("all-reduce", "all-reduce-start", "collective-broadcast", "collective-permute")
def exchanged(known: Relations, instruction: Instruction) -> None:
    """Every result is like its operand."""
    if len(instruction.operands) != len(known.dims[instruction]) or "slice_sizes" in instruction.attributes:
        known.freeze_around(instruction, f"{place(instruction)}: operands that are not its results")
        return
    for operand, result in zip(instruction.operands, known.leaves(instruction)):
        known.sizes.unify_all(known.of(operand), result)


@relates("all-gather", "reduce-scatter")
def gathered(known: Relations, instruction: Instruction) -> None:
    """One dimension is that of a device times their number, or the other way round."""
    (along,) = instruction.integers("dimensions")
    for operand, result in zip(instruction.operands, known.leaves(instruction)):
        part, whole = known.of(operand), result
        if instruction.opcode == "reduce-scatter":
            part, whole = whole, part
        for number, (small, large) in enumerate(zip(part, whole)):
            if number != along:
                known.sizes.unify(small, large)
            else:
                known.divide(large, small, f"{place(instruction)}: shards")


@relates("all-to-all")
def spread(known: Relations, instruction: Instruction) -> None:
    """A tuple changes places; of one array a dimension is cut into as many parts as there are devices."""
    results = known.leaves(instruction)
    if not isinstance(instruction.shape, ArrayShape):
        first = known.of(instruction.operands[0])
        for operand, result in zip(instruction.operands, results):
            known.sizes.unify_all(known.of(operand), result)
            known.sizes.unify_all(first, result)
        return
    (operand,) = instruction.operands
    known.equal(instruction, operand)
    (along,) = instruction.integers("dimensions")
    groups = expand_groups(instruction.replica_groups)
    whole, count = known.of(operand)[along], len(groups[0]) if groups else 0
    if not count or whole.value % count:
        known.sizes.freeze(whole, f"{place(instruction)}: parts that cannot be derived")
        return
    parts = [known.sizes.fixed(count, "devices"), known.sizes.new(whole.value // count)]
    known.sizes.same_product([whole], parts, f"{place(instruction)}: parts that cannot be derived")


@relates("custom-call")
def custom_call(known: Relations, instruction: Instruction) -> None:
    """Annotations hand on their operand, XLA's TopK is `topk`; what others do with sizes is unknown."""
    target = instruction.custom_call_target
    if target in _REGIONS and len(instruction.operands) == len(known.leaves(instruction)):
        is_local = target in _REGIONS[:2]
        for operand, result in zip(instruction.operands, known.leaves(instruction)):
            one, other = known.of(operand), result
            for whole, part in zip(one, other) if is_local else zip(other, one):
                known.divide(whole, part, f"{place(instruction)}: shards of different lengths")
        return
    if target in HANDS_ON and len(instruction.operands) == 1:
        (operand,) = instruction.operands
        if [d.value for d in sum(known.leaves(operand), ())] == [
            d.value for d in sum(known.leaves(instruction), ())
        ]:
            known.equal(instruction, operand)
            return
    if target == "TopK" and len(instruction.operands) == 1:
        largest(known, instruction)
        return
    known.freeze_around(
        instruction, f"{place(instruction)}: sizes of {target or 'a custom call'} are not known"
    )
