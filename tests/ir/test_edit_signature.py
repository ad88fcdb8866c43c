"""The header follows when the entry takes something else."""

from __future__ import annotations

import pytest

from hlotool.ir.builder import array
from hlotool.ir.edit import editing
from hlotool.ir.edit_programs import add_entry_parameter, drop_entry_parameters
from hlotool.ir.module import Module
from hlotool.ir.verifier import verify
from hlotool.parser.reader import parse_module

TEXT = """HloModule m, input_output_alias={ {0}: (2, {}, may-alias), {2}: (0, {}, must-alias) }, buffer_donor={ (1, {}) }, entry_computation_layout={(f32[2,2]{0,1}, s32[4]{0}, f32[2]{0})->(f32[2]{0}, pred[2]{0}, f32[2,2]{0,1})}, allow_spmd_sharding_propagation_to_parameters={true,false,true}, allow_spmd_sharding_propagation_to_output={true,false,true}
ENTRY e {
  p = f32[2,2] parameter(0)
  q = s32[4] parameter(1)
  r = f32[2] parameter(2)
  n = f32[2] negate(r)
  f = pred[2] is-finite(n)
  t = f32[2,2] transpose(p), dimensions={1,0}
  ROOT root = (f32[2], pred[2], f32[2,2]) tuple(n, f, t), sharding={{replicated}, {maximal device=0}, {manual}}
}"""  # noqa: E501


def header(module: Module) -> str:
    return module.to_text().splitlines()[0]


def test_drop_parameters() -> None:
    module = parse_module(TEXT)
    drop_entry_parameters(module, [1])
    assert "{0}: (1, {}, may-alias), {2}: (0, {}, must-alias)" in header(module)
    assert "buffer_donor" not in header(module)
    assert "={(f32[2,2]{0,1}, f32[2]{0})->" in header(module)
    assert "to_parameters={true,true}" in header(module)
    assert [p.name for p in module.entry.parameters] == ["p", "r"]
    assert verify(module) == []


def test_parameters_in_use_stay() -> None:
    module = parse_module(TEXT)
    with pytest.raises(ValueError, match="r is still used"):
        drop_entry_parameters(module, [1, 2])
    assert len(module.entry.parameters) == 3
    assert verify(module) == []


def test_add_a_parameter() -> None:
    module = parse_module(TEXT)
    with editing(module.entry) as edit:
        new = add_entry_parameter(module, edit, array("s8", 5), "q")
    assert new.name == "q.1"
    assert new.parameter_number == 3
    assert "f32[2]{0}, s8[5])->" in header(module)
    assert "to_parameters={true,false,true,true}" in header(module)
    assert verify(module) == []


def test_headers_that_say_nothing_stay_so() -> None:
    module = parse_module(
        "HloModule m ENTRY e { p = f32[] parameter(0) q = s8[] parameter(1) ROOT n = f32[] negate(p) }"
    )
    drop_entry_parameters(module, [1])
    with editing(module.entry) as edit:
        add_entry_parameter(module, edit, array("u8"))
    assert header(module) == "HloModule m"
    assert [str(p.shape) for p in module.entry.parameters] == ["f32[]", "u8[]"]
