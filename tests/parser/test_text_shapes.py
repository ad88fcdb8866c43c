"""Shapes and layouts."""

from __future__ import annotations

import pytest

from hlotool.errors import HloSyntaxError
from hlotool.ir.types import (
    COMBINE,
    ELEMENT_TYPES,
    OPAQUE,
    TOKEN,
    UNBOUNDED,
    ArrayShape,
    BufferShape,
    ElementType,
    Layout,
    SplitConfig,
    TupleShape,
)
from hlotool.parser.reader import parse_module, parse_shape

F32 = ElementType.F32


@pytest.mark.parametrize("name", sorted(ELEMENT_TYPES))
def test_element_types(name: str) -> None:
    assert parse_shape(f"{name}[3]") == ArrayShape(ELEMENT_TYPES[name], (3,))


def test_dimensions() -> None:
    assert parse_shape("f32[]") == ArrayShape(F32, ())
    assert parse_shape("f32[0,2]{1,0}") == ArrayShape(F32, (0, 2), (), Layout((1, 0)))
    assert parse_shape("f32[ 2 , <=3 ]") == ArrayShape(F32, (2, 3), (False, True))
    assert parse_shape("f32[?,2]") == ArrayShape(F32, (UNBOUNDED, 2), (True, False))


def test_tuples_and_others() -> None:
    assert parse_shape("token[]") is TOKEN
    assert parse_shape("opaque[]") is OPAQUE
    assert parse_shape("()") == TupleShape(())
    assert parse_shape("(f32[], /*index=1*/(token[], ()))") == TupleShape(
        (ArrayShape(F32, ()), TupleShape((TOKEN, TupleShape(()))))
    )
    assert parse_shape("b(f32[2]{0})") == BufferShape(ArrayShape(F32, (2,), (), Layout((0,))))


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("{1,0}", Layout((1, 0))),
        ("{ 0 , 1 }", Layout((0, 1))),
        ("{1,0:T(8,128)(2,1)}", Layout((1, 0), tiles=((8, 128), (2, 1)))),
        ("{1,0:T(*,8)}", Layout((1, 0), tiles=((COMBINE, 8),))),
        ("{1,0:T(8,128}", Layout((1, 0), tiles=((8, 128),))),
        (
            "{1,0:T(8,128)(2,1E(16S(5}",
            Layout((1, 0), tiles=((8, 128), (2, 1)), element_bits=16, memory_space=5),
        ),
        ("{1,0:T()}", Layout((1, 0), tiles=((),))),
        ("{1,0:T}", Layout((1, 0), tiles=((),))),
        ("{1,0:T(}", Layout((1, 0), tiles=((),))),
        ("{1,0:T(8,128)(}", Layout((1, 0), tiles=((8, 128), ()))),
        ("{1,0:T(8,128)(2,S(1)}", Layout((1, 0), tiles=((8, 128), (2,)), memory_space=1)),
        ("{1,0:T(8,*(4)}", None),
        ("{1,0:TM(8)}", None),
        ("{1,0:T*u32)}", Layout((1, 0), tiles=((),), pointer_type="u32")),
        ("{1,0:L(8#M}", Layout((1, 0), tail_padding_alignment=8)),
        ("{1,0:D(D,C~T(8)SC(0:2,(}", None),
        ("{1,0:D S(1)SC(0:2,}", Layout((1, 0), memory_space=1, split_configs=(SplitConfig(0, (2,)),))),
        (
            "{1,0:SC(1:4)(0M(3}",
            Layout((1, 0), split_configs=(SplitConfig(1, (4,)), SplitConfig(0, ())), metadata_prefix_bytes=3),
        ),
        ("{1,0:L(4)}", Layout((1, 0), tail_padding_alignment=4)),
        ("{1,0:#(u32)*(s64)}", Layout((1, 0), index_type="u32", pointer_type="s64")),
        ("{1,0:E(4)S(5)}", Layout((1, 0), element_bits=4, memory_space=5)),
        ("{1,0:SC(1:2,3)(0:)}", Layout((1, 0), split_configs=(SplitConfig(1, (2, 3)), SplitConfig(0, ())))),
        ("{1,0:M(16)}", Layout((1, 0), metadata_prefix_bytes=16)),
        ("{1,0:D(D,C+~)T(2)}", Layout((1, 0), tiles=((2,),))),
        ("{1,0:P((f32[2]))}", Layout((1, 0), physical_shape=TupleShape((ArrayShape(F32, (2,)),)))),
        ("{1,0:}", Layout((1, 0))),
    ],
)
def test_layouts(text: str, layout: Layout | None) -> None:
    if layout is None:
        with pytest.raises(HloSyntaxError):
            parse_shape(f"f32[2,3]{text}")
        return
    shape = parse_shape(f"f32[2,3]{text}")
    assert isinstance(shape, ArrayShape)
    assert shape.layout == layout


def test_a_brace_after_a_shape_may_be_something_else() -> None:
    text = "HloModule m  ENTRY e (p: f32[2]) -> f32[2] { p = f32[2] parameter(0) }"
    assert parse_module(text).entry.root.shape == ArrayShape(F32, (2,))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f32", "expected '[', found the end of the text"),
        ("f32[", "expected '<=', '?', ']' or an integer, found the end of the text"),
        ("f32[2", "expected ',' or ']', found the end of the text"),
        ("f32[2,]", "expected '<=', '?' or an integer, found ']'"),
        ("f32[-2]", "a dimension cannot be negative, and this is -2"),
        ("f32[99999999999999999999]", "99999999999999999999 does not fit in 64 bits"),
        ("f32[2]{1,0}", "the layout has 2 dimensions, the shape 1"),
        ("f32[2]{:S(5)}", "the layout has 0 dimensions, the shape 1"),
        ("f32[2]{0:S(5)T(2)}", "parts of a layout repeat or are out of order"),
        ("f32[2]{0:T(-2)}", "a size of a tile is negative, or that of L(…) below 1"),
        ("f32[2]{0:L(0)}", "a size of a tile is negative, or that of L(…) below 1"),
        ("f32[2]{0:T(2)T(2)}", "parts of a layout repeat or are out of order"),
        ("token[2]", "token[] takes neither dimensions nor a layout"),
        ("opaque[]{0}", "opaque[] takes neither dimensions nor a layout"),
        ("(f32[],)", "expected '(' or a shape, found ')'"),
        ("(f32[]", "expected ')' or ',', found the end of the text"),
        ("f32[] f32[]", "expected the end of the text, found f32"),
        ("q8[2]", "expected '(' or a shape, found q8"),
        ("b(token[])", "a buffer holds an array, not token[]"),
    ],
)
def test_wrong_shapes(text: str, message: str) -> None:
    with pytest.raises(HloSyntaxError) as caught:
        parse_shape(text)
    assert caught.value.message == message


def test_physical_shapes_are_too_old_for_a_strict_reader() -> None:
    text = "ENTRY e { p = f32[2]{0:P((f32[2]))} parameter(0) }"
    parse_module(text)
    with pytest.raises(HloSyntaxError, match="no longer takes a physical shape"):
        parse_module(text, strict=True)
