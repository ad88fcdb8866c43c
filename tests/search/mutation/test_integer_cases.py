"""Proofs about integers that wrap, and about bits; beside each stands what is another one."""

from __future__ import annotations

import pytest
from support.proof_cases import check_case

# A sum that wraps in its own type is no sum in a wider one.
WIDENED = """HloModule widened
ENTRY e {{
  x = s8[4] parameter(0)
  n = s8[] constant({number})
  w = s8[4] broadcast(n), dimensions={{}}
  y = s8[4] {opcode}(x, w)
  z = {kind}[4] convert(y)
  u = {kind}[4] convert(x)
  m = {kind}[] constant({number})
  v = {kind}[4] broadcast(m), dimensions={{}}
  o = {kind}[4] {opcode}(u, v)
  {rest}
}}"""
_BACK = "a = s32[4] subtract({z}, v) ROOT r = s32[4] copy(a)"
_BITS = "a = s16[4] convert({z}) ROOT r = s16[4] copy(a)"
_FEW = "p = s32[4] multiply({z}, {z}) a = s8[4] convert(p) ROOT r = s8[4] copy(a)"
_FEWER = (
    "p = s32[4] multiply({z}, {z}) k = s16[4] convert(p) f = s32[4] convert(k) a = s8[4] convert(f) "
    "ROOT r = s8[4] copy(a)"
)

# Whether some are true, of which one is there twice; and how many are.
SOME = """HloModule some
f {{ p = {kind}[] parameter(0) q = {kind}[] parameter(1) ROOT s = {kind}[] {opcode}(p, q) }}
ENTRY e {{
  x = {kind}[4] parameter(0)
  z = {kind}[] constant(0)
  t = {kind}[1] slice(x), slice={{[2:3]}}
  y = {kind}[5] concatenate(x, t), dimensions={{0}}
  ROOT r = {kind}[] reduce({values}, z), dimensions={{0}}, to_apply=f
}}"""

CASES = [
    *(
        (
            WIDENED.format(number=100, opcode=opcode, kind="s32", rest=one),
            WIDENED.format(number=100, opcode=opcode, kind="s32", rest=other),
            equal,
        )
        for opcode in ("add", "multiply")
        for one, other, equal in (
            (_BACK.format(z="z"), _BACK.format(z="o"), False),
            (_BITS.format(z="z"), _BITS.format(z="o"), False),
            (_FEW.format(z="o"), _FEWER.format(z="o"), True),
        )
    ),
    *(
        (
            SOME.format(kind=kind, opcode=opcode, values="x"),
            SOME.format(kind=kind, opcode=opcode, values="y"),
            equal,
        )
        for kind, opcode, equal in (("pred", "or", True), ("u8", "and", True), ("u8", "xor", False))
    ),
]


@pytest.mark.parametrize(("one", "other", "equal"), CASES, ids=[str(n) for n in range(len(CASES))])
def test_proofs(one: str, other: str, equal: bool) -> None:
    check_case(one, other, equal)
