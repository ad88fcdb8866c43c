"""What is alive at the peak, and what lowers it: small programs by hand, the sum on real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlotool.facts.memory import memory_of
from hlotool.facts.memory_kinds import Change, Kind
from hlotool.facts.peak import Peak, peak_of
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module

#: Bytes of f32[256].
K = 1024


def program(body: str, before: str = "", header: str = "") -> Module:
    return parse_module(f"HloModule m, is_scheduled=true{header}\n{before}ENTRY main {{\n{body}\n}}\n")


def alive(peak: Peak) -> dict[str, tuple[int, Kind]]:
    return {live.chain[-1].name: (live.size, live.kind) for live in peak.live}


def advice(peak: Peak) -> list[tuple[Change, str, int, int]]:
    return [(s.change, s.live.chain[-1].name, s.saved, s.peak) for s in peak.savings]


def test_what_is_alive_between_two_others() -> None:
    peak = peak_of(
        program(
            "x = f32[256] parameter(0)\n"
            "a = f32[512] concatenate(x, x), dimensions={0}\n"
            "b = f32[256] slice(a), slice={[0:256]}\n"
            "c = f32[768] concatenate(b, b, b), dimensions={0}\n"
            "ROOT d = f32[256] slice(c), slice={[0:256]}"
        )
    )
    # c and what is made of it, or b: first at c.
    assert [i.name for i in peak.at] == ["c"]
    assert peak.size == 5 * K
    assert alive(peak) == {
        "c": (3 * K, Kind.TEMPORARY),
        "x": (K, Kind.ARGUMENT),
        # It has memory from the beginning, where b lies.
        "d": (K, Kind.RESULT),
    }


def test_results_constants_and_leaves_of_tuples() -> None:
    peak = peak_of(
        program(
            "x = (f32[256], f32[512]) parameter(0)\n"
            "u = f32[256] get-tuple-element(x), index=0\n"
            "k = f32[2] constant({1, 2})\n"
            "a = f32[256] reverse(u), dimensions={0}\n"
            "b = f32[256] reverse(a), dimensions={0}\n"
            "ROOT r = (f32[256], f32[256]) tuple(a, b)"
        )
    )
    kinds = [(live.chain[-1].name, live.index, live.size, live.kind) for live in peak.live]
    assert sorted(kinds, key=str) == [
        ("a", (), K, Kind.RESULT),
        ("b", (), K, Kind.RESULT),
        ("k", (), 8, Kind.CONSTANT),
        ("x", (0,), K, Kind.ARGUMENT),
        ("x", (1,), 2 * K, Kind.ARGUMENT),
    ]


def test_what_is_written_in_place_counts_once() -> None:
    body = "x = f32[256] parameter(0)\na = f32[256] reverse(x), dimensions={0}\nROOT b = f32[256] negate(a)"
    donated = peak_of(program(body, header=", input_output_alias={ {}: (0, {}, may-alias) }"))
    # While a is made, x is still there; then b lies where a was.
    assert alive(donated) == {"x": (K, Kind.ARGUMENT), "a": (K, Kind.TEMPORARY)}
    chain = peak_of(
        program(
            "x = f32[256] parameter(0)\na = f32[256] reverse(x), dimensions={0}\nb = f32[256] negate(a)\n"
            "c = f32[512] concatenate(b, x), dimensions={0}\nROOT d = f32[256] slice(c), slice={[0:256]}"
        )
    )
    assert alive(chain) == {
        "x": (K, Kind.ARGUMENT),
        "c": (2 * K, Kind.TEMPORARY),
        # a and b lie there before.
        "d": (K, Kind.RESULT),
    }


LOOP = """body {
  p = (s32[], f32[256]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[256] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  v = f32[512] concatenate(x, x), dimensions={0}
  y = f32[256] slice(v), slice={[0:256]}
  ROOT t = (s32[], f32[256]) tuple(j, y)
}
condition {
  p = (s32[], f32[256]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT
}
looped {
  s = (s32[], f32[256]) parameter(0)
  ROOT w = (s32[], f32[256]) while(s), condition=condition, body=body
}
"""
ENTERED = """zero = s32[] constant(0)
x = f32[256] parameter(0)
z = f32[256] copy(x)
t = (s32[], f32[256]) tuple(zero, z)
w = (s32[], f32[256]) CALL
ROOT r = f32[256] get-tuple-element(w), index=1"""


@pytest.mark.parametrize(
    ("call", "within"),
    [("while(t), condition=condition, body=body", ["w"]), ("call(t), to_apply=looped", ["w", "w"])],
)
def test_in_a_loop(call: str, within: list[str]) -> None:
    """Its state lies where it was before the loop, and becomes the result."""
    peak = peak_of(program(ENTERED.replace("CALL", call), LOOP))
    assert [i.name for i in peak.at] == [*within, "v"]
    assert alive(peak) == {
        "v": (2 * K, Kind.TEMPORARY),
        "x": (K, Kind.ARGUMENT),
        "z": (K, Kind.RESULT),
        **dict.fromkeys(("zero", "one", "n"), (4, Kind.CONSTANT)),
    }
    assert [len(live.chain) for live in peak.live if live.chain[-1].name == "v"] == [len(within) + 1]


#: `w` is dead when `big` is made, which is the peak; the second result has its shape.
DONATABLE = """x = f32[256] parameter(0)
w = f32[512] parameter(1)
a = f32[256] slice(w), slice={[0:256]}
big = f32[1024] concatenate(a, a, x, x), dimensions={0}
s = f32[256] slice(big), slice={[0:256]}
n = f32[512] concatenate(s, x), dimensions={0}
ROOT r = (f32[256], f32[512]) tuple(s, n)"""


def test_an_argument_that_can_be_donated() -> None:
    peak = peak_of(program(DONATABLE))
    assert peak.size == (1 + 2 + 4 + 1 + 2) * K
    assert advice(peak) == [(Change.DONATE, "w", 2 * K, 8 * K)]
    assert peak.savings[0].result == (1,)
    donated = peak_of(program(DONATABLE, header=", input_output_alias={ {1}: (1, {}, may-alias) }"))
    # What was foretold.
    assert (donated.size, advice(donated)) == (8 * K, [])
    assert "n" not in alive(donated)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("n = f32[512] concatenate(s, x)", "n = f32[512] concatenate(s, a)"),
        ("(f32[256], f32[512]) tuple(s, n)", "(f32[256], f32[512]) tuple(s, w)"),
        ("n = f32[512] concatenate(s, x), dimensions={0}", "n = s32[512] iota(), iota_dimension=0"),
        ("concatenate(s, x), dimensions={0}", "custom-call(s, x, w), custom_call_target=\"f\""),
    ],
    ids=["can", "passed on", "other type", "read by what makes the result"],
)  # fmt: skip
def test_arguments_that_cannot(old: str, new: str) -> None:
    body = DONATABLE.replace(old, new)
    body = body.replace("(f32[256], f32[512])", "(f32[256], s32[512])") if "s32" in new else body
    assert body != DONATABLE
    donated = [s.live.chain[-1].name for s in peak_of(program(body)).savings if s.change is Change.DONATE]
    assert ("w" in donated) is (new == "n = f32[512] concatenate(s, a)")


def held(making: str, before: str = "") -> Peak:
    """`h` is used before and after `d`, where the peak is, with ten instructions between."""
    steps = "".join(f"v{n + 1} = f32[256] negate(v{n})\n" for n in range(8))
    return peak_of(
        program(
            f"x = f32[256] parameter(0)\nc = f32[] constant(2)\n{before}h = f32[1024] {making}\n"
            f"v0 = f32[256] slice(h), slice={{[0:256]}}\n{steps}"
            "big = f32[2048] concatenate(v8, v8, v8, v8, v8, v8, v8, v8), dimensions={0}\n"
            "d = f32[1024] slice(big), slice={[0:1024]}\n"
            "e = f32[1024] add(d, h)\nROOT r = f32[257] slice(e), slice={[0:257]}"
        )
    )


def test_what_is_cheap_is_made_again() -> None:
    peak = held("broadcast(c), dimensions={}")
    assert peak.size == 4 + (1 + 4 + 8 + 4) * K + 4 * 257
    assert advice(peak) == [(Change.REMATERIALIZE, "h", 4 * K, peak.size - 4 * K)]
    [saving] = peak.savings
    assert saving.last - saving.first - 1 == 10


def test_what_is_not_cheap_is_offloaded() -> None:
    peak = held("concatenate(x, x, x, x), dimensions={0}")
    assert advice(peak) == [(Change.OFFLOAD, "h", 4 * K, peak.size - 4 * K)]


def test_what_would_keep_its_operand_alive_as_long_is_not_made_again() -> None:
    """The operand dies where `h` is made, and is as large."""
    peak = held("negate(o)", "o = f32[1024] concatenate(x, x, x, x), dimensions={0}\n")
    assert advice(peak) == [(Change.OFFLOAD, "h", 4 * K, peak.size - 4 * K)]


def test_memory_spaces() -> None:
    peak = peak_of(
        program("x = f32[256]{0} parameter(0)\na = f32[256]{0:S(1)} copy(x)\nROOT b = f32[256]{0} copy(a)")
    )
    assert {live.chain[-1].name: live.space for live in peak.live} == {"x": 0, "a": 1, "b": 0}


@pytest.mark.parametrize("name", ["nested_loops", "donated_update", "train_transformer", "host_callback"])
def test_the_parts_add_up(name: str, corpus: Path) -> None:
    for path in (corpus / "jax" / name).glob("*optimizations.txt"):
        module = parse_module(path.read_text())
        peak = peak_of(module)
        held = sum(live.size for live in peak.live if not live.space)
        assert held + peak.lost == peak.size == memory_of(module).peak
        assert all(saving.peak <= peak.size for saving in peak.savings)
