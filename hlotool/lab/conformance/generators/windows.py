"""Seeded modules of one instruction with random attributes, for the comparison with real XLA."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, TypeAlias

import numpy as np

from hlotool.backends.numpy.windows import output_sizes
from hlotool.ir.attributes import WindowDim
from hlotool.lab.conformance.generators.cases import random_array

Rng: TypeAlias = np.random.Generator
#: Text, arguments, roundings that floats may differ by.
Case: TypeAlias = tuple[str, list[Any], float]

#: How many roundings a sum of many terms may differ by, relative to its largest partial result.
STEPS = 128.0


def ints(values: Any) -> str:
    """`1,2,3`."""
    return ",".join(str(int(v)) for v in values)


def sizes(rng: Rng, rank: int, high: int = 6) -> tuple[int, ...]:
    """Positive dimensions."""
    return tuple(int(n) for n in rng.integers(1, high + 1, rank))


def reducer(kind: str, opcode: str) -> str:
    """The computation `f` of a monoid."""
    return f"""f {{
  a = {kind}[] parameter(0)
  b = {kind}[] parameter(1)
  ROOT r = {kind}[] {opcode}(a, b)
}}"""


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


def window_text(dims: tuple[WindowDim, ...]) -> str:
    """As an attribute."""
    fields: dict[str, list[int] | list[str]] = {
        "size": [d.size for d in dims],
        "stride": [d.stride for d in dims],
        "pad": [f"{d.pad_low}_{d.pad_high}" for d in dims],
        "lhs_dilate": [d.base_dilation for d in dims],
        "rhs_dilate": [d.window_dilation for d in dims],
        "rhs_reversal": [int(d.reversal) for d in dims],
    }
    return "window={" + " ".join(f"{k}={'x'.join(f'{n}' for n in v)}" for k, v in fields.items()) + "}"


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


def reduce_window(rng: Rng) -> Case:
    """reduce-window by a monoid."""
    kind, opcode = str(rng.choice(["f32", "s32", "bf16"])), str(rng.choice(["add", "maximum", "minimum"]))
    operand = sizes(rng, int(rng.integers(1, 4)), 9)
    dims = fitting(rng, operand, reversal=False)
    text = f"""HloModule random
{reducer(kind, opcode)}
ENTRY e {{
  x = {kind}[{ints(operand)}] parameter(0)
  init = {kind}[] parameter(1)
  ROOT r = {kind}[{ints(output_sizes(dims, operand))}] reduce-window(x, init), {window_text(dims)}, to_apply=f
}}"""
    return (
        text,
        [random_array(rng, kind, operand), random_array(rng, kind, ())],
        STEPS if opcode == "add" else 0,
    )


def select_and_scatter(rng: Rng) -> Case:
    """The gradient of a pooling; XLA's CPU backend takes no dilations here."""
    operand = sizes(rng, int(rng.integers(1, 4)), 9)
    dims = [
        WindowDim(d.size, d.stride, max(0, d.pad_low), max(0, d.pad_high))
        for d in fitting(rng, operand, False)
    ]
    source = output_sizes(dims, operand)
    text = f"""HloModule random
select {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction={rng.choice(["GE", "GT", "LE"])}
}}
{reducer("f32", "add")}
ENTRY e {{
  x = f32[{ints(operand)}] parameter(0)
  s = f32[{ints(source)}] parameter(1)
  init = f32[] parameter(2)
  ROOT r = f32[{ints(operand)}] select-and-scatter(x, s, init), {window_text(tuple(dims))},
    select=select, scatter=f
}}"""
    values = rng.integers(0, 6, operand).astype(np.float32)
    return text, [values, rng.integers(-9, 9, source).astype(np.float32), np.float32(1)], 0


def convolution(rng: Rng) -> Case:
    """Convolution of any rank, labels and groups."""
    kind = str(rng.choice(["f32", "s32", "bf16"]))
    count = int(rng.integers(0, 4))
    spatial = sizes(rng, count, 7)
    dims = fitting(rng, spatial, reversal=True)
    groups, mode = int(rng.integers(1, 4)), str(rng.choice(["feature", "batch"]))
    batch, features, outputs = (int(n) for n in rng.integers(1, 4, 3))
    outputs *= groups
    lhs_sizes = {
        "b": batch * (groups if mode == "batch" else 1),
        "f": features * (groups if mode == "feature" else 1),
    }
    rhs_sizes = {"i": features, "o": outputs}
    result_sizes = {"b": batch, "f": outputs}
    shapes, labels = [], []
    results = output_sizes(dims, spatial)
    for named, extents in (
        (lhs_sizes, spatial),
        (rhs_sizes, [d.size for d in dims]),
        (result_sizes, results),
    ):
        named |= {str(i): int(n) for i, n in enumerate(extents)}
        order = rng.permutation(list(named))
        shapes.append(tuple(named[name] for name in order))
        labels.append("".join(order))
    window = f"{window_text(dims)}, " if count else ""
    text = f"""HloModule random
ENTRY e {{
  x = {kind}[{ints(shapes[0])}] parameter(0)
  w = {kind}[{ints(shapes[1])}] parameter(1)
  ROOT r = {kind}[{ints(shapes[2])}] convolution(x, w), {window}
    dim_labels={labels[0]}_{labels[1]}->{labels[2]}, {mode}_group_count={groups}
}}"""
    return text, [random_array(rng, kind, shapes[0]), random_array(rng, kind, shapes[1])], STEPS


def dot(rng: Rng) -> Case:
    """dot with any number of batch, contracting and free dimensions in any order."""
    kind = str(rng.choice(["f32", "s32", "bf16", "c64"]))
    pairs = {name: sizes(rng, int(rng.integers(0, 3)), 4) for name in ("batch", "contracting")}
    free = [sizes(rng, int(rng.integers(0, 3)), 4) for _ in range(2)]
    shapes, places = [], []
    for side in range(2):
        named = [(name, i, n) for name, values in pairs.items() for i, n in enumerate(values)]
        named += [("free", i, n) for i, n in enumerate(free[side])]
        order = rng.permutation(len(named))
        shapes.append([named[i][2] for i in order])
        places.append({named[i][:2]: position for position, i in enumerate(order)})
    kept = [
        [s[place[k]] for k in sorted(place, key=place.__getitem__) if k[0] == "free"]
        for s, place in zip(shapes, places)
    ]
    attributes = [
        f"{side}_{name}_dims={{{ints(place[name, i] for i in range(len(pairs[name])))}}}"
        for name in pairs
        for side, place in zip(("lhs", "rhs"), places)
    ]
    text = f"""HloModule random
ENTRY e {{
  x = {kind}[{ints(shapes[0])}] parameter(0)
  y = {kind}[{ints(shapes[1])}] parameter(1)
  ROOT r = {kind}[{ints([*pairs["batch"], *kept[0], *kept[1]])}] dot(x, y), {", ".join(attributes)}
}}"""
    return text, [random_array(rng, kind, tuple(s)) for s in shapes], STEPS


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
        "mapped": mapped,
        "collapsed": collapsed,
        "vector_dim": len(batch) if implicit else vector_dim,
        "slices": slices,
        "places": places,
    }
    window = iter([n for d, n in enumerate(slices) if d not in collapsed])
    outer = iter(batch)
    result = [next(window if d in places else outer) for d in range(len(batch) + window_rank)]
    return attributes, operand, tuple(indices), result


def gather(rng: Rng) -> Case:
    """gather with indices in and out of bounds."""
    a, operand, indices, result = _windows(rng)
    text = f"""HloModule random
ENTRY e {{
  x = s32[{ints(operand)}] parameter(0)
  i = s32[{ints(indices)}] parameter(1)
  ROOT r = s32[{ints(result)}] gather(x, i), offset_dims={{{ints(a["places"])}}},
    collapsed_slice_dims={{{ints(a["collapsed"])}}}, start_index_map={{{ints(a["mapped"])}}},
    index_vector_dim={a["vector_dim"]}, slice_sizes={{{ints(a["slices"])}}}
}}"""
    return text, [random_array(rng, "s32", operand), rng.integers(-2, 7, indices).astype(np.int32)], 0


def scatter(rng: Rng) -> Case:
    """scatter with duplicates and indices out of bounds."""
    a, operand, indices, updates = _windows(rng)
    opcode = str(rng.choice(["add", "multiply", "maximum", "subtract"]))
    text = f"""HloModule random
{reducer("s32", opcode)}
ENTRY e {{
  x = s32[{ints(operand)}] parameter(0)
  i = s32[{ints(indices)}] parameter(1)
  u = s32[{ints(updates)}] parameter(2)
  ROOT r = s32[{ints(operand)}] scatter(x, i, u), update_window_dims={{{ints(a["places"])}}},
    inserted_window_dims={{{ints(a["collapsed"])}}}, scatter_dims_to_operand_dims={{{ints(a["mapped"])}}},
    index_vector_dim={a["vector_dim"]}, to_apply=f
}}"""
    arrays = [random_array(rng, "s32", operand), rng.integers(-2, 7, indices).astype(np.int32)]
    return text, [*arrays, random_array(rng, "s32", tuple(updates))], 0


#: By opcode.
GENERATORS: dict[str, Callable[[Rng], Case]] = {
    "convolution": convolution,
    "dot": dot,
    "gather": gather,
    "reduce-window": reduce_window,
    "scatter": scatter,
    "select-and-scatter": select_and_scatter,
}
