"""Matrix instructions: elements are put where the PTX ISA says that each lane has them, and products are
NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.ptx import kernel_text, run_kernel

Place = Callable[[int, int, int], tuple[int, int]]

#: For each shape, of element `i` of a lane with group `g` and place `q`: its row and column in A, and in B.
#: "Matrix Fragments for mma.m16n8k16 with .f16 type" and the sections beside it.
LAYOUTS: dict[str, tuple[Place, Place]] = {
    "m16n8k16": (
        lambda i, g, q: (g if i % 4 < 2 else g + 8, q * 2 + (i & 1) + (0 if i < 4 else 8)),
        lambda i, g, q: (q * 2 + (i & 1) + (0 if i < 2 else 8), g),
    ),
    "m16n8k8": (lambda i, g, q: (g if i < 2 else g + 8, q * 2 + (i & 1)), lambda i, g, q: (q * 2 + i, g)),
    "m16n8k8.tf32": (
        lambda i, g, q: (g if i % 2 == 0 else g + 8, q if i < 2 else q + 4),
        lambda i, g, q: (q if i == 0 else q + 4, g),
    ),
    "m16n8k4.tf32": (lambda i, g, q: (g if i == 0 else g + 8, q), lambda i, g, q: (q, g)),
    "m8n8k4.f64": (lambda i, g, q: (g, q), lambda i, g, q: (q, g)),
    "m16n8k32.8": (
        lambda i, g, q: (g if i % 8 < 4 else g + 8, q * 4 + (i & 3) + (0 if i < 8 else 16)),
        lambda i, g, q: (q * 4 + (i & 3) + (0 if i < 4 else 16), g),
    ),
    "m16n8k16.8": (
        lambda i, g, q: (g if i < 4 else g + 8, q * 4 + (i & 3)),
        lambda i, g, q: (q * 4 + (i & 3), g),
    ),
}
CASES = [
    ("m16n8k16", "f16", "f32", np.float16),
    ("m16n8k16", "f16", "f16", np.float16),
    ("m16n8k16", "bf16", "f32", ml_dtypes.bfloat16),
    ("m16n8k8", "bf16", "f32", ml_dtypes.bfloat16),
    ("m16n8k8.tf32", "tf32", "f32", np.float32),
    ("m16n8k4.tf32", "tf32", "f32", np.float32),
    ("m8n8k4.f64", "f64", "f64", np.float64),
    ("m16n8k32.8", "s8", "s32", np.int8),
    ("m16n8k32.8", "u8", "s32", np.uint8),
    ("m16n8k16.8", "s8", "s32", np.int8),
    ("m16n8k32.8", "e4m3", "f32", ml_dtypes.float8_e4m3fn),
    ("m16n8k32.8", "e5m2", "f32", ml_dtypes.float8_e5m2),
]
RESULTS: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "s32": np.int32, "f64": np.float64}


def fragment(matrix: Any, place: Place) -> Any:
    """The elements of each lane, shape (32, n), by a layout."""
    count = matrix.size // 32
    return np.array(
        [[matrix[place(i, lane // 4, lane % 4)] for i in range(count)] for lane in range(32)], matrix.dtype
    )


def registers(values: Any) -> Any:
    """Rows of elements as rows of 32-bit registers (64-bit of f64)."""
    return np.ascontiguousarray(values).view(np.uint64 if values.dtype == np.float64 else np.uint32)


def matrices(kind: Any, rows: int, depth: int) -> tuple[Any, Any]:
    """Small whole numbers, whose products and sums are exact in any order."""
    random = np.random.default_rng(depth)
    low = 0 if np.dtype(kind) == np.uint8 else -4
    return random.integers(low, 5, (rows, depth)).astype(kind), random.integers(low, 5, (depth, 8)).astype(
        kind
    )


def load(letter: str, count: int, first: int, pointer: int, size: int) -> str:
    """Instructions that load `count` registers of each lane."""
    lines = [f"mul.wide.u32 %d1, %r61, {count * size};", f"add.u64 %d1, %d1, %d{pointer};"]
    return "\n".join(
        [*lines, *(f"ld.global.b{8 * size} %{letter}{first + i}, [%d1+{size * i}];" for i in range(count))]
    )


def product(shape: str, kind: str, result: str, dtype: Any, seed: int = 0) -> tuple[Any, Any]:
    """What `mma` gives, and what NumPy does, both of shape (rows, 8)."""
    left_place, right_place = LAYOUTS[shape]
    name = shape.split(".")[0]
    rows, depth = int(name[1:].split("n")[0]), int(name.split("k")[1])
    left, right = matrices(dtype, rows, depth)
    random = np.random.default_rng(1)
    start = random.integers(-50, 50, (rows, 8)).astype(RESULTS[result])
    start_place: Place = lambda i, g, q: (g if i < 2 else g + 8, q * 2 + (i & 1))  # noqa: E731
    parts = [
        registers(fragment(m, p)) for m, p in ((left, left_place), (right, right_place), (start, start_place))
    ]
    letter, size = ("g", 8) if kind == "f64" else ("r", 4)
    body, firsts = "", (1, 11, 21)
    for number, (part, first) in enumerate(zip(parts, firsts)):
        body += load(letter, part.shape[1], first, 60 + number, size) + "\n"
    names = [
        "{" + ", ".join(f"%{letter}{first + i}" for i in range(part.shape[1])) + "}"
        for part, first in zip(parts, firsts)
    ]
    opcode = f"mma.sync.aligned.{name}.row.col.{result}.{kind}.{kind}.{result}"
    body += f"{opcode} {names[2]}, {names[0]}, {names[1]}, {names[2]};\n"
    body += f"mul.wide.u32 %d1, %r61, {size * parts[2].shape[1]}; add.u64 %d1, %d1, %d63;\n"
    body += "\n".join(
        f"st.global.b{8 * size} [%d1+{size * i}], %{letter}{21 + i};" for i in range(parts[2].shape[1])
    )
    (found,), _ = run_kernel(kernel_text(body, 4), parts, [(start.size, RESULTS[result])], seed=seed)
    held = found.reshape(32, -1)
    got = np.empty((rows, 8))
    for lane in range(32):
        for i in range(held.shape[1]):
            got[start_place(i, lane // 4, lane % 4)] = held[lane, i]
    return got, left.astype(np.float64) @ right.astype(np.float64) + start.astype(np.float64)


@pytest.mark.parametrize(("shape", "kind", "result", "dtype"), CASES)
def test_products(shape: str, kind: str, result: str, dtype: Any) -> None:
    for seed in (0, 1):
        got, expected = product(shape, kind, result, dtype, seed)
        assert np.array_equal(got, expected), seed


def test_a_product_needs_all_lanes() -> None:
    from hlotool.errors import KernelFault

    body = """
    setp.lt.u32 %p1, %r61, 16;
    @%p1 mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
        {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};
    """
    with pytest.raises(KernelFault, match="not all threads of a warp"):
        run_kernel(kernel_text(body, 1), [], [(1, np.uint32)])


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_matrices_are_loaded_and_stored(count: int, transposed: bool) -> None:
    """Lane `l` gets elements `2 (l % 4)` and the next of row `l / 4` of each matrix; stored again they are
    the same.
    """
    data = np.random.default_rng(0).integers(0, 1 << 16, (4, 8, 8)).astype(np.uint16)
    word = ".trans" if transposed else ""
    registers_ = "{" + ", ".join(f"%r{1 + i}" for i in range(count)) + "}"
    body = f"""
    mov.u32 %r50, buffer; shl.b32 %r51, %r61, 4; add.u32 %r52, %r50, %r51;
    mul.wide.u32 %d1, %r61, 16; add.u64 %d2, %d60, %d1;
    ld.global.v4.u32 {{%r40, %r41, %r42, %r43}}, [%d2];
    st.shared.v4.u32 [%r52], {{%r40, %r41, %r42, %r43}};
    bar.warp.sync -1;
    ldmatrix.sync.aligned.m8n8.x{count}{word}.shared.b16 {registers_}, [%r52];
    stmatrix.sync.aligned.m8n8.x{count}{word}.shared.b16 [%r52+512], {registers_};
    bar.warp.sync -1;
    mul.wide.u32 %d1, %r61, {4 * count}; add.u64 %d3, %d61, %d1;
    """
    body += "\n".join(f"st.global.u32 [%d3+{4 * i}], %r{1 + i};" for i in range(count))
    body += f"""
    setp.lt.u32 %p1, %r61, {8 * count};
    mul.wide.u32 %d1, %r61, 16; add.u64 %d4, %d62, %d1;
    @%p1 ld.shared.v4.u32 {{%r40, %r41, %r42, %r43}}, [%r52+512];
    @%p1 st.global.v4.u32 [%d4], {{%r40, %r41, %r42, %r43}};
    """
    text = kernel_text(body, 3, ".shared .align 16 .b8 buffer[1024];")
    (lanes, again), _ = run_kernel(
        text, [data.reshape(-1)], [(64 * count, np.uint16), (64 * count, np.uint16)]
    )
    for lane in range(32):
        for i in range(count):
            for half in range(2):
                row, column = lane // 4, 2 * (lane % 4) + half
                expected = data[i, column, row] if transposed else data[i, row, column]
                assert lanes.reshape(32, count, 2)[lane, i, half] == expected
    assert np.array_equal(again.reshape(count, 8, 8), data[:count])


def descriptor(start: int, leading: int, stride: int, swizzle: int) -> int:
    return (start >> 4) | (leading >> 4) << 16 | (stride >> 4) << 32 | swizzle << 62


@pytest.mark.parametrize("wait", ["wgmma.wait_group.sync.aligned 0;", ""])
def test_products_of_a_warpgroup(wait: str) -> None:
    """64×16 by 16×8, both in shared memory with rows of 128 bytes swizzled: chunk `c` of row `r` lies at `c
    ^ (r % 8)`.

    Where shared memory is overwritten before the product is waited for, that is a race.
    """
    from hlotool.errors import KernelFault

    random = np.random.default_rng(5)
    left = random.integers(-4, 5, (64, 16)).astype(np.float16)
    right = random.integers(-4, 5, (16, 8)).astype(np.float16)
    image = np.zeros(64 * 128 + 8 * 128, np.uint8)
    for base, rows in ((0, left), (64 * 128, right.T)):
        raw = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), 2, 16)
        for row in range(len(rows)):
            for chunk in range(2):
                at = base + row * 128 + (chunk ^ row % 8) * 16
                image[at : at + 16] = raw[row, chunk]
    words = image.view(np.uint32)
    per_thread = len(words) // 128
    body = f"mov.u32 %r50, buffer; mul.lo.u32 %r51, %r61, {4 * per_thread}; add.u32 %r52, %r50, %r51;\n"
    body += f"mul.wide.u32 %d1, %r61, {4 * per_thread}; add.u64 %d2, %d60, %d1;\n"
    for i in range(per_thread):
        body += f"ld.global.u32 %r1, [%d2+{4 * i}]; st.shared.u32 [%r52+{4 * i}], %r1;\n"
    body += f"""
    fence.proxy.async;
    bar.sync 0;
    mov.u64 %d5, {descriptor(0, 16, 1024, 1)}; mov.u64 %d6, {descriptor(64 * 128, 16, 1024, 1)};
    mov.f32 %f1, 0f40000000; mov.f32 %f2, 0f40000000; mov.f32 %f3, 0f40000000; mov.f32 %f4, 0f40000000;
    setp.ne.b32 %p1, 1, 0;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f1, %f2, %f3, %f4}}, %d5, %d6, %p1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    {wait}
    bar.sync 0;
    st.shared.u32 [%r52], 0;
    mul.wide.u32 %d1, %r61, 16; add.u64 %d3, %d61, %d1;
    st.global.v4.f32 [%d3], {{%f1, %f2, %f3, %f4}};
    """
    text = kernel_text(body, 2, f".shared .align 1024 .b8 buffer[{len(image)}];")
    if not wait:
        with pytest.raises(
            KernelFault, match=r"asynchronously, not waited for, in line \d+ \(wgmma.mma_async"
        ) as caught:
            run_kernel(text, [words], [(512, np.float32)], block=128)
        assert caught.value.kind == "race"
        return
    (found,), _ = run_kernel(text, [words], [(512, np.float32)], block=128)
    expected = left.astype(np.float64) @ right.astype(np.float64) + 2
    for thread in range(128):
        for i in range(4):
            row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (i // 2)
            assert found.reshape(128, 4)[thread, i] == expected[row, 2 * (thread % 4) + i % 2]
