"""Where programs for several devices part as functions: the instruction, the output and the first device."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

import hlotool
from hlotool.inputs.recorded_values import Budget
from hlotool.ir.module import Module
from hlotool.ir.types import ShapeIndex
from hlotool.judge.locate.report import divergence_record
from hlotool.judge.records import DivergenceRecord
from hlotool.runs.exact.compare import compare
from hlotool.runs.exact.parting import open_search
from hlotool.runs.exact.points import Options
from hlotool.runs.exact.result import Relation
from hlotool.runs.exact.task import programs

#: Instructions that make `{name}` a factor of 1 everywhere but on one device, where it is off by 2e-6.
FACTOR = """
  own = u32[] {number}()
  faulty = u32[] constant({device})
  on = pred[] compare(own, faulty), direction=EQ
  off = f32[] constant(1.000002)
  one = f32[] constant(1)
  chosen = f32[] select(on, off, one)
  factor = f32[{dims}] broadcast(chosen), dimensions={{}}
"""

REPLICAS = """HloModule m, replica_count=4
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
ENTRY e {
  x = f32[6] parameter(0)
  total = f32[6] all-reduce(x), to_apply=sum
  square = f32[6] multiply(total, total)
  ROOT y = (f32[6], f32[6]) tuple(total, square)
}"""


def parted(reference: Module, tested: Module) -> tuple[list[ShapeIndex], DivergenceRecord]:
    """The outputs that differ, and where they come from."""
    sides, options = programs(reference, tested), Options()
    outputs = [leaf.index for leaf in compare(*sides, options).leaves if leaf.relation is Relation.UNEQUAL]
    search, differing = open_search(*sides, outputs, options, Budget())
    with closing(search):
        return list(differing), divergence_record(search, search.first(differing), differing)


def changed(text: str, *changes: tuple[str, str]) -> Module:
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return hlotool.parse(text)


def corpus_pair(corpus: Path, name: str) -> tuple[str, str]:
    """The program on global arrays, and the one that XLA made of it for each device."""
    before, after = (
        next((corpus / "jax" / name).glob(f"*.{kind}.txt")) for kind in ("before*", "cpu_after*")
    )
    return before.read_text(encoding="utf-8"), after.read_text(encoding="utf-8")


@pytest.mark.parametrize("device", [0, 2])
def test_replicas(device: int) -> None:
    factor = FACTOR.format(number="replica-id", device=device, dims=6)
    line = "square = f32[6] multiply(total, total)"
    tested = changed(REPLICAS, (line, f"{factor} near = f32[6] multiply(total, factor)\n{line[:-6]}near)"))
    outputs, found = parted(hlotool.parse(REPLICAS), tested)
    assert outputs == [(1,)]
    assert (found.device, found.source.instruction) == (device, "near")
    assert found.accumulated is not None
    assert found.accumulated.worst is not None
    # Shown in numbers; 2e-6 of a square of sums of four.
    assert found.accumulated.worst.expected != found.accumulated.worst.actual


@pytest.mark.parametrize("device", [0, 5])
def test_a_partitioned_program_beside_the_one_on_global_arrays(corpus: Path, device: int) -> None:
    before, after = corpus_pair(corpus, "sharded_mlp")
    factor = FACTOR.format(number="partition-id", device=device, dims="2,6")
    line = "  %dot = f32[2,4]{1,0} dot(%param,"
    near = f"{factor}  near = f32[2,6] multiply(%param, factor)\n{line.replace('%param', 'near')}"
    outputs, found = parted(hlotool.parse(before), changed(after, (line, near)))
    assert outputs == [()]
    assert found.device == device
    # What is wrong, or what reads it: the reference has no product by 1.
    assert found.source.instruction in ("near", "dot")


def test_a_program_with_regions_for_each_device(corpus: Path) -> None:
    """The learning rate of `pmap_step`, 0.1 over 8 devices, off in the seventh digit."""
    before, after = corpus_pair(corpus, "pmap_step")
    outputs, found = parted(hlotool.parse(before), changed(after, ("(0.0125)", "(0.01250001)")))
    assert outputs == [(0,)]
    assert (found.source.opcode, found.source.line) == ("constant", 86)
