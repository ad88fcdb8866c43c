"""Threads that part and meet, wait, and tell each other: small kernels whose results are counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from support.ptx import HEADER, kernel_text, run_kernel

from hlotool.backends.gpu_ptx.launch import launch
from hlotool.backends.gpu_ptx.memory import Memory
from hlotool.backends.gpu_ptx.program import parse_ptx
from hlotool.errors import BackendTimeout, KernelFault, Unsupported

STORE = "mul.wide.u32 %d1, %r60, 4; add.u64 %d1, %d1, %d60; st.global.u32 [%d1], %r1;"
SHARED = ".shared .align 16 .b8 buffer[4096];\n"
SEEDS = pytest.mark.parametrize("seed", [0, 1, 2])


@SEEDS
def test_loops_end_for_each_thread_when_it_is_done(seed: int) -> None:
    body = """
    mov.u32 %r1, 0; mov.u32 %r2, 0;
    $LOOP:
    add.u32 %r1, %r1, %r2; add.u32 %r2, %r2, 1;
    setp.le.u32 %p1, %r2, %r60;
    @%p1 bra $LOOP;
    """
    (found,), _ = run_kernel(kernel_text(body + STORE, 1), [], [(96, np.uint32)], block=96, seed=seed)
    assert found.tolist() == [n * (n + 1) // 2 for n in range(96)]


@SEEDS
def test_threads_meet_behind_a_branch(seed: int) -> None:
    """Three ways through nested branches; instructions behind them are executed once for all."""
    body = """
    and.b32 %r2, %r60, 3;
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra $A;
    setp.eq.u32 %p2, %r2, 1;
    @!%p2 bra $C;
    mov.u32 %r1, 20; bra.uni $END;
    $C: mov.u32 %r1, 30; bra $END;
    $A: mov.u32 %r1, 10;
    $END:
    @%p1 add.u32 %r1, %r1, 1;
    """
    (found,), statistics = run_kernel(
        kernel_text(body + STORE, 1), [], [(64, np.uint32)], block=64, seed=seed
    )
    assert found.tolist() == [11, 20, 30, 30] * 16
    if seed == 0:
        assert statistics.steps < 30


def test_a_table_of_branches() -> None:
    body = """
    and.b32 %r2, %r60, 3;
    $TABLE: .branchtargets $L0, $L1, $L2, $L1;
    brx.idx %r2, $TABLE;
    $L0: mov.u32 %r1, 5; bra $END;
    $L1: mov.u32 %r1, 6; bra $END;
    $L2: mov.u32 %r1, 7;
    $END:
    """
    (found,), _ = run_kernel(kernel_text(body + STORE, 1), [], [(32, np.uint32)])
    assert found.tolist() == [5, 6, 7, 6] * 8


REVERSE = """
    shl.b32 %r2, %r61, 2; mov.u32 %r3, buffer; add.u32 %r4, %r3, %r2;
    st.shared.u32 [%r4], %r60;
    {barrier}
    sub.u32 %r5, %r63, %r61; sub.u32 %r5, %r5, 1; shl.b32 %r5, %r5, 2; add.u32 %r5, %r5, %r3;
    ld.shared.u32 %r1, [%r5];
"""


@SEEDS
def test_a_barrier_orders_shared_memory(seed: int) -> None:
    text = kernel_text(REVERSE.format(barrier="bar.sync 0;") + STORE, 1, SHARED)
    (found,), _ = run_kernel(text, [], [(384, np.uint32)], grid=3, block=128, seed=seed)
    assert found.reshape(3, 128).tolist() == [[b * 128 + 127 - t for t in range(128)] for b in range(3)]


@SEEDS
def test_a_missing_barrier_is_a_race_of_two_lines(seed: int) -> None:
    text = kernel_text(REVERSE.format(barrier="") + STORE, 1, SHARED)
    with pytest.raises(KernelFault) as caught:
        run_kernel(text, [], [(384, np.uint32)], grid=3, block=128, seed=seed)
    fault = caught.value
    assert fault.kind in ("race", "uninitialised")
    if fault.kind == "race":
        assert "ld.shared.u32" in fault.instruction
        assert "st.shared.u32 [%r4], %r60" in str(fault)
        assert text.splitlines()[fault.location.line - 1].strip().startswith("ld.shared")


def test_writes_behind_reads_need_a_barrier_too() -> None:
    again = REVERSE.format(barrier="bar.sync 0;") + "{second} st.shared.u32 [%r4], 7;"
    run_kernel(kernel_text(again.format(second="bar.sync 0;"), 1, SHARED), [], [(64, np.uint32)], block=64)
    with pytest.raises(KernelFault, match=r"writes shared memory .* read in line \d+ \(ld.shared.u32"):
        run_kernel(kernel_text(again.format(second=""), 1, SHARED), [], [(64, np.uint32)], block=64)


def test_lanes_of_a_warp_are_ordered_by_what_they_execute_together() -> None:
    run_kernel(kernel_text(REVERSE.format(barrier="bar.warp.sync -1;"), 1, SHARED), [], [(32, np.uint32)])
    with pytest.raises(KernelFault, match="nothing orders"):
        run_kernel(kernel_text(REVERSE.format(barrier=""), 1, SHARED), [], [(32, np.uint32)])


def test_several_warps_may_write_the_same_value() -> None:
    same = "st.shared.u32 [buffer], 5; bar.sync 0; ld.shared.u32 %r1, [buffer];"
    (found,), _ = run_kernel(kernel_text(same + STORE, 1, SHARED), [], [(64, np.uint32)], block=64, seed=1)
    assert set(found.tolist()) == {5}
    with pytest.raises(KernelFault, match="another value"):
        run_kernel(kernel_text("st.shared.u32 [buffer], %r61;", 1, SHARED), [], [(64, np.uint32)], block=64)


NAMED = """
    setp.lt.u32 %p1, %r61, 32;
    mov.u32 %r3, buffer; and.b32 %r2, %r61, 31; shl.b32 %r2, %r2, 2; add.u32 %r4, %r3, %r2;
    @%p1 bra $PRODUCER;
    {wait}
    ld.shared.u32 %r1, [%r4];
    bra $END;
    $PRODUCER:
    mul.lo.u32 %r1, %r61, 3;
    st.shared.u32 [%r4], %r1;
    bar.arrive 1, 64;
    $END:
"""


@SEEDS
def test_named_barriers_between_warps(seed: int) -> None:
    """One warp arrives and goes on, the other waits for it."""
    text = kernel_text(NAMED.format(wait="bar.sync 1, 64;") + STORE, 1, SHARED)
    (found,), _ = run_kernel(text, [], [(64, np.uint32)], block=64, seed=seed)
    assert found.tolist() == [3 * t for t in range(32)] * 2


def test_a_missing_wait_at_a_named_barrier() -> None:
    with pytest.raises(KernelFault) as caught:
        run_kernel(kernel_text(NAMED.format(wait="") + STORE, 1, SHARED), [], [(64, np.uint32)], block=64)
    assert caught.value.kind in ("race", "uninitialised")


def test_a_barrier_that_is_never_complete() -> None:
    body = "setp.lt.u32 %p1, %r61, 32; @%p1 bra $END; bar.sync 1, 96; $END: ret;"
    with pytest.raises(KernelFault, match="32 threads wait for ever at barrier 1"):
        run_kernel(kernel_text(body, 1), [], [(64, np.uint32)], block=64)


def test_barriers_do_not_wait_for_threads_that_have_ended() -> None:
    body = "mov.u32 %r1, 1; setp.lt.u32 %p1, %r61, 32; @%p1 ret; bar.sync 0; mov.u32 %r1, 2;"
    (found,), _ = run_kernel(kernel_text(body + STORE, 1), [], [(64, np.uint32)], block=64)
    assert found[32:].tolist() == [2] * 32


def test_reductions_at_barriers() -> None:
    body = "setp.lt.u32 %p1, %r61, 40; bar.red.popc.u32 %r1, 0, %p1;"
    (found,), _ = run_kernel(kernel_text(body + STORE, 1), [], [(128, np.uint32)], grid=2, block=64)
    assert set(found.tolist()) == {40}
    body = "setp.lt.u32 %p1, %r61, 40; bar.red.and.pred %p2, 0, %p1; selp.u32 %r1, 1, 0, %p2;"
    (found,), _ = run_kernel(kernel_text(body + STORE, 1), [], [(64, np.uint32)], block=64)
    assert set(found.tolist()) == {0}


COPY = """
    mov.u32 %r3, buffer; shl.b32 %r2, %r61, 2; add.u32 %r4, %r3, %r2;
    mul.wide.u32 %d2, %r60, 4; add.u64 %d3, %d60, %d2;
    cp.async.ca.shared.global [%r4], [%d3], 4;
    cp.async.commit_group;
    {wait}
    ld.shared.u32 %r1, [%r4];
    add.u64 %d4, %d61, %d2; st.global.u32 [%d4], %r1;
"""


def test_asynchronous_copies_arrive_when_they_are_waited_for() -> None:
    data = np.arange(64, dtype=np.uint32) * 7
    text = kernel_text(COPY.format(wait="cp.async.wait_group 0;"), 2, SHARED)
    (found,), _ = run_kernel(text, [data], [(64, np.uint32)], block=64)
    assert found.tolist() == data.tolist()


@pytest.mark.parametrize("wait", ["", "cp.async.wait_group 1;"])
def test_a_missing_wait_names_both_lines(wait: str) -> None:
    data = np.arange(64, dtype=np.uint32)
    text = kernel_text(COPY.format(wait=wait), 2, SHARED)
    with pytest.raises(KernelFault, match=r"not waited for; line \d+: cp.async.ca") as caught:
        run_kernel(text, [data], [(64, np.uint32)], block=64)
    assert caught.value.kind == "in flight"
    assert caught.value.instruction.startswith("ld.shared")


def test_short_copies_are_filled_with_zeros() -> None:
    data = np.arange(4, dtype=np.uint32) + 1
    body = """
    mov.u32 %r3, buffer; mov.u32 %r9, 8;
    cp.async.cg.shared.global [%r3], [%d60], 16, %r9;
    cp.async.wait_all;
    ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3];
    st.global.v4.u32 [%d61], {%r4, %r5, %r6, %r7};
    """
    (found,), _ = run_kernel(kernel_text(body, 2, SHARED), [data], [(4, np.uint32)], block=1)
    assert found.tolist() == [1, 2, 0, 0]


@pytest.mark.parametrize(
    ("body", "kind", "says"),
    [
        ("ld.global.u32 %r1, [%d60+256];", "bounds", "byte 256 of a buffer of 256 bytes"),
        ("ld.global.u32 %r1, [%d60+-4];", "bounds", "out of bounds"),
        ("st.global.u32 [%d60+256], %r1;", "bounds", "byte 256 of a buffer of 256 bytes"),
        ("ld.global.u32 %r1, [%d60+2];", "alignment", "no multiple of 4"),
        ("ld.global.v2.u32 {%r1, %r2}, [%d60+4];", "alignment", "no multiple of 8"),
        ("ld.global.u32 %r1, [%d60];", "uninitialised", "never written"),
        ("ld.shared.u32 %r1, [buffer];", "uninitialised", "never written"),
        ("ld.shared.u32 %r1, [buffer+4096];", "bounds", "4096 of 4096 bytes of shared memory"),
        ("trap;", "trap", "trap"),
        ("setp.eq.u32 %p1, %r61, 3; @%p1 trap;", "trap", r"thread \(3, 0, 0\)"),
    ],
)
def test_what_no_gpu_defines_is_a_fault(body: str, kind: str, says: str) -> None:
    text = kernel_text(body, 1, SHARED)
    with pytest.raises(KernelFault, match=says) as caught:
        run_kernel(text, [], [(64, np.uint32)], block=32)
    assert caught.value.kind == kind
    assert caught.value.kernel == "k"
    assert caught.value.instruction in " ".join(text.split())
    assert text.splitlines()[caught.value.location.line - 1].strip()


def test_launches_against_limits() -> None:
    kernel = parse_ptx(kernel_text("", 1, attributes=".maxntid 64"), "x").kernels["k"]
    memory = Memory()
    arguments = [memory.allocate(4).to_bytes(8, "little")]
    for grid, block, says in (
        ((1, 1, 1), (65, 1, 1), "64 threads at most"),
        ((1, 1, 1), (1, 1, 65), "not possible"),
        ((1, 70000, 1), (1, 1, 1), "not possible"),
    ):
        with pytest.raises(KernelFault, match=says):
            launch(kernel, grid, block, arguments, memory)
    with pytest.raises(KernelFault, match="1 parameters are given 0"):
        launch(kernel, (1, 1, 1), (1, 1, 1), [], memory)
    assert kernel.max_threads == 64


def test_endless_loops_end() -> None:
    with pytest.raises(BackendTimeout, match="more than 10,000 instructions"):
        run_kernel(kernel_text("$L: add.u32 %r1, %r1, 1; bra $L;", 1), [], [(1, np.uint32)], limit=10_000)


@pytest.mark.parametrize(
    "instruction",
    [
        "frobnicate.b32 %r1, %r2;",
        "add.rn.weird.f32 %f1, %f2, %f3;",
        "tcgen05.alloc.b32 [%r1], 5;",
        "add.s32 %r1, %r2, somewhere;",
        "call unknown;",
    ],
)
def test_what_is_not_known_is_named(instruction: str) -> None:
    """With the file, the line and the instruction; and only when it is reached."""
    text = kernel_text(instruction, 1)
    with pytest.raises(Unsupported) as caught:
        run_kernel(text, [], [(1, np.uint32)])
    assert instruction[:-1] in str(caught.value)
    assert caught.value.location.path == "test.ptx"
    assert instruction in text.splitlines()[caught.value.location.line - 1]


def test_device_functions_are_expanded() -> None:
    function = """
    .func (.param .b32 result) twice(.param .b32 given)
    {
    .reg .b32 %r<3>; .reg .pred %p<2>;
    ld.param.u32 %r1, [given];
    setp.gt.u32 %p1, %r1, 20;
    @%p1 bra $BIG;
    add.u32 %r2, %r1, %r1;
    st.param.u32 [result], %r2;
    ret;
    $BIG:
    st.param.u32 [result], %r1;
    ret;
    }
    """
    body = """
    {
    .param .b32 in; st.param.u32 [in], %r60; .param .b32 out;
    call.uni (out), twice, (in);
    ld.param.u32 %r1, [out];
    }
    """
    (found,), _ = run_kernel(kernel_text(body + STORE, 1, function), [], [(32, np.uint32)])
    assert found.tolist() == [2 * n if n <= 20 else n for n in range(32)]


def test_generic_addresses_reach_every_space() -> None:
    body = """
    .local .align 8 .b8 depot[8];
    cvta.shared.u64 %d5, buffer; mul.wide.u32 %d6, %r61, 4; add.u64 %d5, %d5, %d6;
    st.u32 [%d5], 100;
    mov.u64 %d7, depot; cvta.local.u64 %d7, %d7; st.u32 [%d7], %r60;
    setp.lt.u32 %p1, %r61, 16; selp.b64 %d8, %d5, %d7, %p1;
    ld.u32 %r1, [%d8];
    """
    declarations = SHARED
    (found,), _ = run_kernel(kernel_text(body + STORE, 1, declarations), [], [(32, np.uint32)])
    assert found.tolist() == [100] * 16 + list(range(16, 32))


def test_variables_of_the_module() -> None:
    program = parse_ptx(
        HEADER + ".global .align 4 .u32 table[3] = {5, 0x10, 7};\n.const .f32 one = 0f3F800000;", "m"
    )
    table, one = program.globals["table"], program.globals["one"]
    assert np.frombuffer(table.initial or b"", np.uint32).tolist() == [5, 16, 7]
    assert np.frombuffer(one.initial or b"", np.float32).tolist() == [1.0]
    assert (table.size, table.alignment, one.space) == (12, 4, "const")
    body = """
    and.b32 %r2, %r60, 1; mul.wide.u32 %d2, %r2, 4; mov.u64 %d3, table; add.u64 %d3, %d3, %d2;
    ld.global.u32 %r1, [%d3];
    """
    text = kernel_text(body + STORE, 1, ".global .align 4 .u32 table[3] = {5, 0x10, 7};")
    (found,), _ = run_kernel(text, [], [(32, np.uint32)])
    assert found.tolist() == [5, 16] * 16
