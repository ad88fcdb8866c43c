"""Where values lie: small programs worked out by hand, as XLA assigns buffers."""

from __future__ import annotations

import pytest

from hlotool.facts.memory import memory_of
from hlotool.parser.reader import parse_module

#: Bytes of f32[256].
K = 1024
_FUSED = """fused {
  p = f32[256] parameter(0)
  q = f32[256] parameter(1)
  ROOT r = f32[256] OPERATION
}
"""


def peak(body: str, before: str = "") -> int:
    return memory_of(
        parse_module(f"HloModule m, is_scheduled=true\n{before}ENTRY main {{\n{body}\n}}\n")
    ).peak


def test_a_place_that_is_free_again_is_used() -> None:
    """c is too large for the place of a, which is at the edge, and so grows over it."""
    body = (
        "x = f32[256] parameter(0)\n"
        "a = f32[256] reverse(x), dimensions={0}\n"
        "b = f32[257] pad(a, z), padding=0_1\n"
        "c = f32[512] concatenate(x, x), dimensions={0}\n"
        'd = s32[] custom-call(b, c), custom_call_target="f"\n'
        "ROOT r = s32[] negate(d)"
    )
    body = "z = f32[] constant(0)\n" + body
    # x, z, the result, and c with b; a lies where c will be.
    assert peak(body) == K + 4 + 4 + 2 * K + 257 * 4


@pytest.mark.parametrize(
    ("operation", "more"), [("add(p, q)", 0), ("copy(p)", K), ("reverse(p), dimensions={0}", K)]
)
def test_a_fusion_writes_over_what_it_reads_by_element(operation: str, more: int) -> None:
    """The sum of a and b is read, so that it is no result; its place is that of a where that may be."""
    body = (
        "x = f32[256] parameter(0)\n"
        "a = f32[256] reverse(x), dimensions={0}\n"
        "c = f32[256] fusion(a, x), kind=kLoop, calls=fused\n"
        "ROOT d = f32[2] slice(c), slice={[0:2]}"
    )
    assert peak(body, _FUSED.replace("OPERATION", operation)) == K + K + more + 8


def test_constants_of_kernels_take_no_memory() -> None:
    fused = (
        "fused {\n  p = f32[256] parameter(0)\n  c = f32[256] constant({...})\n"
        "  ROOT r = f32[256] add(p, c)\n}\n"
    )
    body = "x = f32[256] parameter(0)\nROOT y = f32[256] fusion(x), kind=kLoop, calls=fused"
    assert peak(body, fused) == 2 * K


def test_temporaries_of_a_branch_do_not_lie_where_its_result_does() -> None:
    branch = (
        "NAME {\n  v = f32[256] parameter(0)\n  w = f32[256] reverse(v), dimensions={0}\n"
        "  ROOT r = f32[256] reverse(w), dimensions={0}\n}\n"
    )
    body = (
        "i = s32[] parameter(0)\nx = f32[256] parameter(1)\n"
        "ROOT y = f32[256] conditional(i, x, x), branch_computations={one, two}"
    )
    # The arguments, the result, and w.
    assert peak(body, branch.replace("NAME", "one") + branch.replace("NAME", "two")) == 4 + 3 * K
