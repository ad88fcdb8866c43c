"""Compilations that did not finish. What XLA leaves behind was read off dumps of killed processes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.dumps import Write, module_text

from hlotool import bisect, check, explain, replay
from hlotool.errors import ExitCode
from hlotool.judge.verdicts import Verdict
from hlotool.sources.compilation import with_unfinished
from hlotool.sources.directory import open_dump, open_dumps

DEAD = Path("corpus/verdicts/not_compiled")
BEFORE = "module_0003.jit_f.before_optimizations.txt"
AFTER = "module_0003.jit_f.cpu_after_optimizations.txt"
PASSES = (
    "module_0003.jit_f.0000.simplification.after_pipeline-start.before_algsimp.txt",
    "module_0003.jit_f.0001.simplification.after_algsimp.before_dce.txt",
)
#: Another program of the folder, whole, as jaxlib 0.10.2 writes it without files of passes.
WHOLE = (
    "module_0001.jit_g.before_optimizations.txt",
    "module_0001.jit_g.cpu_after_optimizations.txt",
    ("module_0001.jit_g.cpu_after_optimizations-buffer-assignment.txt", "BufferAssignment:"),
)


def words(root: Path) -> dict[str, str]:
    return {module.name: module.unfinished for module in open_dump(root).modules if module.unfinished}


@pytest.mark.parametrize(
    ("last", "where"),
    [
        (
            "simplification.after_algsimp.before_dce",
            "died in dce (pipeline simplification), or in a pass behind it that left no file",
        ),
        ("simplification.after_dce.before_pipeline-end", "died after the pipeline simplification"),
        ("copy-insertion.after_adding_special-case_copies", "died in copy-insertion, after its step"),
    ],
)
def test_the_pass_that_was_entered_and_never_left(last: str, where: str, write: Write) -> None:
    root = write(BEFORE, PASSES[0], f"module_0003.jit_f.0001.{last}.txt")
    assert f"the compilation did not finish: it {where}" in words(root)["jit_f"]


def test_without_files_of_passes_the_last_one_of_a_folder(write: Write) -> None:
    assert words(write(*WHOLE, BEFORE)) == {
        "jit_f": "the compilation did not finish: nothing was written after before_optimizations, and no"
        " passes are dumped"
    }


def test_a_program_that_dies_under_its_second_number(write: Write) -> None:
    """A TPU's compiler counts passes anew where it gives a program another number."""
    [module] = (replace(m, unfinished="") for m in open_dump(write(BEFORE, *PASSES)).modules)
    again = replace(module, stages=(*module.stages, *module.passes))
    [found] = with_unfinished([again])
    assert found.unfinished
    [found] = with_unfinished([replace(module, stages=(*module.stages, module.passes[1]))])
    assert not found.unfinished


def test_stages_within_a_pass_have_numbers_of_their_own(write: Write) -> None:
    """So libtpu 0.0.42 and 0.0.52 write it."""
    within = "module_0003.jit_f.0002.tpu-tiling-rewriter.before_tiling_rewriter.txt"
    last = "module_0003.jit_f.0003.tpu-tiling-rewriter.after_tiling_propagation.txt"
    assert words(write(BEFORE, *PASSES, last)) == {}
    assert "died in tpu-tiling-rewriter" in words(write(within))["jit_f"]


def test_a_second_half_without_an_end(write: Write) -> None:
    later = [name.replace("0003.", "0006.", 1).replace("simplification", "fusion") for name in PASSES]
    assert "died in dce (pipeline fusion)" in words(write(BEFORE, *PASSES, *later))["jit_f"]


CUT = ("module_0001.jit_g.debug_options", "xla_dump_max_hlo_modules: 2\n")


@pytest.mark.parametrize(
    "files",
    [
        pytest.param([BEFORE], id="one file"),
        pytest.param([BEFORE, PASSES[1]], id="one stage of several"),
        pytest.param([BEFORE, *PASSES, AFTER], id="whole"),
        pytest.param([BEFORE, PASSES[0], AFTER], id="one pass of a whole one"),
        pytest.param([*PASSES], id="no beginning"),
        pytest.param([*WHOLE[:2], BEFORE], id="files that were picked: no reports"),
        pytest.param([*WHOLE, BEFORE, "module_0005.jit_h.before_optimizations.txt"], id="two of them"),
        pytest.param([*WHOLE, CUT, BEFORE], id="cut by a flag"),
        pytest.param(
            [*WHOLE, BEFORE, *(n.replace("01.jit_g", "06.jit_f") for n in (WHOLE[1],) if isinstance(n, str))],
            id="went on under another number",
        ),
        pytest.param(
            [*WHOLE, "module_0000.jit_e.before_optimizations.txt"], id="not the last one of the folder"
        ),
    ],
)
def test_what_is_no_compilation_that_did_not_finish(files: list[str], write: Write) -> None:
    assert words(write(*files)) == {}


def test_some_files_of_a_dump_that_is_whole(write: Write) -> None:
    root = write(BEFORE, *PASSES, AFTER)
    [dump] = open_dumps([str(root / name) for name in (BEFORE, *PASSES)])
    assert [module.unfinished for module in dump.modules] == [""]


def test_all_files_of_a_dump_that_is_not(write: Write) -> None:
    root = write(BEFORE, *PASSES)
    [dump] = open_dumps([str(root / name) for name in (BEFORE, *PASSES)])
    assert all(module.unfinished for module in dump.modules)


def test_of_a_dump_of_our_own_the_beginning_is_enough(write: Write) -> None:
    [module] = with_unfinished(open_dump(write(BEFORE)).modules, is_whole=True)
    assert "nothing was written after before_optimizations" in module.unfinished


def test_a_last_file_that_was_not_written_to_its_end(write: Write) -> None:
    text = module_text()
    result = replay(write(BEFORE, PASSES[0], (PASSES[1], text[: len(text) // 2])))
    assert [row.verdict for row in result.rows] == [Verdict.NOT_COMPILED]


def test_a_pass_before_it_that_was_wrong_has_a_row_of_its_own(write: Write) -> None:
    result = replay(write(BEFORE, PASSES[0], (PASSES[1], module_text(opcode="abs"))))
    assert sorted(row.verdict.value for row in result.rows) == ["not compiled", "wrong"]
    assert result.exit_code == ExitCode.MISMATCH


def test_stages_that_were_asked_for_are_compared(write: Write) -> None:
    result = replay(write(BEFORE, *PASSES), stages=("before_optimizations", "*before_dce"))
    assert [row.verdict for row in result.rows] == [Verdict.IDENTICAL]


def test_every_command_says_so() -> None:
    ran = replay(DEAD)
    [row] = ran.rows
    assert (row.verdict, ran.exit_code) == (Verdict.NOT_COMPILED, ExitCode.BACKEND_FAILED)
    assert row.reason.startswith("the compilation did not finish: it died in algsimp")
    assert (
        "algebraic_simplifier.cc:579] Non-OK-status: computation->Accept(this) Status: INTERNAL" in row.reason
    )
    assert row.path.endswith("before_optimizations.txt")

    found = bisect(DEAD, repro=None, resume=False)
    assert [module.verdict for module in found.record.modules] == ["not compiled"]
    assert found.record.modules[0].reason.endswith(
        "right up to 0003 simplification.after_pipeline-start.before_algsimp"
    )
    assert found.exit_code == ExitCode.BACKEND_FAILED

    checked = check(DEAD, only=["unfinished-compilation"])
    assert [finding.module for finding in checked.rows] == ["module_0001.jit_magnitudes"]
    assert checked.exit_code == ExitCode.MISMATCH

    explained = explain((DEAD / "stderr.log").read_text(), dump=DEAD)
    assert [match.id for match in explained.rows] == ["xla-ret-check", "unfinished-compilation"]
