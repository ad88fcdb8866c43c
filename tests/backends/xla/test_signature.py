"""Programs get parameters and results as jaxlib wants them, and compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.xla.programs import flat_signature, host_module
from hlotool.errors import Unsupported
from hlotool.ir.module import Module
from hlotool.ir.verifier import verify_or_raise
from hlotool.parser.reader import parse_module

NESTED = """HloModule nested, input_output_alias={ {0}: (0, {1,0}, may-alias) }
ENTRY e {
  p = (s32[2], (f32[3], f32[])) parameter(0)
  q = f32[3] parameter(1)
  i = s32[2] get-tuple-element(p), index=0
  u = (f32[3], f32[]) get-tuple-element(p), index=1
  v = f32[3] get-tuple-element(u), index=0
  w = f32[3] add(v, q)
  n = (s32[2], (f32[3], f32[])) tuple(i, u)
  ROOT r = (f32[3], (s32[2], (f32[3], f32[]))) tuple(w, n)
}
"""


def shapes(module: Module) -> tuple[list[str], str]:
    """Of the parameters and of the result."""
    verify_or_raise(module)
    return [str(p.shape) for p in module.entry.parameters], str(module.entry.root.shape)


def run(module: Module, *arguments: Any) -> Any:
    return NumpyBackend().compile(module).run(list(arguments))


def test_a_flat_program_stays_as_it_is() -> None:
    module = parse_module(
        "HloModule m\nENTRY e {\n x = f32[3]{0} parameter(0)\n ROOT y = f32[3] negate(x)\n}"
    )
    assert flat_signature(module) is module


def test_tuples_are_taken_apart_and_put_together() -> None:
    module = parse_module(NESTED)
    before = module.to_text()
    flat = flat_signature(module)
    assert shapes(flat) == (
        ["s32[2]", "f32[3]", "f32[]", "f32[3]"],
        "(f32[3], s32[2], f32[3], f32[])",
    )
    assert "alias" not in flat.to_text()
    assert module.to_text() == before
    i, v, s, q = np.int32([1, 2]), np.float32([1, 2, 3]), np.float32(4), np.float32([10, 20, 30])
    nested = run(module, (i, (v, s)), q)
    result = run(flat, i, v, s, q)
    np.testing.assert_array_equal(result[0], nested[0])
    np.testing.assert_array_equal(result[1], i)
    np.testing.assert_array_equal(result[2], v)
    assert result[3] == s


@pytest.mark.parametrize(
    ("root", "shape"),
    [
        ("ROOT r = (f32[3]) tuple(x)", "f32[3]"),
        ("ROOT r = ((f32[3])) tuple(t)", "f32[3]"),
        ("ROOT r = () tuple()", "()"),
        ("ROOT r = (f32[3], token[]) tuple(x, k)", "f32[3]"),
    ],
)
def test_one_result_or_none(root: str, shape: str) -> None:
    lines = ["x = f32[3] parameter(0)", "t = (f32[3]) tuple(x)", "k = token[] after-all()", root]
    module = parse_module("HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}")
    assert shapes(flat_signature(module))[1] == shape


def test_tokens_are_made_inside() -> None:
    text = """HloModule m
ENTRY e {
  k = token[] parameter(0)
  x = f32[3] parameter(1)
  ROOT r = f32[3] add-dependency(x, k)
}"""
    assert shapes(flat_signature(parse_module(text))) == (["f32[3]"], "f32[3]")


def test_layouts_are_kept_inside() -> None:
    text = """HloModule m, is_scheduled=true
ENTRY e {
  x = f32[2,3]{0,1} parameter(0)
  ROOT y = f32[2,3]{0,1:S(5)} negate(x)
}"""
    flat = flat_signature(parse_module(text))
    assert shapes(flat) == (["f32[2,3]{1,0}"], "f32[2,3]{1,0}")
    assert [str(i.shape) for i in flat.entry.instructions] == [
        "f32[2,3]{1,0}",
        "f32[2,3]{0,1}",
        "f32[2,3]{0,1:S(5)}",
        "f32[2,3]{1,0}",
    ]


def test_shardings_of_tuples_go_to_their_parts() -> None:
    text = """HloModule m, num_partitions=2
ENTRY e {
  p = (f32[4], f32[2]) parameter(0), sharding={{devices=[2]<=[2]},{replicated}}
  ROOT x = f32[4] get-tuple-element(p), index=0
}"""
    parameters = flat_signature(parse_module(text)).entry.parameters
    assert [p.sharding.kind for p in parameters if p.sharding] == ["tiled", "replicated"]


def test_sizes_travel_as_numbers() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[<=4,3] parameter(0)
  ROOT y = f32[<=4,3] negate(x)
}"""
    flat = flat_signature(parse_module(text))
    assert shapes(flat) == (["f32[4,3]", "s32[]"], "(f32[<=4,3], s32[])")
    result, size = run(flat, np.ones((4, 3), np.float32), np.int32(2))
    assert size == 2
    np.testing.assert_array_equal(result, -np.ones((2, 3), np.float32))


def test_sizes_of_an_optimised_result_are_operands() -> None:
    text = """HloModule m, is_scheduled=true
ENTRY e {
  x = f32[4,3]{1,0} parameter(0)
  n = s32[] parameter(1)
  k = s32[] constant(3)
  ROOT y = f32[<=4,3]{1,0} custom-call(x, n, k), custom_call_target="SliceToDynamic"
}"""
    flat = flat_signature(parse_module(text))
    assert flat.entry.root.shape.elements == tuple(flat.entry.root.operands[i].shape for i in (0, 1))
    assert [o.name for o in flat.entry.root.operands] == ["x", "n"]


@pytest.mark.parametrize(
    "body",
    [
        "x = f32[<=4] parameter(0)\n ROOT y = f32[] constant(1)",
        "x = f32[4] parameter(0)\n ROOT y = f32[<=4] copy(x)",
    ],
)
def test_sizes_of_other_optimised_programs_cannot_be_had(body: str) -> None:
    module = parse_module(f"HloModule m, is_scheduled=true\nENTRY e {{\n {body}\n}}")
    with pytest.raises(Unsupported, match="of an optimised program cannot be"):
        flat_signature(module)


def test_a_host_has_the_same_signature() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[2,3] parameter(0)
  y = f8e8m0fnu[4] parameter(1)
  c = c64[] constant((1, 2))
  ROOT r = (f8e8m0fnu[4], c64[], f32[2,3]) tuple(y, c, x)
}"""
    module = parse_module(text)
    host = host_module(module)
    assert shapes(host) == shapes(module)
    result = run(host, np.zeros((2, 3), np.float32), run(module, np.zeros((2, 3), np.float32), _ones())[0])
    assert np.all(np.asarray(result[2]) == 1)


def _ones() -> Any:
    import ml_dtypes

    return np.ones(4, ml_dtypes.float8_e8m0fnu)
