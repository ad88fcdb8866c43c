"""What threads of a warp tell each other, and atomics."""

from __future__ import annotations

import numpy as np
import pytest
from support.ptx import kernel_text, run_kernel

from hlotool.backends.gpu_ptx.launch import launch
from hlotool.backends.gpu_ptx.memory import Memory
from hlotool.backends.gpu_ptx.program import parse_ptx
from hlotool.errors import KernelFault

STORE = "mul.wide.u32 %d1, %r60, 4; add.u64 %d1, %d1, %d60; st.global.u32 [%d1], %r1;"


@pytest.mark.parametrize(
    ("instruction", "source"),
    [
        ("shfl.sync.bfly.b32 %r1|%p1, %r60, 5, 31, -1;", lambda lane: lane ^ 5),
        ("shfl.sync.down.b32 %r1|%p1, %r60, 3, 31, -1;", lambda lane: lane + 3 if lane + 3 < 32 else lane),
        ("shfl.sync.up.b32 %r1|%p1, %r60, 3, 0, -1;", lambda lane: lane - 3 if lane >= 3 else lane),
        ("shfl.sync.idx.b32 %r1|%p1, %r60, 9, 31, -1;", lambda lane: 9),
        # Segments of eight lanes: the mask of the third operand says so in bits 8 to 12.
        ("shfl.sync.idx.b32 %r1|%p1, %r60, 2, 6175, -1;", lambda lane: lane // 8 * 8 + 2),
        ("shfl.sync.down.b32 %r1|%p1, %r60, 4, 6175, -1;", lambda lane: lane + 4 if lane % 8 < 4 else lane),
    ],
)
def test_shuffles(instruction: str, source: object) -> None:
    assert callable(source)
    (found,), _ = run_kernel(kernel_text(instruction + STORE, 1), [], [(96, np.uint32)], block=96)
    assert found.tolist() == [warp * 32 + source(lane) for warp in range(3) for lane in range(32)]


def test_masks_name_who_takes_part() -> None:
    """Lanes that have ended are not waited for; one that is elsewhere, or not named, is a fault."""
    ended = "setp.ge.u32 %p1, %r61, 16; @%p1 ret; shfl.sync.bfly.b32 %r1, %r60, 1, 31, -1;"
    (found,), _ = run_kernel(kernel_text(ended + STORE, 1), [], [(32, np.uint32)])
    assert found[:16].tolist() == [lane ^ 1 for lane in range(16)]
    for body in (
        "setp.lt.u32 %p1, %r61, 16; @%p1 shfl.sync.bfly.b32 %r1, %r60, 1, 31, -1;",
        "shfl.sync.bfly.b32 %r1, %r60, 1, 31, 255;",
    ):
        with pytest.raises(KernelFault, match="mask") as caught:
            run_kernel(kernel_text(body, 1), [], [(32, np.uint32)])
        assert caught.value.kind == "lanes"


def test_lanes_without_threads_give_any_value() -> None:
    text = kernel_text("shfl.sync.down.b32 %r1, %r60, 8, 31, -1;" + STORE, 1)
    results = [run_kernel(text, [], [(16, np.uint32)], block=16, seed=seed) for seed in (1, 2)]
    for (found,), statistics in results:
        assert found[:8].tolist() == list(range(8, 16))
        assert statistics.absent_lane_reads == 8
    assert results[0][0][0][8:].tolist() != results[1][0][0][8:].tolist()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("setp.lt.u32 %p1, %r61, 7; vote.sync.ballot.b32 %r1, %p1, -1;", lambda lane: 0x7F),
        (
            "setp.lt.u32 %p1, %r61, 7; vote.sync.any.pred %p2, %p1, -1; selp.u32 %r1, 1, 0, %p2;",
            lambda lane: 1,
        ),
        (
            "setp.lt.u32 %p1, %r61, 7; vote.sync.all.pred %p2, %p1, -1; selp.u32 %r1, 1, 0, %p2;",
            lambda lane: 0,
        ),
        ("redux.sync.add.u32 %r1, %r61, -1;", lambda lane: 496),
        ("redux.sync.max.s32 %r1, %r61, -1;", lambda lane: 31),
        ("sub.s32 %r2, 0, %r61; redux.sync.add.s32 %r1, %r2, -1;", lambda lane: 2**32 - 496),
        ("shr.u32 %r2, %r61, 3; match.any.sync.b32 %r1, %r2, -1;", lambda lane: 0xFF << lane // 8 * 8),
        ("elect.sync %r1|%p1, -1;", lambda lane: 0),
        ("activemask.b32 %r1;", lambda lane: 0xFFFFFFFF),
        ("mov.u32 %r1, %lanemask_lt;", lambda lane: (1 << lane) - 1),
    ],
)
def test_votes(body: str, expected: object) -> None:
    assert callable(expected)
    (found,), _ = run_kernel(kernel_text(body + STORE, 1), [], [(32, np.uint32)])
    assert found.tolist() == [expected(lane) for lane in range(32)]


@pytest.mark.parametrize(
    ("operation", "values", "expected"),
    [
        ("max", [-2.5, 3.0, 1.0], 3.0),
        ("min", [-2.5, 3.0, 1.0], -2.5),
        ("max.abs", [-4.5, 3.0, 1.0], 4.5),
        ("max", [float("nan"), -3.0, -1.0], -1.0),
        ("max.NaN", [float("nan"), -3.0, -1.0], float("nan")),
        ("min", [float("nan")], float("nan")),
        ("max", [-0.0, 0.0], 0.0),
        ("min", [0.0, -0.0], -0.0),
    ],
)
def test_extrema_of_floats(operation: str, values: list[float], expected: float) -> None:
    """As code for B200 finds the maximum of a row: PTX ISA 8.6, "redux.sync"."""
    lanes = np.resize(np.array(values, np.float32), 32)
    read = (
        "mul.wide.u32 %d1, %r60, 4; add.u64 %d2, %d1, %d60; add.u64 %d1, %d1, %d61; ld.global.b32 %r2, [%d2];"
    )
    body = f"{read} redux.sync.{operation}.f32 %r1, %r2, -1; st.global.u32 [%d1], %r1;"
    (found,), _ = run_kernel(kernel_text(body, 2), [lanes], [(32, np.float32)])
    assert (
        found.tobytes() == np.full(32, expected, np.float32).tobytes() or np.isnan([*found, expected]).all()
    )


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_atomics_count_every_thread(seed: int) -> None:
    text = kernel_text("atom.global.add.u32 %r1, [%d61], 1;" + STORE, 2)
    memory = Memory(1 << 16)
    out, counter = memory.allocate(256), memory.allocate(4, initial=bytes(4))
    arguments = [address.to_bytes(8, "little") for address in (out, counter)]
    launch(parse_ptx(text, "x").kernels["k"], (1, 1, 1), (64, 1, 1), arguments, memory, seed=seed)
    assert memory.read(counter, 4).view(np.uint32)[0] == 64
    assert sorted(memory.read(out, 256).view(np.uint32).tolist()) == list(range(64))


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("red.global.max.s32 [%d61], %r60;", 63),
        ("red.global.min.u32 [%d61], %r60;", 0),
        ("red.global.or.b32 [%d61], %r60;", 63),
        ("red.global.inc.u32 [%d61], 9;", 63 % 10),  # 100 is above 9: the first one makes it zero
        ("atom.global.exch.b32 %r5, [%d61], 5;", 5),
        ("atom.global.cas.b32 %r5, [%d61], 100, %r60;", 0),
    ],
)
def test_atomic_operations(instruction: str, expected: int) -> None:
    memory = Memory(1 << 16)
    out = memory.allocate(256)
    cell = memory.allocate(4, initial=(100).to_bytes(4, "little"))
    kernel = parse_ptx(kernel_text(instruction, 2), "x").kernels["k"]
    launch(kernel, (1, 1, 1), (64, 1, 1), [out.to_bytes(8, "little"), cell.to_bytes(8, "little")], memory)
    start = {"red.global.max.s32 [%d61], %r60;": 100, "red.global.or.b32 [%d61], %r60;": 127}
    assert memory.read(cell, 4).view(np.uint32)[0] == start.get(instruction, expected)
