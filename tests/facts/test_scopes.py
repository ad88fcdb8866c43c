"""Layers of programs: names as JAX, Flax and Haiku write them, and the values that leave them."""

from __future__ import annotations

import pytest

from hlotool.facts.scopes import Scopes, scope_of
from hlotool.ir.edit_programs import flatten_calls
from hlotool.parser.reader import parse_module


@pytest.mark.parametrize(
    ("op_name", "scope"),
    [
        ("jit(f)/jit(main)/jvp(Model)/Dense_0/dot_general", "Model/Dense_0"),
        ("jit(f)/transpose(jvp(Model))/Dense_0/dot_general", "Model/Dense_0 (backward)"),
        ("jit(f)/transpose(jvp(Model/Dense_0))/mul", "Model/Dense_0 (backward)"),
        ("jit(f)/vmap(Model)/checkpoint/rematted_computation/Dense_0/add", "Model/Dense_0"),
        ("jit(f)/Model/while/body/closed_call/Layer/jit(relu)/max", "Model/Layer"),
        ("jit(f)/Attention/blhd,bmhd->bhlm/dot_general", "Attention"),
        ("jit(f)/linear/dot_general;jit(f)/linear_1/add", "linear"),
        ("jit(f)/add", ""),
        ("x", ""),
        ("", ""),
    ],
)
def test_names(op_name: str, scope: str) -> None:
    assert str(scope_of(op_name)) == scope


PROGRAM = """HloModule m
double {
  a = f32[4] parameter(0)
  ROOT twice = f32[4] add(a, a), metadata={op_name="Inner/add"}
}
ENTRY main {
  x = f32[4] parameter(0)
  b = f32[4] parameter(1)
  one = f32[4] multiply(x, x), metadata={op_name="jit(f)/Outer/Dense/mul"}
  two = f32[4] add(one, b), metadata={op_name="jit(f)/Outer/Dense/add"}
  moved = f32[2,2] reshape(two), metadata={op_name="jit(f)/Outer/Dense/reshape"}
  back = f32[4] reshape(moved), metadata={op_name="jit(f)/Outer/reshape"}
  called = f32[4] call(back), to_apply=double, metadata={op_name="jit(f)/Outer/jit(double)"}
  again = f32[4] call(called), to_apply=double, metadata={op_name="jit(f)/Outer/jit(double)"}
  ROOT end = f32[4] negate(again), metadata={op_name="jit(f)/neg"}
}
"""


@pytest.fixture
def scopes() -> Scopes:
    return Scopes(flatten_calls(parse_module(PROGRAM)).module)


def test_results_of_layers(scopes: Scopes) -> None:
    """What is reshaped within its layer is its result in both shapes; callees have their caller's name."""
    ends = [(i.name, [str(scope) for scope in scopes.ends[i]]) for i in scopes.ends]
    assert ends == [
        ("moved", ["Outer/Dense"]),
        ("two", ["Outer/Dense"]),
        ("again", ["Outer"]),
        *[("twice", ["Outer/Inner"])] * 2,
    ]


def test_results_without_what_a_layer_still_applies(scopes: Scopes) -> None:
    assert {i.name: str(scope) for i, scope in scopes.unfinished.items()} == {"one": "Outer/Dense"}
