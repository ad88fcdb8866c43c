"""XLA's own listing of what it launches, what is counted in its optimised program, and our launches."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.gpu.thunks import Launches, read_thunks
from benchmarks.gpu.xla_side import Kernels, count_kernels
from benchmarks.kernels import counts as kernel_counts
from hlotool.parser.reader import parse_module

#: As jaxlib 0.10.2 writes it: a loop, a copy into a slice, collectives that run beside kernels, a sequence.
_LISTING = """001: kCopy         [source       | next=004 (3)] kCopy
002: kCustomKernel [source       | next=004 (2)] loop_broadcast_fusion grid: [24, 1, 1] threads: [128, 1, 1]
003: kMemzero      [source       | next=004 (1)] kMemzero
004: kWhile        [prev=003 (1) | next=013 (1)]
condition:
    005: kCustomKernel [source | sink] loop_compare_fusion grid: [1, 1, 1] threads: [1, 1, 1]
  body:
    006: kGemm               [source       | next=007 (1)] kGemm
    007: kDynamicSliceFusion [prev=006 (1) | next=009 (1)] params=1, results=1
        008: kCopy [source | sink] kCopy
    010: kAsyncStart   [prev=009 (1) | next=012 (4)] stream=communication_stream[0], async_id=4
        011: kAllGather [source | sink] kAllGather
    012: kAsyncDone    [source       | sink        ] async_id=4
015: kSequential   [prev=005 (1) | next=016 (1)]   013: kCopy            [source       | next=007 (1)] kCopy
  014: kTriangularSolve [prev=006 (1) | sink        ] (no description)
016: kConvolution [prev=015 (1) | sink        ] (no description)
"""


def test_a_listing() -> None:
    assert read_thunks(_LISTING) == Launches(kernels=2, calls=4, copies=4)
    assert read_thunks(_LISTING).total == 10
    assert read_thunks("").total == 0


_ASYNCHRONOUS = """HloModule asynchronous, is_scheduled=true
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = pred[] compare(a, b), direction=LT }
sorting { p = f32[8] parameter(0) ROOT s = f32[8] sort(p), dimensions={0}, to_apply=less }
ENTRY e { x = f32[8] parameter(0)
  r = f32[8] all-reduce-start(x), channel_id=1, replica_groups={}, to_apply=sum
  f = f32[8] fusion(x), kind=kCustom, calls=sorting
  s = f32[8] sort(x), dimensions={0}, to_apply=less
  d = f32[8] all-reduce-done(r)
  ROOT t = (f32[8], f32[8], f32[8]) tuple(d, f, s) }
"""


def test_what_is_started_and_waited_for_counts_once_and_sorts_count() -> None:
    assert count_kernels(parse_module(_ASYNCHRONOUS)) == Kernels(fusions=1, launches=3)


_BEFORE = """HloModule jit_NAME
ENTRY e { x = f32[300] parameter(0) a = f32[300] sine(x) n = f32[300] negate(a)
  f = c64[151] fft(n), fft_type=RFFT, fft_length={300} ROOT t = (f32[300], c64[151]) tuple(a, f) }
"""


def test_a_dump_of_xla(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, name in enumerate("abcd"):
        stem = f"module_{4 - number}.jit_{name}"
        (tmp_path / f"{stem}.before_optimizations.txt").write_text(_BEFORE.replace("NAME", name))
        (tmp_path / f"{stem}.thunk_sequence.txt").write_text(_LISTING if name == "a" else "")
    monkeypatch.setattr("sys.argv", ["kernel_counts", "--dumps", str(tmp_path)])
    kernel_counts.main()
    out = capsys.readouterr().out.splitlines()
    assert [line.split() for line in out[1:5]] == [
        ["jit_a", "1", "0", "1", "10", "4"],
        *([f"jit_{name}", "1", "0", "1", "0", "0", "MORE"] for name in "bcd"),
    ]
    assert out[5] == (
        "looked at: 3 programs, 2 with more launches than XLA; in all 6 against 10; "
        "6 without copies and memsets"
    )
    assert out[6] == "apart: 1 programs, 1 with more launches than XLA; in all 2 against 0"


def test_a_large_product_is_a_call_and_what_it_has_transposed(tmp_path: Path) -> None:
    """cuBLAS takes the first operand as it lies; of the second, matrices do not lie together."""
    text = """HloModule m
ENTRY e { x = f32[4,256,128] parameter(0) y = f32[128,256,4] parameter(1)
  ROOT d = f32[4,256,256] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={2}, lhs_contracting_dims={2},
    rhs_contracting_dims={0} }
"""
    (tmp_path / "m.before_optimizations.txt").write_text(text)
    listing = tmp_path / "m.thunk_sequence.txt"
    listing.write_text("001: kGemm [source | sink] kGemm\n")
    row = kernel_counts.count_dump(listing)
    assert (row.ours, row.host, row.xla, row.exceeds) == (2, 0, 1, True)
