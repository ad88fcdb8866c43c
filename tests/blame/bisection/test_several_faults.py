"""Several faults in one directory stay several; one fault in several programs is one culprit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.bisection import Change, bisected, changed_copy, workers

from hlotool.system.pool import Pool


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with workers(2) as started:
        yield started


def fused_add(number: int, text: str) -> str:
    """`fusion` adds where it should multiply."""
    return re.sub(r"\bmultiply\(", "add(", text) if number >= 14 else text


def laid_out_subtract(number: int, text: str) -> str:
    """`layout-assignment` subtracts where it should add, on the line of the program of the next fault."""
    return re.sub(r"(f32\[8,16\]\S*) add\(", r"\1 subtract(", text) if number >= 8 else text


def laid_out_maximum(number: int, text: str) -> str:
    """`layout-assignment` takes the larger one where it should add."""
    return re.sub(r"(f32\[8,16\]\S*) add\(", r"\1 maximum(", text) if number >= 8 else text


#: The faults of five copies of a program, by module; two of them occur twice.
FAULTS: list[Change] = [fused_add, laid_out_subtract, fused_add, laid_out_maximum, laid_out_subtract]


def five_programs(source: Path, target: Path) -> Path:
    target.mkdir()
    for number, fault in enumerate(FAULTS):
        one = changed_copy(source, target.with_name(f"{number}"), fault)
        for path in one.glob("*.txt"):
            name = path.name.replace("module_0000", f"module_{2 * number:04d}")
            (target / name).write_text(path.read_text())
    return target


def test_three_faults_in_five_programs_are_three_culprits(pool: Pool, corpus: Path, tmp_path: Path) -> None:
    found = bisected(five_programs(corpus / "jax/model_fn", tmp_path / "dump"), pool)
    culprits = {(c.module[:11], c.pass_name, *(other[:11] for other in c.others)) for c in found.culprits}
    assert culprits == {
        ("module_0000", "fusion", "module_0004"),
        ("module_0002", "layout-assignment", "module_0008"),
        ("module_0006", "layout-assignment"),
    }
    assert found.healthy == []
    assert len(found.modules) == 3


def test_six_planted_faults_are_six_culprits(pool: Pool, corpus: Path) -> None:
    """The number of directories under `corpus/planted`, each with one fault."""
    found = bisected(corpus / "planted", pool)
    folders = sorted(path.name for path in (corpus / "planted").iterdir())
    assert sorted(culprit.module.partition("/")[0] for culprit in found.culprits) == folders
    assert all(not culprit.others and culprit.confirmed for culprit in found.culprits)
