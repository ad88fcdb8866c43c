"""Attributes of plain forms come to what the parser makes of them."""

from __future__ import annotations

import pytest

from hlotool import grammar
from hlotool.parser.text.hlo_parser import actions
from hlotool.parser.text.plain_attributes import plain_attribute
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
    'frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["a"=8, "b"=1]>},b="1"}',
    'frontend_attributes={a={b="1"}}',
    "frontend_attributes={a={},b={ c }}",
    "input_output_alias={ {0}: (0, {}, may-alias), {1,2}: (1, {3}, must-alias), {}: (2, {}) }",
    "dim_labels=b01f_01io->b01f",
    "padding=0_0x63_0x1_-1_2",
    "window={}",
    "window={size=7x7 stride=2x2 pad=3_3x3_3 lhs_dilate=1x2 rhs_dilate=1x1 rhs_reversal=0x1}",
    "window={size=3}",
    "sharding={replicated}",
    "sharding={manual}",
    "sharding={devices=[8]<=[8]}",
    "sharding={devices=[2,1,4]<=[2,2,2]T(1,0,2) last_tile_dim_replicate}",
    "sharding={{replicated}, {devices=[1,8]<=[8]}, /*index=2*/{replicated}}",
    "sharding={{replicated}}",
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
    "sharding={maximal device=0}",
    "sharding={}",
    "sharding={devices=[8]<=[4]}",
    "sharding={devices=[4]<=[2,2]}",
    "sharding={devices=[4]<=[2,2]T(0,0)}",
    "sharding={devices=[2,2]0,1,2,3}",
    "sharding={{replicated},{replicated}}",
    "sharding={mesh['x'=2], [{'x'}]}",
    "sharding={replicated} ",
    "dim_labels=b01f_01io->b0f",
    "dim_labels=b01f",
    "padding=0",
    "window={size=1x1 size=1x1}",
    "window={size=1x1 pad=0_0}",
    "window={size=1x1 pad=0_0_0x1_1_1}",
    "window={size=1x1, stride=1x1}",
    "input_output_alias={}",
    "input_output_alias={ {0}: (0, {}, maybe) }",
    "frontend_attributes={a={ /* */ }}",
    'custom_call_target="\\q"',
    "custom_call_target='a'",
    'frontend_attributes={a={{b="1"}}}',
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
