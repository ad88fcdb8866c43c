"""Programs that few write and some tests contain: sorts by odd comparators, dilated and very large windows.

    python -m benchmarks.speed.rare_modules DIR && python -m benchmarks.speed.replay DIR/*.hlo

Writes one HLO file for each into DIR.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

#: Element types of the operands, and the body of the comparator, of sorts of 2^20 elements.
_SORTS = {
    "sort_not_ge": (["s32", "f32"], "c = pred[] compare(p0, p1), direction=GE\n ROOT r = pred[] not(c)"),
    "sort_nan_last": (
        ["f32", "s32"],
        "a = pred[] compare(p0, p0), direction=NE\n b = pred[] compare(p1, p1), direction=NE\n"
        " lt = pred[] compare(p0, p1), direction=LT\n no = pred[] constant(false)\n"
        " o = pred[] or(b, lt)\n ROOT r = pred[] select(a, no, o)",
    ),
    "sort_total_ties": (
        ["bf16", "s32"],
        "eq = pred[] compare(p0, p1), direction=EQ, type=TOTALORDER\n"
        " i = pred[] compare(p2, p3), direction=LT\n gt = pred[] compare(p0, p1), direction=GT\n"
        " ROOT r = pred[] select(eq, i, gt)",
    ),
    "sort_three_keys": (
        ["s32", "f32", "s32"],
        "n0 = pred[] compare(p0, p1), direction=NE\n n1 = pred[] compare(p2, p3), direction=NE\n"
        " l0 = pred[] compare(p0, p1), direction=LT\n g1 = pred[] compare(p2, p3), direction=GT\n"
        " l2 = pred[] compare(p4, p5), direction=LT\n t = pred[] select(n1, g1, l2)\n"
        " ROOT r = pred[] select(n0, l0, t)",
    ),
    "sort_difference_s32": (
        ["s32", "f32"],
        "d = s32[] subtract(p0, p1)\n z = s32[] constant(0)\n ROOT r = pred[] compare(d, z), direction=LT",
    ),
    "sort_difference_f32": (
        ["f32", "s32"],
        "d = f32[] subtract(p0, p1)\n z = f32[] constant(0)\n ROOT r = pred[] compare(d, z), direction=LT",
    ),
    "sort_crossed_sums": (
        ["f32", "f32"],
        "a = f32[] add(p0, p3)\n b = f32[] add(p1, p2)\n ROOT r = pred[] compare(a, b), direction=LT",
    ),
}

#: Spatial size and number of spatial dimensions of the image, window size, padding on both sides, dilation of
#: the image and of the window, features in and out; images come by twos.
_CONVOLUTIONS = {
    "conv_lhs_dilate_1000": (100, 1, 1000, 999, 1000, 1, 8),
    "conv_lhs_dilate_1000_of_3": (1000, 1, 3, 2, 1000, 1, 8),
    "conv_lhs_dilate_64_of_128": (500, 1, 128, 127, 64, 1, 8),
    "conv_rhs_dilate_1000": (5000, 1, 5, 2000, 1, 1000, 8),
    "conv_window_4096_of_16": (16, 1, 4096, 4095, 1, 1, 8),
    "conv_window_4096_of_4096": (4096, 1, 4096, 2048, 1, 1, 1),
    "conv2_transposed_by_2": (64, 2, 4, 2, 2, 1, 16),
    "conv2_transposed_by_16": (32, 2, 32, 16, 16, 1, 16),
    "conv2_lhs_dilate_100": (8, 2, 3, 2, 100, 1, 16),
    "conv2_kernel_gradient": (56, 2, 56, 1, 1, 1, 8),
}


def rare_texts() -> Iterator[tuple[str, str]]:
    """Name and text of each."""
    for name, (kinds, body) in _SORTS.items():
        yield name, f"HloModule {name}\n{_sort(kinds, body)}"
    for name, numbers in _CONVOLUTIONS.items():
        yield name, f"HloModule {name}\n{_convolution(*numbers)}"


def _sort(kinds: list[str], body: str, length: int = 1 << 20) -> str:
    parameters = "\n ".join(f"p{n} = {kinds[n // 2]}[] parameter({n})" for n in range(2 * len(kinds)))
    types = [f"{kind}[{length}]" for kind in kinds]
    operands = "\n ".join(f"x{n} = {kind} parameter({n})" for n, kind in enumerate(types))
    names = ", ".join(f"x{n}" for n in range(len(kinds)))
    result = f"ROOT s = ({', '.join(types)}) sort({names}), dimensions={{0}}, is_stable=true, to_apply=less"
    return f"less {{ {parameters}\n {body} }}\nENTRY e {{ {operands}\n {result} }}\n"


def _convolution(size: int, rank: int, window: int, pad: int, lhs: int, rhs: int, features: int) -> str:
    result = (size - 1) * lhs + 1 + 2 * pad - (window - 1) * rhs

    def dims(*numbers: int) -> str:
        return f"f32[{','.join(map(str, numbers))}]"

    def each(text: str) -> str:
        return "x".join([text] * rank)

    spatial = "01"[:rank]
    pads = each(f"{pad}_{pad}")
    return (
        f"ENTRY e {{ x = {dims(2, *[size] * rank, features)} parameter(0)\n"
        f" k = {dims(*[window] * rank, features, features)} parameter(1)\n"
        f" ROOT c = {dims(2, *[result] * rank, features)} convolution(x, k), window={{"
        f"size={each(str(window))} pad={pads} lhs_dilate={each(str(lhs))} rhs_dilate={each(str(rhs))}}},"
        f" dim_labels=b{spatial}f_{spatial}io->b{spatial}f }}\n"
    )


def main() -> None:
    """Write the files."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in rare_texts():
        (folder / f"{name}.hlo").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
