"""Remainders that change their sign, which are 0 where they were; beside each stands what is another one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.proof_cases import check_case

# What `floor_divide` asks: is there a rest, beside a comparison of signs? Of which rest does not matter.
FLOOR = """HloModule floor
ENTRY e {{
  n = {kind}[4] parameter(0)
  d = {kind}[4] {divisor}
  zero = {kind}[] constant(0)
  zeros = {kind}[4] broadcast(zero), dimensions={{}}
  one = {kind}[] constant(1)
  ones = {kind}[4] broadcast(one), dimensions={{}}
  rest = {kind}[4] remainder(n, d)
  is_below = pred[4] compare(rest, zeros), direction=LT
  d_below = pred[4] compare(d, zeros), direction=LT
  parted = pred[4] xor(is_below, d_below)
  is_some = pred[4] compare(rest, zeros), direction=NE
  beside = pred[4] {beside}
  moves = pred[4] {moves}
  moved = {kind}[4] add(rest, {step})
  turned = {kind}[4] select(moves, moved, rest)
  asked = pred[4] compare({asked}, direction=NE
  both = pred[4] {how}(beside, asked)
  quotient = {kind}[4] divide(n, d)
  below = {kind}[4] subtract(quotient, ones)
  ROOT r = {kind}[4] select(both, below, quotient)
}}"""
_DIVISORS = (
    "parameter(1)",
    "constant({3, 3, 3, 3})",
    "constant({-3, -3, -3, -3})",
    "constant({2, 2, 2, 2})",
    "constant({3, -3, 5, 1})",
)
_POSITIVE = ("constant({3, 3, 3, 3})", "constant({2, 2, 2, 2})")
_TURNED = "and(is_some, parted)"


def floor(asked: str, **given: str) -> str:
    usual = {
        "kind": "s8",
        "divisor": "parameter(1)",
        "beside": "compare(n, d), direction=LT",
        "how": "and",
        "moves": _TURNED,
        "step": "d",
    }
    return FLOOR.format(**(usual | given), asked=asked)


def same() -> Iterator[tuple[dict[str, str], bool]]:
    for divisor in _DIVISORS:
        for how in ("and", "or", "xor"):
            yield {"divisor": divisor, "how": how}, True
        yield {"divisor": divisor, "beside": "compare(rest, zeros), direction=LT"}, True
        # Of negative divisors it is added where there is no rest, too.
        yield {"divisor": divisor, "moves": "copy(parted)"}, divisor in _POSITIVE
    # Of a sum with another number nothing is known; nor of one that wraps without a sign: 56 + 200 is 0.
    yield {"step": "ones"}, False
    yield {"step": "n"}, False
    for divisor in ("parameter(1)", "constant({200, 200, 200, 200})"):
        yield {"kind": "u8", "divisor": divisor, "moves": "copy(is_some)"}, False


@pytest.mark.parametrize(("given", "equal"), list(same()))
def test_whether_there_is_a_rest(given: dict[str, str], equal: bool) -> None:
    sides = "zeros, turned)" if given.get("how") == "or" else "turned, zeros)"
    check_case(floor("rest, zeros)", **given), floor(sides, **given), equal)


@pytest.mark.parametrize("divisor", _DIVISORS)
@pytest.mark.parametrize("sign", ["LT", "GT"])
def test_the_rest_may_be_negative_on_either_side(divisor: str, sign: str) -> None:
    """What is known of it where it is left alone says nothing of it where it is moved."""
    asked = f"rest, zeros), direction={sign} other = pred[4] compare(turned, zeros)"
    text = floor(asked, divisor=divisor, moves=f"compare(rest, zeros), direction={sign}")
    text = text.partition("  both = ")[0]
    one = f"{text} ROOT r = pred[4] and(asked, other)\n}}"
    never = f"{text} f = pred[] constant(false) ROOT r = pred[4] broadcast(f), dimensions={{}}\n}}"
    check_case(one, never, False)
