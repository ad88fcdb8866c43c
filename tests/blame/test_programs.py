"""Structural differences of real programs, and how the stages of two dumps are paired."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hlotool.blame.diff_programs import diff_modules, diff_stages, pair_dumps
from hlotool.errors import UsageError
from hlotool.parser.reader import parse_module
from hlotool.sources.directory import open_dump

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
PROGRAMS = sorted(path for path in (CORPUS / "jax").glob("*/*.before_optimizations.txt"))[::3]


@pytest.mark.parametrize("before", PROGRAMS, ids=lambda path: path.parent.name)
def test_every_instruction_is_counted_once(before: Path) -> None:
    stem = before.name.removesuffix("before_optimizations.txt")
    afters = sorted(before.parent.glob(f"{stem}*after_optimizations.txt"))
    for after in afters:
        left, right = (parse_module(path.read_text(encoding="utf-8"), str(path)) for path in (before, after))
        record = diff_modules("program", left, right)
        assert record.matched + record.only_left == record.left_instructions
        assert record.matched + record.only_right == record.right_instructions
        counted = [
            row.same + row.moved + row.changed + row.only_left + row.only_right for row in record.opcodes
        ]
        assert sum(counted) == record.matched + record.only_left + record.only_right
        shown = [line for computation in record.computations for hunk in computation.hunks for line in hunk]
        assert sum(line.status == "changed" for line in shown) == record.changed
        assert all(bool(line.changes) == (line.status == "changed") for line in shown)


def test_a_planted_fault_is_the_only_difference() -> None:
    folders = CORPUS / "jax" / "int8_dot", CORPUS / "planted" / "int8_dot_rounding"
    pairing = pair_dumps(*(open_dump(folder) for folder in folders))
    records = [diff_stages(pair, context=0) for pair in pairing.pairs]
    assert [record.is_same for record in records] == [True, False]
    [computation] = records[1].computations
    [[line]] = computation.hunks
    assert [(change.what, change.left, change.right) for change in line.changes] == [
        ("opcode", "round-nearest-even", "floor")
    ]


def test_stages_are_paired_by_their_labels(tmp_path: Path) -> None:
    """Every pass of two compilations, one of which ran fewer of them."""
    source = CORPUS / "planted" / "int8_dot_rounding"
    for name in ("one", "other"):
        shutil.copytree(source, tmp_path / name)
    [lost] = (tmp_path / "other").glob("*.0013.*")
    lost.unlink()
    pairing = pair_dumps(open_dump(tmp_path / "one"), open_dump(tmp_path / "other"), ["*reshape-mover*"])
    [pair] = pairing.pairs
    assert pair.left.sequence == pair.right.sequence == 8
    [again] = pairing.only_left
    assert again.endswith("simplification.after_reshape-mover.before_constant_folding #2")
    assert pairing.only_right == ()
    with pytest.raises(UsageError, match="no stage of a module in common"):
        pair_dumps(open_dump(tmp_path / "one"), open_dump(tmp_path / "other"), ["nothing*"])
