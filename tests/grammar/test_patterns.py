"""Regular expressions computed from the grammar: what they match, the parser accepts."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.trees import TREES

from hlotool import grammar
from hlotool.grammar.build import PATTERNS, build_parser
from hlotool.grammar.regular import RegularRules

#: A start rule, and a text that can be read from there with the rule in place of `$`.
FRAMES = {
    "metadata": ("metadata", "$"),
    "array_shape": ("shape", "$"),
    "booleans": ("attributes", ", allow_spmd_sharding_propagation_to_output=$"),
    "ints": ("attributes", ", dimensions=$"),
    "slice": ("attributes", ", slice=$"),
}


def test_all_patterns_are_tested() -> None:
    assert FRAMES.keys() == PATTERNS.keys()


@pytest.mark.parametrize("rule", sorted(FRAMES))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_patterns_are_sound(rule: str, data: st.DataObject) -> None:
    text = data.draw(st.from_regex(re.compile(grammar.pattern(rule), re.ASCII), fullmatch=True))
    start, frame = FRAMES[rule]
    grammar.parser(start, TREES)(frame.replace("$", text))


def test_shapes() -> None:
    shape = re.compile(grammar.pattern("array_shape"))
    for text in ("f32[]", "bf16[2,3]{1,0}", "pred[2]"):
        assert shape.fullmatch(text), text
    for text in ("f33[]", "f32[2", "f32[2]{", "f32 [2]", "f32[a]", "(f32[])", "pred[?]", "s32[8]{0:T(8)}"):
        assert not shape.fullmatch(text), text


def test_rules_stand_within_themselves_up_to_a_depth() -> None:
    rules = RegularRules(grammar.grammar_text(), build_parser().terminals, depth=2)
    shape = re.compile(rules.pattern("shape", "[ ]?"))
    assert shape.fullmatch("(f32[2], ((), token[]))")
    assert not shape.fullmatch("((((f32[]))))")


def test_alternatives_can_be_left_out() -> None:
    terminals = build_parser().terminals
    shape = re.compile(RegularRules(grammar.grammar_text(), terminals, ["tuple_shape"]).pattern("shape", ""))
    assert shape.fullmatch("f32[]")
    assert not shape.fullmatch("(f32[])")
