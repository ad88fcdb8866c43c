"""The header follows when the entry takes or returns something else."""

from __future__ import annotations

import pytest

from hlotool.ir.builder import array
from hlotool.ir.edit import editing
from hlotool.ir.edit_signature import (
    add_entry_parameter,
    drop_entry_parameters,
    keep_results,
    return_instructions,
    set_result,
)
from hlotool.ir.module import Module
from hlotool.ir.verifier import verify
from hlotool.parse.reader import parse_module

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


def test_keep_two_results_in_another_order() -> None:
    module = parse_module(TEXT)
    keep_results(module, [2, 0])
    assert "{1}: (2, {}, may-alias), {0}: (0, {}, must-alias)" in header(module)
    assert "->(f32[2,2]{0,1}, f32[2]{0})}" in header(module)
    assert "to_output={true,true}" in header(module)
    assert "sharding={{manual}, {replicated}}" in module.to_text()
    assert verify(module) == []


def test_keep_one_result() -> None:
    module = parse_module(TEXT)
    keep_results(module, [2])
    assert "input_output_alias={ {}: (0, {}, must-alias) }" in header(module)
    assert "->f32[2,2]{0,1}}" in header(module)
    assert module.entry.root.name == "t"
    assert verify(module) == []


def test_return_something_else() -> None:
    module = parse_module(TEXT)
    n, t = module.entry.instructions[3], module.entry.instructions[5]
    return_instructions(module, [module.entry.instructions[1], t, n])
    assert "->(s32[4], f32[2,2]{0,1}, f32[2]{0})}" in header(module)
    assert "{2}: (2, {}, may-alias)" in header(module)
    assert "{1}: (0, {}, must-alias)" in header(module)
    assert "to_output={true,true,true}" in header(module)
    assert verify(module) == []


def test_set_result_ends_aliases() -> None:
    module = parse_module(TEXT)
    set_result(module, module.entry.instructions[4])
    assert "input_output_alias" not in header(module)
    assert "->pred[2]}" in header(module)
    assert verify(module) == []


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


ONE = """HloModule m, input_output_alias={ {}: (0, {}, may-alias) }, entry_computation_layout={(f32[2]{0})->f32[2]{0:S(5)}}
ENTRY e {
  p = f32[2] parameter(0), sharding={replicated}
  ROOT n = f32[2] negate(p), sharding={manual}
}"""  # noqa: E501


def test_one_result_becomes_two() -> None:
    module = parse_module(ONE)
    p, n = module.entry.instructions
    with editing(module.entry) as edit:
        return_instructions(module, [p, n], edit)
    assert "input_output_alias={ {1}: (0, {}, may-alias) }" in header(module)
    assert "->(f32[2], f32[2]{0:S(5)})}" in header(module)
    assert "sharding={{replicated}, {manual}}" in module.to_text()
    assert verify(module) == []


def test_no_result() -> None:
    module = parse_module(ONE)
    return_instructions(module, [])
    assert "->()}" in header(module)
    assert verify(module) == []


def test_a_root_that_is_no_tuple_has_no_positions() -> None:
    with pytest.raises(ValueError, match="the root n is no tuple"):
        keep_results(parse_module(ONE), [0])


def test_nested_results_keep_their_shardings_together() -> None:
    module = parse_module(
        """HloModule m ENTRY e { p = (f32[], f32[]) parameter(0) q = f32[] parameter(1)
        ROOT t = (f32[], (f32[], f32[])) tuple(q, p),
          sharding={{manual}, {replicated}, {maximal device=1}} }"""
    )
    keep_results(module, [1, 0])
    assert "sharding={{replicated}, {maximal device=1}, {manual}}" in module.to_text()
    assert verify(module) == []


def test_a_sharding_that_is_not_known_is_left_out() -> None:
    module = parse_module(ONE.replace("sharding={replicated}", 'metadata={op_name="p"}'))
    return_instructions(module, list(module.entry.instructions))
    assert "sharding={{" not in module.to_text()


def test_headers_that_say_nothing_stay_so() -> None:
    module = parse_module(
        "HloModule m ENTRY e { p = f32[] parameter(0) q = s8[] parameter(1) ROOT n = f32[] negate(p) }"
    )
    drop_entry_parameters(module, [1])
    with editing(module.entry) as edit:
        add_entry_parameter(module, edit, array("u8"))
    assert header(module) == "HloModule m"
    assert [str(p.shape) for p in module.entry.parameters] == ["f32[]", "u8[]"]
