"""Copies of tiles of tensors and the barriers that they are waited for with (PTX ISA, "cp.async.bulk.tensor",
"mbarrier").

`recorded/tiles_bf16.ptx` is a product as Triton generates it with `is_tma_allowed` (jaxlib 0.10.2, an H100):
bf16[64,256] by bf16[256,128], of which each of eight blocks sums a part.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.ptx import kernel_text, run_kernel

from hlotool.backends.gpu_ptx.launch import launch
from hlotool.backends.gpu_ptx.memory import Memory
from hlotool.backends.gpu_ptx.program import parse_ptx
from hlotool.backends.gpu_ptx.tensor_maps import TensorMap, excerpt, tensor_maps
from hlotool.errors import KernelFault

RECORDED = Path(__file__).parent / "recorded"
PTX = (RECORDED / "tiles_bf16.ptx").read_text()
#: What the dump says of its tensors, between lines of other passes.
DUMPED = (RECORDED / "tiles_bf16.triton-to-llvm.txt").read_text()


def product(text: str, seed: int = 0) -> tuple[Any, Any]:
    """What the kernel makes of random factors, shape (8, 64, 128), and what is right."""
    random = np.random.default_rng(3)
    left = random.normal(size=(64, 8, 32)).astype(ml_dtypes.bfloat16)
    right = random.normal(size=(8, 32, 128)).astype(ml_dtypes.bfloat16)
    memory = Memory()
    places = [memory.allocate(each.nbytes, initial=each.tobytes()) for each in (left, right)]
    places.append(memory.allocate(8 * 64 * 128 * 4))
    arguments = [
        replace(tensor, address=places[number]).encode() for number, tensor in tensor_maps(DUMPED).items()
    ]
    kernel = parse_ptx(text, "tiles.ptx").kernels["gemm_fusion_dot"]
    launch(kernel, (8, 1, 1), (128, 1, 1), arguments, memory, dynamic_shared=32768, seed=seed)
    found = memory.read(places[2], 8 * 64 * 128 * 4).view(np.float32).reshape(8, 64, 128)
    return found, np.einsum("mbk,bkn->bmn", left.astype(np.float64), right.astype(np.float64))


def test_what_a_dump_says_of_tensors() -> None:
    """Triton's tiles are at most as wide as what is swizzled: 128 bytes."""
    assert tensor_maps(excerpt(DUMPED)) == {
        0: TensorMap(0, 2, (32, 8, 64), (64, 1, 64), 128),
        1: TensorMap(0, 2, (128, 32, 8), (64, 64, 1), 128),
        2: TensorMap(0, 4, (128, 64, 8), (32, 64, 1), 128),
    }
    with pytest.raises(ValueError, match="does not say what tensors"):
        tensor_maps("module")
    with pytest.raises(ValueError, match="are not copied"):
        tensor_maps(DUMPED.replace("tile_strides = [1, 1, 1]", "tile_strides = [1, 2, 1]"))


@pytest.mark.parametrize("seed", [0, 1])
def test_a_product_by_tiles(seed: int) -> None:
    """Tiles of 64 columns of which the tensor has 32: the rest is zeros, and is not written."""
    found, expected = product(PTX, seed)
    assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize(
    ("removed", "kind"),
    [
        ("@%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 8192;", "barrier"),
        ("@%p2 mbarrier.init", "barrier"),
        ("fence.proxy.async.shared::cta;\n\tbfe", "race"),
        ("wgmma.fence.sync.aligned;", "race"),
        ("wgmma.wait_group.sync.aligned 0;", "race"),
        ("cp.async.bulk.commit_group;", "race"),
        ("cp.async.bulk.wait_group.read 	0;", "race"),
    ],
)
def test_what_is_missing_is_seen(removed: str, kind: str) -> None:
    if removed.startswith("@%p2 mbarrier.init"):
        line = next(line for line in PTX.splitlines() if "mbarrier.init" in line)
        text = PTX.replace(line, "")
    else:
        assert removed in PTX
        text = PTX.replace(removed, "bfe" if removed.endswith("bfe") else "", 1)
    with pytest.raises(KernelFault) as caught:
        product(text)
    assert caught.value.kind == kind


def test_a_tile_comes_when_it_is_waited_for() -> None:
    """It is a fault to read a tile before a thread has waited for it, or to announce more than comes."""
    wait = "mbarrier.try_wait.parity.shared::cta.b64 complete, [%r1], %r3;"
    assert wait in PTX
    hasty = re.sub(r"@%p\d+ mbarrier\.inval.*", "", PTX).replace(wait, "setp.eq.b32 complete, 0, 0;")
    with pytest.raises(KernelFault, match=r"not waited for.*cp\.async\.bulk\.tensor"):
        product(hasty)
    with pytest.raises(KernelFault, match="0 arrivals and 64 bytes are missing"):
        product(PTX.replace("_, [%r1], 8192;", "_, [%r1], 8256;"))


BARRIER = ".shared .align 8 .b8 barrier[8]; .shared .align 4 .b8 word[4];"


def waiting(count: int) -> str:
    """Thread 32 writes a word and arrives; all others wait and read it."""
    return kernel_text(
        f"""
    mov.u32 %r50, barrier; mov.u32 %r51, word;
    setp.eq.u32 %p1, %r61, 0;
    @%p1 mbarrier.init.shared.b64 [%r50], {count};
    bar.sync 0;
    setp.eq.u32 %p2, %r61, 32; mov.u32 %r1, 7;
    @!%p2 bra WAIT;
    st.shared.u32 [%r51], %r1;
    mbarrier.arrive.shared.b64 _, [%r50];
    bra DONE;
    WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [%r50], 0;
    @!%p3 bra WAIT;
    ld.shared.u32 %r1, [%r51];
    DONE:
    mul.wide.u32 %d1, %r61, 4; add.u64 %d2, %d60, %d1; st.global.u32 [%d2], %r1;
    """,
        1,
        BARRIER,
    )


def test_threads_wait_for_arrivals() -> None:
    """What was written before an arrival is read behind the wait: that is no race."""
    (found,), _ = run_kernel(waiting(1), [], [(64, np.uint32)], block=64)
    assert (found == 7).all()
    with pytest.raises(KernelFault, match="63 threads of block 0 wait for ever: 1 arrivals and 0 bytes"):
        run_kernel(waiting(2), [], [(64, np.uint32)], block=64)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("mov.u32 %r1, %r62; st.global.u32 [%d60], %r1;", "another block writes another value"),
        ("mov.u32 %r1, 7; st.global.u32 [%d60], %r1;", ""),
        (
            "mul.wide.u32 %d1, %r62, 4; add.u64 %d2, %d60, %d1; mov.u32 %r1, 1; st.global.u32 [%d2], %r1;"
            "ld.global.u32 %r2, [%d60]; st.global.u32 [%d2], %r2;",
            r"reads what block 0 wrote in line \d+ \(st",
        ),
        ("ld.global.u32 %r2, [%d60]; st.global.u32 [%d60], %r62;", "writes what block another reads"),
        ("mov.u32 %r1, 1; red.global.add.u32 [%d60], %r1;", ""),
    ],
)
def test_blocks_that_access_the_same_memory(body: str, message: str) -> None:
    """Register 62 is the number of the block; atomic operations, and equal values, are no race."""
    text = kernel_text(f"mov.u32 %r62, %ctaid.x;\n{body}", 1)

    def run() -> None:
        memory = Memory(check_uninitialised=False)
        place = memory.allocate(64)
        kernel = parse_ptx(text, "blocks.ptx").kernels["k"]
        launch(kernel, (4, 1, 1), (1, 1, 1), [place.to_bytes(8, "little")], memory)

    if not message:
        run()
        return
    with pytest.raises(KernelFault, match=message):
        run()
