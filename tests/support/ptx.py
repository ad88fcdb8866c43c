"""Small PTX kernels for tests: operands in arrays, one element for each thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlotool.backends.gpu_ptx.launch import Checks, LaunchStatistics, launch
from hlotool.backends.gpu_ptx.memory import Memory
from hlotool.backends.gpu_ptx.program import parse_ptx

HEADER = ".version 8.5\n.target sm_90a\n.address_size 64\n"
_REGISTERS = """
.reg .pred %p<20>; .reg .b16 %h<40>; .reg .b32 %r<80>; .reg .b64 %d<80>; .reg .f32 %f<40>; .reg .f64 %g<40>;
"""


def kernel_text(body: str, pointers: int, declarations: str = "", attributes: str = "") -> str:
    """A kernel `k` of so many pointers, which are in `%d60`, …; `%r60` is the thread of the grid, `%r61` of
    the block.
    """
    parameters = ", ".join(f".param .u64 p{number}" for number in range(pointers))
    loads = "\n".join(f"ld.param.u64 %d{60 + number}, [p{number}];" for number in range(pointers))
    return f"""{HEADER}{declarations}
.visible .entry k({parameters}) {attributes}
{{
{_REGISTERS}
{loads}
mov.u32 %r61, %tid.x;
mov.u32 %r62, %ctaid.x;
mov.u32 %r63, %ntid.x;
mad.lo.u32 %r60, %r62, %r63, %r61;
{body}
ret;
}}
"""


def run_kernel(
    text: str,
    inputs: Sequence[NDArray[Any]],
    outputs: Sequence[tuple[int, Any]],
    *,
    grid: int = 1,
    block: int = 32,
    seed: int = 0,
    checks: Checks = Checks(),  # noqa: B008
    dynamic_shared: int = 0,
    memory: Memory | None = None,
    limit: int = 10**8,
) -> tuple[list[NDArray[Any]], LaunchStatistics]:
    """Run kernel `k`, whose parameters are pointers to the inputs and then to the outputs (elements,
    dtype).
    """
    memory = memory or Memory(1 << 16)
    pointers = [memory.allocate(array.nbytes, initial=array.tobytes()) for array in inputs]
    results = [memory.allocate(count * np.dtype(kind).itemsize) for count, kind in outputs]
    statistics = launch(
        parse_ptx(text, "test.ptx").kernels["k"],
        (grid, 1, 1),
        (block, 1, 1),
        [pointer.to_bytes(8, "little") for pointer in (*pointers, *results)],
        memory,
        seed=seed,
        checks=checks,
        dynamic_shared=dynamic_shared,
        limit=limit,
    )
    found = [
        memory.read(pointer, count * np.dtype(kind).itemsize).view(kind)
        for pointer, (count, kind) in zip(results, outputs)
    ]
    return found, statistics


def elementwise(
    instruction: str, operands: Sequence[NDArray[Any]], result: Any, *, seed: int = 0, carry_in: str = ""
) -> NDArray[Any]:
    """The results of an instruction for arrays of operands of 2, 4 or 8 bytes, one for each thread.

    Args:
        instruction: with `{d}` for its destination, `{0}`, `{1}`, … for its operands.
        result: dtype of the result; bool: `{d}` is a predicate.
        carry_in: what is executed before it.
    """
    count = len(operands[0])
    lines, names = [], {}
    for number, array in enumerate(operands):
        letter = {2: "h", 4: "r", 8: "d"}[array.itemsize]
        names[str(number)] = f"%{letter}{number + 1}"
        lines += [
            f"mul.wide.u32 %d50, %r60, {array.itemsize};",
            f"add.u64 %d50, %d50, %d{60 + number};",
            f"ld.global.b{8 * array.itemsize} %{letter}{number + 1}, [%d50];",
        ]
    kind = np.dtype(result)
    letter = "p" if kind == np.bool_ else {1: "h", 2: "h", 4: "r", 8: "d"}[kind.itemsize]
    target = f"%{letter}10"
    stored, width = target, kind.itemsize
    lines.append(carry_in)
    lines.append(instruction.format(*(names[str(number)] for number in range(len(operands))), d=target))
    if letter == "p":
        lines.append("selp.b16 %h11, 1, 0, %p10;")
        stored = "%h11"
    lines += [
        f"mul.wide.u32 %d50, %r60, {width};",
        f"add.u64 %d50, %d50, %d{60 + len(operands)};",
        f"st.global.b{8 * width} [%d50], {stored};",
    ]
    block = 64
    assert count % block == 0
    text = kernel_text("\n".join(lines), len(operands) + 1)
    (found,), _ = run_kernel(text, operands, [(count, kind)], grid=count // block, block=block, seed=seed)
    return found
