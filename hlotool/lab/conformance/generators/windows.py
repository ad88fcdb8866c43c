"""Instructions with many attributes, drawn at random: windows, contractions, gathers and scatters."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np

from hlotool.backends.numpy.windows import output_sizes
from hlotool.ir.attributes import ConvolutionDimensions, Window, WindowDim
from hlotool.ir.module import Instruction
from hlotool.lab.conformance.generators.cases import (
    Draft,
    Rng,
    binary,
    generates,
    random_array,
    scalar_computation,
)


def sizes(rng: Rng, rank: int, high: int = 6) -> tuple[int, ...]:
    """Positive dimensions."""
    return tuple(int(n) for n in rng.integers(1, high + 1, rank))


def plain(draft: Draft, kind: str, dims: Iterable[int]) -> Instruction:
    """A parameter with integers of any size, or floats near 1, of which no sum overflows or is NaN."""
    return draft.argument(kind, random_array(draft.rng, kind, tuple(dims)))


def random_window(rng: Rng, count: int, reversal: bool = False) -> tuple[WindowDim, ...]:
    """Every parameter with about even odds of being trivial."""

    def maybe(low: int, high: int, otherwise: int) -> int:
        return int(rng.integers(low, high)) if rng.random() < 0.5 else otherwise

    return tuple(
        WindowDim(
            size=maybe(1, 5, 2),
            stride=maybe(1, 4, 1),
            pad_low=maybe(-1, 4, 0),
            pad_high=maybe(-1, 4, 0),
            base_dilation=maybe(1, 4, 1),
            window_dilation=maybe(1, 4, 1),
            reversal=reversal and bool(rng.integers(2)),
        )
        for _ in range(count)
    )


def fitting(rng: Rng, operand: tuple[int, ...], reversal: bool) -> tuple[WindowDim, ...]:
    """A window that has a position in an operand of these sizes, and never cuts all of it away."""
    while True:
        dims = random_window(rng, len(operand), reversal)
        low = [
            (n - 1) * d.base_dilation + 1 + min(0, d.pad_low) + min(0, d.pad_high)
            for n, d in zip(operand, dims)
        ]
        if 0 < prod(output_sizes(dims, operand)) < 500 and min(low, default=1) > 0:
            return dims


@generates("reduce-window")
def reduce_window(draft: Draft, opcode: str) -> None:
    """By a monoid."""
    kind, combine = draft.choice(("f32", "s32", "bf16")), draft.choice(("add", "maximum", "minimum"))
    operand = sizes(draft.rng, draft.size(1, 3), 9)
    window = Window(fitting(draft.rng, operand, reversal=False))
    x, init = plain(draft, kind, operand), plain(draft, kind, ())
    draft.op(opcode, x, init, window=window, to_apply=binary(combine, kind))


SELECT = """select {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction={direction}
}}"""


@generates("select-and-scatter")
def select_and_scatter(draft: Draft, opcode: str) -> None:
    """The gradient of a pooling; XLA's CPU backend takes no dilations here."""
    operand = sizes(draft.rng, draft.size(1, 3), 9)
    dims = tuple(
        WindowDim(d.size, d.stride, max(0, d.pad_low), max(0, d.pad_high))
        for d in fitting(draft.rng, operand, False)
    )
    select = scalar_computation(SELECT.format(direction=draft.choice(("GE", "GT", "LE"))))
    x = draft.argument("f32", draft.rng.integers(0, 6, operand).astype(np.float32))
    source = draft.rng.integers(-9, 9, output_sizes(dims, operand)).astype(np.float32)
    s, init = draft.argument("f32", source), draft.argument("f32", np.ones((), np.float32))
    draft.op(opcode, x, s, init, window=Window(dims), select=select, scatter=binary("add", "f32"))


@generates("convolution")
def convolution(draft: Draft, opcode: str) -> None:
    """Convolution of any rank, labels and groups."""
    rng, kind = draft.rng, draft.choice(("f32", "s32", "bf16"))
    spatial = sizes(rng, draft.size(0, 3), 7)
    dims = fitting(rng, spatial, reversal=True)
    groups, mode = draft.size(1, 3), draft.choice(("feature", "batch"))
    batch, features, outputs = (draft.size(1, 3) for _ in range(3))
    image, place = _labelled(
        rng,
        spatial,
        b=batch * (groups if mode == "batch" else 1),
        f=features * (groups if mode == "feature" else 1),
    )
    kernel, inside = _labelled(rng, [d.size for d in dims], i=features, o=outputs * groups)
    _, result = _labelled(rng, output_sizes(dims, spatial), b=batch, f=outputs * groups)
    labels = ConvolutionDimensions(
        *(place["b"], place["f"], _spatial(place)),
        *(inside["i"], inside["o"], _spatial(inside)),
        *(result["b"], result["f"], _spatial(result)),
    )
    attributes: dict[str, Any] = {"window": Window(dims)} if dims else {}
    attributes |= {"dim_labels": labels, f"{mode}_group_count": groups}
    draft.op(opcode, plain(draft, kind, image), plain(draft, kind, kernel), **attributes)


def _labelled(rng: Rng, spatial: Iterable[int], **named: int) -> tuple[list[int], dict[str, int]]:
    """Dimensions in a random order, and the place of each by its label."""
    named |= {str(i): int(n) for i, n in enumerate(spatial)}
    order = [str(name) for name in rng.permutation(list(named))]
    return [named[name] for name in order], {name: position for position, name in enumerate(order)}


def _spatial(places: dict[str, int]) -> tuple[int, ...]:
    return tuple(places[name] for name in sorted(places) if name.isdigit())


@generates("dot")
def dot(draft: Draft, opcode: str) -> None:
    """dot with any number of batch, contracting and free dimensions in any order."""
    rng, kind = draft.rng, draft.choice(("f32", "s32", "bf16", "c64"))
    pairs = {name: sizes(rng, draft.size(0, 2), 4) for name in ("batch", "contracting")}
    operands: list[Instruction] = []
    attributes: dict[str, Any] = {}
    for side in ("lhs", "rhs"):
        named = [(name, i, n) for name, values in pairs.items() for i, n in enumerate(values)]
        named += [("free", 0, n) for n in sizes(rng, draft.size(0, 2), 4)]
        order = [named[i] for i in rng.permutation(len(named))]
        operands.append(plain(draft, kind, [n for *_, n in order]))
        places = {label[:2]: position for position, label in enumerate(order)}
        for name, values in pairs.items():
            attributes[f"{side}_{name}_dims"] = tuple(places[name, i] for i in range(len(values)))
    draft.op(opcode, *operands, **attributes)


def _windows(rng: Rng) -> tuple[dict[str, Any], tuple[int, ...], tuple[int, ...], list[int]]:
    """Random gather attributes, sizes of the operand and the indices, result dimensions of the windows."""
    rank = int(rng.integers(1, 4))
    operand = sizes(rng, rank)
    slices = tuple(int(rng.integers(1, n + 1)) for n in operand)
    # Without components XLA applies only the last of several updates.
    mapped = [int(d) for d in rng.permutation(rank)[: rng.integers(1, rank + 1)]]
    collapsed = [d for d, n in enumerate(slices) if n == 1 and rng.random() < 0.5]
    batch = list(sizes(rng, int(rng.integers(0, 3)), 4))
    vector_dim = int(rng.integers(0, len(batch) + 1))
    implicit = len(mapped) == 1 and rng.random() < 0.3
    indices = batch if implicit else [*batch[:vector_dim], len(mapped), *batch[vector_dim:]]
    window_rank = rank - len(collapsed)
    places = sorted(int(d) for d in rng.permutation(len(batch) + window_rank)[:window_rank])
    attributes = {
        "mapped": tuple(mapped),
        "collapsed": tuple(collapsed),
        "vector_dim": len(batch) if implicit else vector_dim,
        "slices": slices,
        "places": tuple(places),
    }
    window = iter([n for d, n in enumerate(slices) if d not in collapsed])
    outer = iter(batch)
    result = [next(window if d in places else outer) for d in range(len(batch) + window_rank)]
    return attributes, operand, tuple(indices), result


@generates("gather")
def gather(draft: Draft, opcode: str) -> None:
    """gather with indices in and out of bounds."""
    a, operand, indices, _ = _windows(draft.rng)
    draft.op(
        opcode,
        plain(draft, "s32", operand),
        draft.argument("s32", draft.rng.integers(-2, 7, indices).astype(np.int32)),
        offset_dims=a["places"],
        collapsed_slice_dims=a["collapsed"],
        start_index_map=a["mapped"],
        index_vector_dim=a["vector_dim"],
        slice_sizes=a["slices"],
    )


@generates("scatter")
def scatter(draft: Draft, opcode: str) -> None:
    """scatter with duplicates and indices out of bounds."""
    a, operand, indices, updates = _windows(draft.rng)
    combine = draft.choice(("add", "multiply", "maximum", "subtract"))
    draft.op(
        opcode,
        plain(draft, "s32", operand),
        draft.argument("s32", draft.rng.integers(-2, 7, indices).astype(np.int32)),
        plain(draft, "s32", updates),
        update_window_dims=a["places"],
        inserted_window_dims=a["collapsed"],
        scatter_dims_to_operand_dims=a["mapped"],
        index_vector_dim=a["vector_dim"],
        to_apply=binary(combine, "s32"),
    )
