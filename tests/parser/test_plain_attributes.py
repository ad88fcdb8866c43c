"""Attributes of plain forms come to what the parser makes of them."""

from __future__ import annotations

import pytest

from hlotool import grammar
from hlotool.parser.text.attributes import plain_attribute
from hlotool.parser.text.hlo_parser import actions
from hlotool.parser.text.syntax import AttributeSyntax, CalleeName, TextError

PLAIN = (
    "index=12",
    "index=-3",
    "index=007",
    "channel_id=123456789012345678",
    "dimensions={}",
    "dimensions={0,1,-1}",
    "slice_sizes={1,2}",
    "slice={}",
    "slice={[0:1]}",
    "slice={[0:1], [2:128:2]}",
    "slice={[ 0:1 ],[2 : 128 : 2]}",
    "direction=GE",
    "direction=nonsense",
    "is_stable=true",
    "is_stable=false",
    "allow_spmd_sharding_propagation_to_output={true,false}",
    "allow_spmd_sharding_propagation_to_output={}",
    'custom_call_target="a \\"b\\" \\303\\251 = {c}"',
    "frontend_attributes={}",
    'frontend_attributes={a="1",b.c="x=\\"y\\", z={",a="2"}',
    'frontend_attributes={a="1", b="2"}',
    "to_apply=%region_0.1",
    "body=region_0.1",
)
#: Right or wrong, the parser decides.
OTHERS = (
    "index=9223372036854775808",
    "index=99999999999999999999",
    "index=x",
    "index=1.5",
    "index=٣",
    "dimensions={0, 1}",
    "dimensions={0",
    "dimensions={0,}",
    "slice_sizes={{1}}",
    "slice={[0]}",
    "direction=f32",
    "direction=true",
    "direction=GE=",
    "is_stable=True",
    "to_apply=f32",
    "to_apply=%",
    "to_apply=a b",
    "to_apply={ x = f32[] parameter(0) }",
    "sharding={replicated}",
    'custom_call_target="\\q"',
    "custom_call_target='a'",
    'frontend_attributes={a={b="1"}}',
    'frontend_attributes={a="1" b="2"}',
    'frontend_attributes={a="1",}',
    "nobody_knows=3",
    "=3",
    "3",
)


def parsed(text: str) -> AttributeSyntax:
    """What the parser makes of one attribute, positions left out."""
    (attribute,) = grammar.parser("attributes", actions(False))(f", {text}")
    value = attribute.value
    if isinstance(value, CalleeName):
        value = CalleeName(value.name._replace(position=0, line=0))
    return AttributeSyntax(attribute.key, value, 0)


@pytest.mark.parametrize("text", PLAIN)
def test_plain_forms(text: str) -> None:
    assert plain_attribute(text) == parsed(text)


@pytest.mark.parametrize("text", OTHERS)
def test_other_forms_are_left_to_the_parser(text: str) -> None:
    assert plain_attribute(text) is None


@pytest.mark.parametrize("text", ["direction=f32", "to_apply=true", "index=99999999999999999999"])
def test_what_is_left_to_the_parser_may_be_wrong(text: str) -> None:
    with pytest.raises((TextError, grammar.Unexpected)):
        parsed(text)
