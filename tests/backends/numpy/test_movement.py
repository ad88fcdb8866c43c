"""Data movement: views and copies, checked against XLA on random shapes and against hand-made values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.differential import Array, check, leaves, parse, run

from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import Unsupported
from hlotool.lab.conformance.generators.cases import random_array

SEEDS = [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 30))]


def one(result: str, expression: str, *parameters: str) -> str:
    """A module of one instruction with operands p0, p1, …"""
    lines = [f"  p{i} = {shape} parameter({i})" for i, shape in enumerate(parameters)]
    return "\n".join(["HloModule m", "ENTRY e {", *lines, f"  ROOT r = {result} {expression}", "}"])


def dims_text(dims: tuple[int, ...]) -> str:
    return ",".join(map(str, dims))


def random_dims(rng: np.random.Generator, rank: int) -> tuple[int, ...]:
    return tuple(int(d) for d in rng.choice([0, 1, 2, 3, 4, 5], rank, p=[0.05, 0.15, 0.2, 0.2, 0.2, 0.2]))


def numbered(dims: tuple[int, ...]) -> Array:
    """An array whose elements are all different."""
    return np.arange(np.prod(dims, dtype=int), dtype=np.int32).reshape(dims)


@pytest.mark.xla
@pytest.mark.parametrize("seed", SEEDS)
def test_broadcast(seed: int) -> None:
    """Sorted dimensions, as XLA's verifier wants them; see below for permuted ones."""
    rng = np.random.default_rng(seed)
    target = random_dims(rng, int(rng.integers(0, 5)))
    chosen = sorted(rng.choice(len(target), int(rng.integers(0, len(target) + 1)), replace=False).tolist())
    source = tuple(target[d] for d in chosen)
    expression = f"broadcast(p0), dimensions={{{dims_text(tuple(chosen))}}}"
    text = one(f"s32[{dims_text(target)}]", expression, f"s32[{dims_text(source)}]")
    check(text, [numbered(source)])


def test_broadcast_with_permuted_dimensions() -> None:
    """Dimension i goes to dimensions[i]: {2,0} transposes. XLA: operation_semantics.md#broadcastindim."""
    x = numbered((2, 3))
    result = run(one("s32[3,4,2]", "broadcast(p0), dimensions={2,0}", "s32[2,3]"), [x])[0]
    assert (result == np.broadcast_to(x.T[:, None, :], (3, 4, 2))).all()


@pytest.mark.xla
@pytest.mark.parametrize("seed", SEEDS)
def test_transpose_and_reverse(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dims = random_dims(rng, int(rng.integers(1, 5)))
    order = tuple(int(d) for d in rng.permutation(len(dims)))
    target = tuple(dims[d] for d in order)
    some = sorted(rng.choice(len(dims), int(rng.integers(1, len(dims) + 1)), replace=False).tolist())
    shape = f"s32[{dims_text(dims)}]"
    check(
        one(f"s32[{dims_text(target)}]", f"transpose(p0), dimensions={{{dims_text(order)}}}", shape),
        [numbered(dims)],
    )
    check(one(shape, f"reverse(p0), dimensions={{{dims_text(tuple(some))}}}", shape), [numbered(dims)])


@pytest.mark.xla
@pytest.mark.parametrize("seed", SEEDS)
def test_slice(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dims = random_dims(rng, int(rng.integers(1, 4)))
    starts = [int(rng.integers(0, d + 1)) for d in dims]
    limits = [int(rng.integers(s, d + 1)) for s, d in zip(starts, dims)]
    strides = [int(rng.integers(1, 4)) for _ in dims]
    target = tuple(-(-(b - a) // s) for a, b, s in zip(starts, limits, strides))
    ranges = ",".join(f"[{a}:{b}:{s}]" for a, b, s in zip(starts, limits, strides))
    text = one(f"s32[{dims_text(target)}]", f"slice(p0), slice={{{ranges}}}", f"s32[{dims_text(dims)}]")
    check(text, [numbered(dims)])


@pytest.mark.xla
@pytest.mark.parametrize("seed", SEEDS)
def test_pad(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dims = random_dims(rng, int(rng.integers(1, 4)))
    padding, target = [], []
    for d in dims:
        interior = int(rng.integers(0, 3))
        grown = d + max(0, d - 1) * interior
        low = int(rng.integers(-grown // 2, 4))
        high = int(rng.integers(-((grown + min(low, 0)) // 2), 4))
        padding.append(f"{low}_{high}_{interior}")
        target.append(grown + low + high)
    text = one(
        f"s32[{dims_text(tuple(target))}]",
        f"pad(p0, p1), padding={'x'.join(padding)}",
        f"s32[{dims_text(dims)}]",
        "s32[]",
    )
    check(text, [numbered(dims), np.int32(-1)])


@pytest.mark.parametrize(
    ("padding", "expected"),
    [
        ("-1_0_1", [9, 1, 9, 2]),
        ("-2_0_1", [1, 9, 2]),
        ("0_-2_1", [0, 9, 1]),
        ("-3_-2", []),
        ("2_-4", [9]),
        ("-4_3_1", [2, 9, 9, 9]),
    ],
)
def test_negative_padding_cuts_what_interior_padding_made(padding: str, expected: list[int]) -> None:
    text = one(f"s32[{len(expected)}]", f"pad(p0, p1), padding={padding}", "s32[3]", "s32[]")
    if padding == "-3_-2":
        text = text.replace("s32[3]", "s32[5]")
        assert run(text, [numbered((5,)), np.int32(9)])[0].tolist() == expected
    else:
        assert run(text, [numbered((3,)), np.int32(9)])[0].tolist() == expected


@pytest.mark.xla
@pytest.mark.parametrize("seed", SEEDS)
def test_concatenate_and_reshape(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dims = random_dims(rng, int(rng.integers(1, 4)))
    axis = int(rng.integers(0, len(dims)))
    parts = [
        (*dims[:axis], int(rng.integers(0, 4)), *dims[axis + 1 :]) for _ in range(int(rng.integers(1, 4)))
    ]
    target = (*dims[:axis], sum(p[axis] for p in parts), *dims[axis + 1 :])
    operands = ", ".join(f"p{i}" for i in range(len(parts)))
    shapes = [f"s32[{dims_text(p)}]" for p in parts]
    expression = f"concatenate({operands}), dimensions={{{axis}}}"
    check(
        one(f"s32[{dims_text(target)}]", expression, *shapes),
        [numbered(p) + 100 * i for i, p in enumerate(parts)],
    )
    flat = int(np.prod(target, dtype=int))
    check(one(f"s32[{flat},1]", "reshape(p0)", f"s32[{dims_text(target)}]"), [numbered(target)])


@pytest.mark.xla
@pytest.mark.parametrize(
    "shape",
    [
        "s32[5]",
        "s32[2,300]",
        "s8[300]",
        "u8[300]",
        "s4[20]",
        "f32[4]",
        "bf16[300]",
        "f16[3,2]",
        "c64[3]",
        "f8e5m2[20]",
        "u64[3]",
    ],
)
def test_iota(shape: str) -> None:
    rank = shape.count(",") + 1
    for dimension in range(rank):
        check(one(shape, f"iota(), iota_dimension={dimension}"), [])


INDEX_TYPES = {
    "s32": np.int32,
    "s8": np.int8,
    "u8": np.uint8,
    "s64": np.int64,
    "u64": np.uint64,
    "u32": np.uint32,
}


@pytest.mark.xla
@pytest.mark.parametrize("index_type", INDEX_TYPES)
def test_dynamic_slices_clamp(index_type: str) -> None:
    dtype = INDEX_TYPES[index_type]
    extremes = [1, 6, np.iinfo(dtype).max, np.iinfo(dtype).min]
    x, update = numbered((7, 5)), -1 - numbered((3, 2))
    take = one(
        "s32[3,2]",
        "dynamic-slice(p0, p1, p2), dynamic_slice_sizes={3,2}",
        "s32[7,5]",
        *[f"{index_type}[]"] * 2,
    )
    put = one(
        "s32[7,5]", "dynamic-update-slice(p0, p1, p2, p3)", "s32[7,5]", "s32[3,2]", *[f"{index_type}[]"] * 2
    )
    for i, j in zip(extremes, extremes[::-1]):
        check(take, [x, dtype(i), dtype(j)])
        check(put, [x, update, dtype(i), dtype(j)])


def test_dynamic_slices_with_a_vector_of_indices() -> None:
    """The form of old dumps. XLA: hlo_instructions.h (first_index_operand_number)."""
    x, start = numbered((4, 4)), np.array([3, -1], np.int32)
    take = one("s32[2,2]", "dynamic-slice(p0, p1), dynamic_slice_sizes={2,2}", "s32[4,4]", "s32[2]")
    assert run(take, [x, start])[0].tolist() == [[8, 9], [12, 13]]
    put = one("s32[4,4]", "dynamic-update-slice(p0, p1, p2)", "s32[4,4]", "s32[1,1]", "s32[2]")
    assert run(put, [x, np.array([[-7]], np.int32), start])[0][3, 0] == -7


def test_dynamic_slice_of_a_scalar() -> None:
    assert run(one("s32[]", "dynamic-slice(p0), dynamic_slice_sizes={}", "s32[]"), [np.int32(3)])[0] == 3


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        # The buffer 0 1 2 3 4 5 holds the columns of a {0,1} array.
        ("s32[2,3]{1,0}", "s32[3,2]{0,1}", lambda x: x.T),
        ("s32[2,3]{0,1}", "s32[3,2]{1,0}", lambda x: x.T),
        ("s32[2,3]{1,0}", "s32[3,2]{1,0}", lambda x: x.reshape(3, 2)),
        ("s32[2,3]{0,1}", "s32[6]{0}", lambda x: x.T.reshape(6)),
        ("s32[2,3]{1,0}", "s32[1,2,3]{2,1,0}", lambda x: x[None]),
        ("s32[2,3]{1,0}", "u8[2,3,4]{2,1,0}", lambda x: x.view(np.uint8).reshape(2, 3, 4)),
        ("s32[2,3]{1,0:S(5)}", "s32[6]{0}", lambda x: x.reshape(6)),
        ("s32[2,3]{1,0:T(8,128)}", "s32[2,1,3]{2,1,0:T(8,128)}", lambda x: x[:, None]),
        ("s32[2,3]{1,0}", "f32[2,3]{1,0}", lambda x: x.view(np.float32)),
    ],
)
def test_bitcast_reads_the_buffer(source: str, target: str, expected: object) -> None:
    """XLA: docs/layouts.md. A shape without a layout is row-major."""
    assert callable(expected)
    x = numbered((2, 3))
    result = run(one(target, "bitcast(p0)", source), [x])[0]
    assert result.tolist() == expected(x).tolist()


@pytest.mark.parametrize("target", ["s32[1024]{0:T(1024)}", "s32[8,128]{1,0}", "s32[2,512]{1,0:T(1,512)}"])
def test_tiles_that_leave_the_order_of_elements(target: str) -> None:
    """XLA: docs/tiled_layout.md: one tile as wide as the array is row-major."""
    x = numbered((8, 128))
    result = run(one(target, "bitcast(p0)", "s32[8,128]{1,0:T(8,128)}"), [x])[0]
    assert result.reshape(-1).tolist() == x.reshape(-1).tolist()


@pytest.mark.parametrize(
    ("source", "target", "first"),
    [
        ("s32[4,8]{1,0:T(4,128)}", "s32[4,5]{1,0:T(4,128)}", lambda x: x[:, :5]),
        ("s32[4,8]{1,0:T(4,128)}", "s32[3,8]{1,0:T(4,128)}", lambda x: x[:3]),
        ("s32[5,1]{0,1:T(1,128)}", "s32[]{:T(128)}", lambda x: x[0, 0]),
        ("s32[1]{0:T(128)}", "s32[]{:T(128)}", lambda x: x[0]),
        ("s32[]{:T(128)}", "s32[1,1]{1,0:T(1,128)}", lambda x: x.reshape(1, 1)),
    ],
)
def test_a_bitcast_slices_within_tiles(source: str, target: str, first: Callable[[Any], Any]) -> None:
    """As in programs that libtpu made: what is left out was there to fill up the tiles, or does so now."""
    module = parse(one(target, "bitcast(p0)", source))
    x = numbered(module.entry.parameters[0].array_shape.dims)
    np.testing.assert_array_equal(NumpyBackend().compile(module).run([x]), first(x))


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("f32[4,5]{1,0:T(4,128)}", "f32[4,8]{1,0:T(4,128)}", "unequal sizes"),
        ("f32[4,8]", "f32[4,5]{1,0:T(4,128)}", "unequal sizes"),
        ("f32[8,128]{1,0:T(8,128)}", "u32[1024]{0:T(1024)}", "tiled differently"),
        ("f32[8,100]{1,0:T(8,128)}", "f32[8,100]{1,0}", "is padded"),
        ("f32[<=4]", "f32[2,2]", "dynamic size"),
        ("f32[4]", "f32[5]", "unequal sizes"),
    ],
)
def test_bitcast_of_unlike_buffers_is_refused(source: str, target: str, reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        NumpyBackend().compile(parse(one(target, "bitcast(p0)", source)))


def test_copies() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[3] parameter(0)
  start = (f32[3], f32[3], u32[]) copy-start(x)
  done = f32[3] copy-done(start)
  ROOT y = f32[3] copy(done)
}"""
    x = np.arange(3, dtype=np.float32)
    assert run(text, [x])[0].tolist() == x.tolist()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["f32", "bf16", "s4", "pred", "c128"])
def test_broadcast_is_a_view_that_cannot_be_written_to(order: Any, kind: str) -> None:
    x = np.array(random_array(np.random.default_rng(0), kind, (2, 3)), order=order)
    text = one(f"{kind}[3,4,2]", "broadcast(p0), dimensions={2,0}", f"{kind}[2,3]")
    (result,) = leaves(NumpyBackend().compile(parse(text)).run([x]))
    assert result.tobytes() == np.broadcast_to(x.T[:, None, :], (3, 4, 2)).tobytes()
    assert np.shares_memory(result, x)
    assert not result.flags.writeable
