"""From a bad result backwards to where it begins."""

from __future__ import annotations

from collections.abc import Mapping

from hlotool.alignment.graph import Graph
from hlotool.alignment.ports import Port, Ports
from hlotool.parse.reader import parse_module
from hlotool.replay.trail import GOOD, UNKNOWN, Judgement, bad_ports, origins

TEXT = """HloModule m
ENTRY e {
  x = f32[] parameter(0)
  a = f32[] negate(x)
  b = f32[] abs(a)
  c = f32[] sine(x)
  d = f32[] add(b, c)
  ROOT t = (f32[], f32[]) tuple(d, c)
}"""

LOOP = """HloModule m
cond {
  s = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT less = pred[] compare(i, n), direction=LT
}
body {
  u = (s32[], f32[]) parameter(0)
  j = s32[] get-tuple-element(u), index=0
  one = s32[] constant(1)
  k = s32[] add(j, one)
  x = f32[] get-tuple-element(u), index=1
  y = f32[] sine(x)
  z = f32[] cosine(y)
  ROOT v = (s32[], f32[]) tuple(k, z)
}
ENTRY e {
  p = f32[] parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[]) tuple(zero, p)
  w = (s32[], f32[]) while(init), condition=cond, body=body
  ROOT r = f32[] get-tuple-element(w), index=1
}"""


def found(text: str, known: Mapping[str, float | None], all_bad: bool = False) -> list[tuple[str, list[str]]]:
    """Names of origins with the unknown ports behind them.

    Args:
        text: of the program.
        known: when each instruction is first bad; None for what is unknown; others are good.
        all_bad: everything bad on the way, not only where it begins.
    """
    module = parse_module(text)
    ports = Ports(Graph(module))

    def judge(port: Port) -> Judgement:
        node = ports.node(port)
        if node is None or known.get(node.name, 0) is None:
            return UNKNOWN
        order = known.get(node.name)
        return GOOD if order is None else Judgement(True, order)

    walk = bad_ports if all_bad else origins
    result = walk(ports, [ports.of(module.entry.root, (0,) if "tuple(d" in text else ())], judge)
    return [(origin.port[0].name, [port[0].name for port in origin.unknown]) for origin in result]


def test_the_origin_is_bad_and_its_sources_are_not() -> None:
    assert found(TEXT, {"d": 4, "b": 2}) == [("b", [])]
    assert found(TEXT, {"d": 4}) == [("d", [])]
    assert found(TEXT, {}) == []


def test_two_origins_in_the_order_of_execution() -> None:
    assert found(TEXT, {"d": 4, "c": 3, "a": 1, "b": 2}) == [("a", []), ("c", [])]


def test_what_is_unknown_is_looked_through_and_named() -> None:
    assert found(TEXT, {"d": 4, "b": None, "a": 1}) == [("a", [])]
    assert found(TEXT, {"d": 4, "b": None}) == [("d", ["b"])]
    assert found(TEXT, {"d": None, "b": 2}) == [("b", [])]


def test_everything_on_the_way() -> None:
    assert found(TEXT, {"d": 4, "b": 2, "a": 1}, all_bad=True) == [("a", []), ("b", []), ("d", [])]


def test_what_turns_bad_later_is_no_cause() -> None:
    """In the loop `x` reads what `z` made one iteration before: `y` is the first that is bad."""
    assert found(LOOP, {"r": 100, "z": 52, "y": 51, "x": 60}) == [("y", [])]
    assert found(LOOP, {"r": 100, "z": 52, "y": 61, "x": 60}) == [("z", [])]


def test_a_condition_decides_the_result() -> None:
    assert found(LOOP, {"r": 100, "less": 40, "n": -1}) == [("n", [])]
