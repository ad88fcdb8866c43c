"""From dumps to passes: planted faults and XLA's own, gaps, repaired faults, several faults, partitions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.bisection import bisected, changed_copy, workers

from hlotool.blame.bisection.records import CulpritRecord
from hlotool.blame.searches import QUESTIONS_PER_BIT
from hlotool.sources.directory import open_dump
from hlotool.system.pool import Pool


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with workers() as started:
        yield started


#: Directory, accused pass, an instruction to blame.
PASSES = [
    ("planted/cumulative_window", "cse", "reduce_window_max.0"),
    ("planted/dynamic_rnn_trip_count", "algsimp", "constant.9"),
    ("planted/int8_dot_rounding", "algsimp", "round.0"),
    ("planted/model_fn_opcode", "fusion", "mul.0"),
    ("jax/int4_product", "float-normalization-s4", "mul.1"),
    ("miscompiles/nested_dynamic_slice", "algsimp", "dynamic_slice.3"),
]


@pytest.mark.parametrize(("folder", "accused", "instruction"), PASSES)
def test_the_pass_and_the_instruction_are_named(
    folder: str, accused: str, instruction: str, pool: Pool, corpus: Path
) -> None:
    found = bisected(corpus / folder, pool)
    [culprit] = found.culprits
    assert (culprit.level, culprit.pass_name, culprit.confirmed) == ("pass", accused, True)
    assert instruction in culprit.instructions
    assert culprit.reduced_instructions is not None
    assert culprit.reduced_instructions <= 5
    assert culprit.spot is not None
    assert culprit.spot.comparison is not None
    assert "differ as well" in culprit.evidence[-1]
    [module] = found.modules
    assert module.judged <= QUESTIONS_PER_BIT * math.log2(module.stages)


#: Directory, level, an operation of the kernel.
KERNELS = [
    ("miscompiles/atan2_of_zeros", "codegen", "atan2"),
    ("miscompiles/norms_of_many_rows", "runtime-library", "dot"),
    ("miscompiles/shifted_update_in_place", "codegen", "dynamic-update-slice"),
]


@pytest.mark.parametrize(("folder", "level", "opcode"), KERNELS)
def test_right_stages_and_a_wrong_result_are_code_or_a_library(
    folder: str, level: str, opcode: str, pool: Pool, corpus: Path
) -> None:
    [culprit] = bisected(corpus / folder, pool, results=True).culprits
    assert (culprit.level, culprit.pass_name, culprit.stage) == (level, "", "result")
    assert opcode in culprit.opcodes
    assert culprit.confirmed
    assert culprit.spot is not None
    assert culprit.spot.outputs


@pytest.mark.parametrize("folder", ["jax/model_fn", "jax/collatz", "jax/fizzbuzz", "tf/while_gradient"])
def test_nobody_is_accused_where_nothing_is_wrong(folder: str, pool: Pool, corpus: Path) -> None:
    found = bisected(corpus / folder, pool, results=True, exhaustive=True)
    assert found.culprits == []
    assert found.healthy


def opcode_swapped(text: str) -> str:
    """The fault of `planted/model_fn_opcode`."""
    return re.sub(r"\bmultiply\(", "add(", text)


def test_missing_and_damaged_stages_are_crossed(pool: Pool, corpus: Path, tmp_path: Path) -> None:
    """The fault comes in at stage 10; the stages around it are gone or torn."""

    def change(number: int, text: str) -> str:
        if number in (3, 9):
            return ""
        if number in (8, 10, 11):
            return text[: len(text) // 2]
        return opcode_swapped(text) if number >= 10 else text

    folder = changed_copy(corpus / "jax/model_fn", tmp_path / "gaps", change)
    whole = open_dump(corpus / "jax/model_fn").modules[0].stages
    found = bisected(folder, pool)
    [culprit] = found.culprits
    assert (culprit.stage_before, culprit.stage) == (whole[7].label, whole[12].label)
    [module] = found.modules
    assert len(module.unusable) >= 3


def test_a_fault_that_was_repaired_is_told(pool: Pool, corpus: Path, tmp_path: Path) -> None:
    def change(number: int, text: str) -> str:
        return opcode_swapped(text) if 4 <= number < 9 or number >= 15 else text

    folder = changed_copy(corpus / "jax/model_fn", tmp_path / "repaired", change)
    found = bisected(folder, pool, exhaustive=True)
    [module] = found.modules
    assert not module.is_monotonic
    assert len(found.culprits) == 2
    assert len(module.history) == 3


def test_a_repaired_fault_is_found_behind_healthy_ends(pool: Pool, corpus: Path, tmp_path: Path) -> None:
    def change(number: int, text: str) -> str:
        return opcode_swapped(text) if 6 <= number < 9 else text

    folder = changed_copy(corpus / "jax/model_fn", tmp_path / "hidden", change)
    assert bisected(folder, pool).culprits == []
    [culprit] = bisected(folder, pool, exhaustive=True).culprits
    assert culprit.confirmed


def test_a_second_fault_behind_the_first_is_found(pool: Pool, corpus: Path, tmp_path: Path) -> None:
    def change(number: int, text: str) -> str:
        if number >= 6:
            text = opcode_swapped(text)
        return re.sub(r"constant\(0\)", "constant(3)", text) if number >= 17 else text

    folder = changed_copy(corpus / "jax/model_fn", tmp_path / "two", change)
    first, second = bisected(folder, pool).culprits
    assert first.stage != second.stage
    assert first.confirmed
    assert second.confirmed


def two_modules(source: Path, target: Path) -> Path:
    """Two modules of one dump that fail in the same way, and one that does not fail."""
    changed_copy(source, target, lambda n, text: opcode_swapped(text) if n >= 14 else text)
    for path in list(target.glob("*.txt")):
        for number, text in (
            (2, path.read_text(encoding="utf-8")),
            (4, (source / path.name).read_text(encoding="utf-8")),
        ):
            (target / path.name.replace("module_0000", f"module_{number:04d}")).write_text(
                text, encoding="utf-8"
            )
    return target


def test_failures_of_one_kind_are_one_culprit(pool: Pool, corpus: Path, tmp_path: Path) -> None:
    folder = two_modules(corpus / "jax/model_fn", tmp_path / "dump")
    found = bisected(folder, pool)
    assert [c.others for c in found.culprits] == [["module_0002.jit_model_fn"]]
    assert found.healthy == ["module_0004.jit_model_fn"]
    apart = bisected(folder, pool, every_module=True)
    assert [(c.module, c.pass_name) for c in apart.culprits] == [
        ("module_0000.jit_model_fn", "fusion"),
        ("module_0002.jit_model_fn", "fusion"),
    ]


def test_the_partitioner_is_crossed(pool: Pool, corpus: Path, tmp_path: Path) -> None:
    """The program before is on global arrays, the wrong one after is for each of eight devices."""

    def change(number: int, text: str) -> str:
        changed = re.sub(r"\btanh\(", "negate(", text) if number else text
        assert number == 0 or changed != text
        return changed

    folder = changed_copy(corpus / "jax/sharded_mlp", tmp_path / "sharded", change)
    assert bisected(corpus / "jax/sharded_mlp", pool).culprits == []
    [culprit] = bisected(folder, pool).culprits
    assert culprit.level == "pass"
    assert culprit.confirmed


def test_without_dumps_of_passes_the_pass_is_not_guessed(pool: Pool, corpus: Path) -> None:
    [culprit] = bisected(corpus / "planted/slices_off_by_one", pool).culprits
    assert culprit.pass_name == ""
    assert "slice.7" in culprit.instructions


def test_culprits_are_plain_data(pool: Pool, corpus: Path) -> None:
    import msgspec

    [culprit] = bisected(corpus / "planted/model_fn_opcode", pool).culprits
    text = msgspec.json.encode(culprit)
    assert msgspec.json.decode(text, type=CulpritRecord) == culprit
    assert msgspec.json.decode(text)["pass"] == "fusion"


def test_the_api_returns_culprits(corpus: Path) -> None:
    import hlotool

    [culprit] = hlotool.bisect(corpus / "planted/model_fn_opcode")
    assert culprit.pass_name == "fusion"
    found = hlotool.bisect(corpus / "jax/model_fn")
    assert not found.culprits
    assert found.healthy == ["module_0000.jit_model_fn"]
