"""Transforms of arrays whose elements are all equal: most of the result is 0, up to rounding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hlotool
from hlotool.judge.verdicts import Verdict


@pytest.mark.xla
@pytest.mark.parametrize(("kind", "points"), [("IFFT", 5), ("FFT", 7)])
@pytest.mark.parametrize("value", [1.0, 3.0, 0.1])
def test_what_two_libraries_leave_of_zero_is_rounding(
    kind: str, points: int, value: float, tmp_path: Path
) -> None:
    """NumPy's zeros are exact where XLA's are not: the numbers look exact, their products with roots of unity
    are not."""
    file = tmp_path / "m.hlo"
    file.write_text(
        f"HloModule m\nENTRY e {{\n  x = c64[{points}] parameter(0)\n"
        f"  ROOT y = c64[{points}] fft(x), fft_type={kind}, fft_length={{{points}}}\n}}\n"
    )
    np.savez(tmp_path / "in.npz", x=np.full(points, value, np.complex64))
    [row] = hlotool.replay(str(file), backend="xla", inputs=str(tmp_path / "in.npz"), cache=False).rows
    assert row.verdict in (Verdict.ROUNDING, Verdict.AGREE, Verdict.IDENTICAL), row.reason


def test_a_wrong_sign_is_no_rounding(tmp_path: Path) -> None:
    for stage, root in (("before", "x"), ("cpu_after", "n")):
        (tmp_path / f"module_0001.m.{stage}_optimizations.txt").write_text(
            "HloModule m\nENTRY e {\n  x = c64[7] parameter(0)\n  n = c64[7] negate(x)\n"
            f"  ROOT y = c64[7] fft({root}), fft_type=FFT, fft_length={{7}}\n}}\n"
        )
    np.savez(tmp_path / "in.npz", x=np.full(7, 3, np.complex64))
    [row] = hlotool.replay(str(tmp_path), inputs=str(tmp_path / "in.npz"), cache=False).rows
    assert row.verdict is Verdict.WRONG
