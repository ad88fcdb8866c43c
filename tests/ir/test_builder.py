"""Programs built without text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlotool.errors import VerificationError
from hlotool.ir.builder import Builder, array
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ElementType
from hlotool.ir.verifier import verify
from hlotool.parser.reader import parse_module


def test_shapes_are_inferred_and_names_made_unique() -> None:
    b = Builder("e")
    x = b.parameter(0, array("f32", 2, 3))
    y = b.op("dot", x, x, lhs_contracting_dims=(0,), rhs_contracting_dims=(0,))
    z = b.op("dot", y, y, lhs_contracting_dims=(1,), rhs_contracting_dims=(0,))
    assert y.shape == array(ElementType.F32, 3, 3)
    assert [y.name, z.name] == ["dot", "dot.1"]


def test_shapes_that_cannot_be_inferred_must_be_given() -> None:
    b = Builder("e")
    x = b.parameter(0, array("f32", 2, 3))
    with pytest.raises(VerificationError):
        b.op("reshape", x)
    assert b.op("reshape", x, shape=array("f32", 6)).shape == array("f32", 6)


def test_modules_hold_what_the_entry_calls() -> None:
    inner = Builder("double")
    p = inner.parameter(0, array("s32"))
    inner.op("add", p, p)
    b = Builder("main")
    b.op("call", b.constant(3, "s32"), to_apply=inner.build())
    module = b.build_module(name="m", replica_count=2)
    assert [c.name for c in module.computations] == ["double", "main"]
    assert (module.name, module.replica_count) == ("m", 2)
    assert verify(module) == []


@st.composite
def modules(draw: st.DrawFn) -> Module:
    """Straight-line programs of elementwise operations and movements over small f32 arrays."""
    b = Builder("main")
    dims = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    values: list[Instruction] = [b.parameter(0, array("f32", *dims))]
    for _ in range(draw(st.integers(0, 8))):
        x = draw(st.sampled_from(values))
        rank = len(x.shape.dims)  # type: ignore[union-attr]
        match draw(st.sampled_from(["negate", "add", "transpose", "reverse", "concatenate"])):
            case "add":
                values.append(b.op("add", x, x))
            case "transpose":
                values.append(b.op("transpose", x, dimensions=tuple(draw(st.permutations(range(rank))))))
            case "reverse":
                values.append(b.op("reverse", x, dimensions=tuple(range(rank))))
            case "concatenate" if rank:
                values.append(b.op("concatenate", x, x, dimensions=(draw(st.integers(0, rank - 1)),)))
            case _:
                values.append(b.op("negate", x))
    return b.build_module(b.op("tuple", *values))


@given(modules())
@settings(max_examples=40, deadline=None)
def test_built_modules_are_valid_and_read_back(module: Module) -> None:
    assert verify(module) == []
    text = module.to_text()
    again = parse_module(text)
    assert verify(again) == []
    assert again.to_text() == text
