"""Replays of single modules, in this process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from support.programs import BROKEN, DOUBLE, PAIR, SQUARE, SUM, UNKNOWN_CALL, write_module
from support.replaying import replayed, replayed_pair

from hlotool.judge.verdicts import Verdict


def test_a_legal_rewrite_agrees(tmp_path: Path) -> None:
    row = replayed_pair(tmp_path, DOUBLE, SUM)
    assert row.verdict is Verdict.IDENTICAL
    assert (row.stage_reference, row.stage_tested) == ("before_optimizations", "cpu_after_optimizations")
    assert row.name == "module_0000.jit_f"
    assert row.path.endswith("module_0000.jit_f.cpu_after_optimizations.txt")
    assert row.reference == row.tested == f"numpy {np.__version__}"
    assert row.inputs is not None
    assert (row.inputs.origin, row.inputs.seed) == ("generated", 0)
    assert row.seconds > 0


def test_a_miscompiled_program_differs_with_its_source_line(tmp_path: Path) -> None:
    row = replayed_pair(tmp_path, DOUBLE, SQUARE)
    assert row.verdict is Verdict.WRONG
    [leaf] = row.leaves
    assert (leaf.total, leaf.shape, leaf.index) == (4, "f32[4]", [])
    assert leaf.mismatched == 4
    assert leaf.top
    assert leaf.source is not None
    assert (leaf.source.file, leaf.source.file_line) == ("model.py", 7)
    assert (leaf.source.instruction, leaf.source.opcode, leaf.source.line) == ("y", "multiply", 5)
    assert leaf.source.op_name == "jit(f)/mul"


def test_rules_on_the_form_of_programs_are_only_noted(tmp_path: Path) -> None:
    unread = "z = f32[4] abs(a)\n"
    fused = f"f {{ a = f32[4] parameter(0)\n{unread} ROOT b = f32[4] negate(a) }}\n"
    entry = "ENTRY e { x = f32[4] parameter(0)\n ROOT r = f32[4] fusion(x), kind=kLoop, calls=f }\n"
    text = f"HloModule jit_f\n{fused}{entry}"
    row = replayed_pair(tmp_path, text.replace(unread, ""), text)
    assert row.verdict is Verdict.IDENTICAL
    [note] = row.notes
    assert note.startswith("XLA's verifier rejects this: ")
    assert note.endswith("z in f must have users [fusion]")


def test_the_tolerance_of_the_user_counts(tmp_path: Path) -> None:
    row = replayed_pair(tmp_path, DOUBLE, SQUARE, rtol=0.0, atol=1e6)
    assert row.verdict is Verdict.AGREE
    assert row.leaves[0].tolerance is not None
    assert row.leaves[0].tolerance.origin == "set by the user"


def test_the_printed_tolerance_would_have_passed(tmp_path: Path) -> None:
    row = replayed_pair(tmp_path, DOUBLE, SQUARE)
    minimum = row.leaves[0].minimum_tolerance
    assert minimum is not None
    assert replayed(tmp_path, rtol=minimum.joint, atol=minimum.joint)[0].verdict is Verdict.AGREE
    assert replayed(tmp_path, rtol=minimum.relative)[0].verdict is Verdict.AGREE
    assert replayed(tmp_path, atol=minimum.absolute)[0].verdict is Verdict.AGREE


def test_another_result_shape_is_structural(tmp_path: Path) -> None:
    row = replayed_pair(tmp_path, DOUBLE, PAIR)
    assert row.verdict is Verdict.STRUCTURAL
    assert row.leaves


def test_other_parameters_are_structural(tmp_path: Path) -> None:
    row = replayed_pair(tmp_path, DOUBLE, SUM.replace("[4]", "[5]"))
    assert row.verdict is Verdict.STRUCTURAL
    assert "f32[4]" in row.reason
    assert "f32[5]" in row.reason


def test_layouts_of_parameters_and_results_do_not_matter(tmp_path: Path) -> None:
    before = "HloModule m\n\nENTRY e {\n  ROOT x = f32[2,3]{1,0} parameter(0)\n}\n"
    assert replayed_pair(tmp_path, before, before.replace("{1,0}", "{0,1}")).verdict is Verdict.IDENTICAL


def test_one_stage_alone_is_summarised(tmp_path: Path) -> None:
    path = tmp_path / "pair.hlo"
    path.write_text(PAIR, encoding="utf-8")
    [row] = replayed(path)
    assert row.verdict is Verdict.NOT_COMPARED
    assert row.reason
    number, values = row.outputs
    assert (number.index, number.shape, number.first, number.minimum) == ([0], "s32[]", ["7"], 7.0)
    assert (values.index, values.shape, values.total, values.nan, values.inf) == ([1], "f32[4]", 4, 0, 0)
    assert values.minimum is not None
    assert values.maximum is not None
    assert values.mean is not None
    assert values.minimum <= values.mean <= values.maximum


def test_given_inputs_and_outputs(tmp_path: Path) -> None:
    (tmp_path / "f.hlo").write_text(DOUBLE, encoding="utf-8")
    x = np.array([1, 2, 3, 4], np.float32)
    np.savez(tmp_path / "in.npz", x=x)
    np.savez(tmp_path / "good.npz", out=2 * x)
    np.savez(tmp_path / "bad.npz", out=x)
    inputs = str(tmp_path / "in.npz")
    [good] = replayed(tmp_path / "f.hlo", inputs=inputs, outputs=str(tmp_path / "good.npz"))
    assert (good.verdict, good.stage_tested) == (Verdict.IDENTICAL, "result")
    assert good.tested == f"from {tmp_path / 'good.npz'}"
    assert good.inputs is not None
    assert good.inputs.description == f"from {inputs}"
    [bad] = replayed(tmp_path / "f.hlo", inputs=inputs, outputs=str(tmp_path / "bad.npz"))
    assert bad.verdict is Verdict.WRONG


def test_outputs_without_inputs_would_mean_nothing(tmp_path: Path) -> None:
    (tmp_path / "f.hlo").write_text(DOUBLE, encoding="utf-8")
    np.savez(tmp_path / "out.npz", out=np.zeros(4, np.float32))
    [row] = replayed(tmp_path / "f.hlo", outputs=str(tmp_path / "out.npz"))
    assert row.verdict is Verdict.BAD_INPUT
    assert "--inputs" in row.reason


def test_inputs_that_do_not_fit(tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.zeros(3, np.float32))
    row = replayed_pair(tmp_path, DOUBLE, SUM, inputs=str(tmp_path / "in.npz"))
    assert row.verdict is Verdict.BAD_INPUT
    assert row.error is not None
    assert row.error.kind == "InputDataError"


def test_seed_and_range_reach_the_generator(tmp_path: Path) -> None:
    path = tmp_path / "f.hlo"
    path.write_text(DOUBLE, encoding="utf-8")
    first, again, other = (replayed(path, seed=seed)[0].outputs[0].first for seed in (1, 1, 2))
    assert first == again != other
    [row] = replayed(path, input_range=(10.0, 11.0))
    assert all(20 <= float(value) <= 22 for value in row.outputs[0].first)


def test_what_the_backend_lacks_is_unsupported_with_its_place(tmp_path: Path) -> None:
    row = replayed_pair(tmp_path, DOUBLE, UNKNOWN_CALL)
    assert row.verdict is Verdict.UNSUPPORTED
    assert row.stage_tested == "cpu_after_optimizations"
    assert row.error is not None
    assert (row.error.instruction, row.error.line) == ("y", 5)
    assert "my_kernel" in row.reason


def test_a_broken_text_is_bad_input_with_its_place(tmp_path: Path) -> None:
    row = replayed_pair(tmp_path, DOUBLE, BROKEN)
    assert row.verdict is Verdict.BAD_INPUT
    assert row.error is not None
    assert row.error.kind == "HloSyntaxError"
    assert row.error.line in (4, 5)
    assert "^" in row.error.log


def test_elided_constants_are_refused(tmp_path: Path) -> None:
    text = DOUBLE.replace("broadcast(two), dimensions={}", "constant({...})")
    row = replayed_pair(tmp_path, text, SUM)
    assert row.verdict is Verdict.UNSUPPORTED
    assert row.error is not None
    assert row.error.kind == "ElidedConstant"
    assert "--xla_dump_large_constants" in row.reason


def test_every_stage_is_tested_where_one_fails(tmp_path: Path) -> None:
    write_module(tmp_path, 0, DOUBLE, SUM)
    step = tmp_path / "module_0000.jit_f.0001.simplification.after_algsimp.before_dce.txt"
    step.write_text(BROKEN, encoding="utf-8")
    last = tmp_path / "module_0000.jit_f.0002.simplification.after_dce.before_cse.txt"
    last.write_text(SQUARE, encoding="utf-8")
    rows = replayed(tmp_path, stages=("before_optimizations", "*"))
    assert {row.stage_tested: row.verdict for row in rows} == {
        "simplification.after_algsimp.before_dce": Verdict.BAD_INPUT,
        "simplification.after_dce.before_cse": Verdict.WRONG,
        "cpu_after_optimizations": Verdict.IDENTICAL,
    }


def test_no_stage_of_that_name(tmp_path: Path) -> None:
    row = replayed_pair(tmp_path, DOUBLE, SUM, stages=("before*", "gpu*"))
    assert row.verdict is Verdict.BAD_INPUT
    assert "--stages 'gpu*'" in row.reason


def test_an_unknown_backend(tmp_path: Path) -> None:
    row = replayed_pair(tmp_path, DOUBLE, SUM, backend="abacus")
    assert "no backend 'abacus'" in row.reason


def test_saved_outputs_load_with_numpy(tmp_path: Path) -> None:
    row = replayed_pair(tmp_path, DOUBLE, SQUARE, save_outputs=str(tmp_path / "out"))
    [leaf] = row.leaves
    expected, actual = np.load(leaf.expected_file), np.load(leaf.actual_file)
    assert expected.dtype == actual.dtype == np.float32
    assert leaf.worst_absolute is not None
    [i] = leaf.worst_absolute.index
    assert abs(float(expected[i]) - float(actual[i])) == leaf.worst_absolute.absolute


def test_saved_outputs_of_types_that_numpy_lacks(tmp_path: Path) -> None:
    path = tmp_path / "narrow.hlo"
    path.write_text(
        "HloModule m\n\nENTRY e {\n  a = bf16[2] constant({1.5, -3})\n  b = s4[2] constant({-8, 7})\n"
        "  ROOT r = (bf16[2], s4[2]) tuple(a, b)\n}\n",
        encoding="utf-8",
    )
    [row] = replayed(path, save_outputs=str(tmp_path / "out"))
    values = [np.load(output.file) for output in row.outputs]
    assert [v.dtype for v in values] == [np.float32, np.int8]
    assert [v.tolist() for v in values] == [[1.5, -3.0], [-8, 7]]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    row = replayed_pair(tmp_path, DOUBLE, SUM, save_outputs=str(tmp_path / "file"))
    assert row.verdict is Verdict.BAD_INPUT
    assert str(tmp_path / "file") in row.reason
    assert "cannot be written" in row.reason


def test_captured_executions_of_the_corpus(corpus: Path) -> None:
    rows = replayed(corpus / "jax" / "snapshots")
    assert {row.stage_tested for row in rows} == {"cpu_after_optimizations", "result"}
    assert all(row.verdict in (Verdict.IDENTICAL, Verdict.AGREE) for row in rows)
    assert all(row.inputs is not None and row.inputs.origin == "captured" for row in rows)


def test_a_dump_of_nothing_but_a_captured_execution(corpus: Path) -> None:
    rows = replayed(corpus / "jax" / "unoptimized_snapshots")
    assert [row.verdict for row in rows] == [Verdict.NOT_COMPARED]
    assert rows[0].inputs is not None
    assert rows[0].inputs.origin == "captured"
