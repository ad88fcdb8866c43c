"""The first diverging instruction across the partitioner: one program, and what eight devices run of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hlotool.inputs.captured import load_inputs
from hlotool.inputs.frames import Frame, Node, Trace, operand_uses
from hlotool.inputs.recorded_values import Budget
from hlotool.ir.types import leaves
from hlotool.judge.locate.locator import NotFound
from hlotool.judge.locate.report import first_divergence
from hlotool.judge.records import DivergenceRecord
from hlotool.parser.reader import parse_module
from hlotool.runs.observed_programs import subjects
from hlotool.runs.program import Program, load_program
from hlotool.sources.directory import open_dump

FOLDER = Path(__file__).resolve().parents[2] / "corpus" / "jax" / "sharded_mlp"


def programs(folder: Path, old: str = "", new: str = "") -> tuple[Program, Program]:
    """The program before and after partitioning, the latter with one change."""
    for path in FOLDER.glob("*.txt"):
        text = path.read_text(encoding="utf-8")
        if "after_optimizations" in path.name and old:
            assert text.count(old) == 1
            text = text.replace(old, new)
        (folder / path.name).write_text(text, encoding="utf-8")
    [owner] = open_dump(folder).modules
    assert owner.before is not None
    assert owner.after is not None
    reference = load_program(owner, owner.before, "numpy")
    return reference, load_program(owner, owner.after, "numpy", reference)


def search(folder: Path, old: str = "", new: str = "") -> DivergenceRecord:
    reference, tested = programs(folder, old, new)
    arguments = load_inputs(str(FOLDER / "inputs.npz"), reference.module)
    expected = reference.runner.run(arguments).value
    actual = tested.runner.run(arguments, expected).value
    assert not old or not np.allclose(expected, actual)
    outputs = [index for index, _ in leaves(reference.module.entry.root.shape)]
    return first_divergence(*subjects(reference, tested, arguments), outputs, Budget())


def test_a_fault_on_every_device(tmp_path: Path) -> None:
    """Each device holds a part: together they are compared with the reference's whole."""
    old = "ROOT %max.8 = f32[2,4]{1,0} maximum("
    record = search(tmp_path, old, old.replace("maximum", "minimum"))
    assert (record.source.instruction, record.expected_source.opcode) == ("max.8", "maximum")
    assert record.source.file.endswith("jax_devices.py")
    assert [operand.state for operand in record.operands] == ["agrees", "agrees"]
    assert record.accumulated is not None
    assert record.accumulated.total == 64
    assert record.around == ["fusion %broadcast_maximum_fusion"]


def test_a_wrong_exchange(tmp_path: Path) -> None:
    """The devices sum with the wrong partners; what they brought were parts of a sum, which fit nowhere."""
    old = "replica_groups={{0,1},{2,3},{4,5},{6,7}}"
    record = search(tmp_path, old, "replica_groups={{0,2},{1,3},{4,6},{5,7}}")
    assert record.source.instruction in ("all-reduce", "tanh.3", "dot.1")


def test_no_difference(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no instruction is known to differ"):
        search(tmp_path)


def test_a_combined_sum_reads_for_each_result_its_own_operand() -> None:
    """XLA: operation_semantics.md#allreduce, of a tuple."""
    entry = parse_module("""HloModule m
    add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT s = f32[] add(x, y) }
    ENTRY e {
      a = f32[4] parameter(0)
      b = f32[] parameter(1)
      ROOT sums = (f32[4], f32[]) all-reduce(a, b), replica_groups={}, to_apply=add
    }""").entry
    frame = Frame(entry, Trace(()))
    read = [operand_uses(Node(frame, entry.root, (number,))) for number in (0, 1)]
    assert [[use.instruction.name for use in uses] for uses in read] == [["a"], ["b"]]
