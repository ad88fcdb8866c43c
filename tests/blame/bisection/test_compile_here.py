"""With the compiler at hand: real XLA, and compilers that are planted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.bisection import bisected, tasks_in, workers

from hlotool.blame.bisection import compiler
from hlotool.blame.bisection.compiler import LiveQuestion, compile_live, passes_that_changed, without
from hlotool.blame.bisection.directory import Compiler, Findings
from hlotool.blame.bisection.stages import StageOracle
from hlotool.blame.bisection.trigger import try_culprits
from hlotool.blame.steps import Steps
from hlotool.ir.module import Module
from hlotool.parser.proto.schema import decode
from hlotool.runs.options.kept import ReplayOptions, RunOptions
from hlotool.runs.task import Task
from hlotool.sources.directory import open_dump
from hlotool.sources.loading import load_stage
from hlotool.system.pool import Pool

TEXT = "HloModule m\nENTRY main { p = f32[4] parameter(0) ROOT s = f32[4] add(p, p) }\n"


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with workers() as started:
        yield started


def compiled(task: Task, pool: Pool, root: Path) -> Findings:
    oracle = StageOracle(pool, Steps())
    findings = Findings()
    Compiler("xla", root, oracle, repeats=2).bisect([task], findings)
    try_culprits(findings.culprits, [task], "xla", RunOptions(), oracle.steps)
    return findings


def first_stage_only(folder: Path) -> Task:
    [task] = tasks_in(folder)
    return Task(replace(task.module, stages=task.module.stages[:1]), task.options)


@pytest.mark.xla
def test_xla_shows_the_pass_and_is_right_without_it(pool: Pool, corpus: Path, tmp_path: Path) -> None:
    pytest.importorskip("jaxlib", minversion="0.10.2")
    task = first_stage_only(corpus / "miscompiles/limits_that_cross")
    [culprit] = compiled(task, pool, tmp_path).culprits
    assert (culprit.level, culprit.pass_name, culprit.confirmed) == ("pass", "algsimp", True)
    assert culprit.module == task.module.title
    assert culprit.repaired_without == [["algsimp"]]
    assert any("without algsimp" in line for line in culprit.evidence)
    assert culprit.trigger is not None
    assert culprit.trigger.summary.startswith("triggers on jaxlib 0.")
    assert culprit.minimal.count("clamp(") == culprit.minimal.count("maximum(") == 1
    assert culprit.reduced_instructions == 2


@pytest.mark.xla
def test_a_fault_behind_all_passes_is_reduced(pool: Pool, corpus: Path, tmp_path: Path) -> None:
    pytest.importorskip("jaxlib", minversion="0.10.2")
    task = first_stage_only(corpus / "miscompiles/shifted_update_in_place")
    [culprit] = compiled(task, pool, tmp_path).culprits
    assert (culprit.level, culprit.pass_name) == ("codegen", "")
    assert culprit.reduced_instructions is not None
    assert culprit.reduced_instructions <= 5
    assert "dynamic-update-slice" in culprit.minimal
    assert culprit.trigger is not None
    assert culprit.trigger.form == "the program as given"


class Dice:
    """A compiler that writes a dump and whose programs return something else every time."""

    folder: Path

    def dumping(self, folder: Path, passes: str = ".*") -> Any:
        folder.mkdir(parents=True)
        self.folder = folder
        return self

    def compile(self, module: Module) -> Any:
        for stage in ("before_optimizations", "cpu_after_optimizations"):
            (self.folder / f"module_0001.m.{stage}.txt").write_text(module.to_text(), encoding="utf-8")
        turns = iter(range(100))

        class Program:
            def run(self, arguments: Sequence[Any], probe: object = None) -> Any:
                return np.asarray(arguments[0]) * 2 + np.float32(next(turns) > 0)

        return Program()


def test_runs_that_differ_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.hlo").write_text(TEXT, encoding="utf-8")
    task = Task(open_dump(tmp_path / "m.hlo").modules[0], ReplayOptions())
    monkeypatch.setattr(compiler, "get_backend", lambda name: Dice())
    found = compile_live(LiveQuestion(task, "dice", str(tmp_path / "dump"), 3))
    assert (found.results, found.runs, found.error) == (2, 3, "")
    assert sorted(path.name for path in (tmp_path / "dump").glob("*.npz")) == ["inputs.npz", "outputs.npz"]


def test_a_backend_that_writes_no_dumps_is_told(tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(TEXT, encoding="utf-8")
    task = Task(open_dump(tmp_path / "m.hlo").modules[0], ReplayOptions())
    assert "cannot write" in compile_live(LiveQuestion(task, "numpy", str(tmp_path / "d"), 1)).error


def test_passes_to_switch_off(corpus: Path) -> None:
    module = open_dump(corpus / "planted/cumulative_window").modules[0]
    names = passes_that_changed(module)
    assert {"cse", "fusion", "layout-assignment"} <= set(names)
    assert "pipeline-start" not in names
    assert without("xla", ["a", "b"]) == "xla:disable=a+b"
    assert without("xla:opt=0", ["a"]) == "xla:opt=0,disable=a"
    assert without("xla", []) == "xla"


def test_captured_runs_that_contradict_each_other_are_flaky(pool: Pool, corpus: Path, tmp_path: Path) -> None:
    """The same arguments twice, and in the second capture another result."""
    source = corpus / "jax/snapshots"
    [capture] = source.glob("*.pb")
    for path in (*source.glob("*.txt"), capture):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    message = decode("HloSnapshot", capture.read_bytes(), "snapshot")
    message.result.tuple_literals[0].f32s[0] += 1
    second = capture.name.replace("snapshot.-1", "snapshot.-2")
    (tmp_path / second).write_bytes(message.SerializeToString())
    [culprit] = bisected(tmp_path, pool).culprits
    assert (culprit.level, culprit.signature) == ("flaky", "1 of 2 captured runs are unlike an earlier one")


#: XLA (jaxlib 0.10.2, CPU) multiplies four-bit integers without wrapping them to four bits.
EXCHANGED_PRODUCT = """HloModule product, num_partitions=2
ENTRY e {
  x = s4[2,4] parameter(0)
  y = s4[2,4] parameter(1)
  m = s4[2,4] multiply(x, y)
  c = s8[2,4] convert(m)
  ROOT p = s8[2,4] collective-permute(c), channel_id=1, source_target_pairs={{0,1},{1,0}}
}
"""


@pytest.mark.xla
def test_a_program_for_several_devices_is_compiled_for_them(pool: Pool, tmp_path: Path) -> None:
    pytest.importorskip("jaxlib", minversion="0.10.2")
    (tmp_path / "m.hlo").write_text(EXCHANGED_PRODUCT, encoding="utf-8")
    task = Task(open_dump(tmp_path / "m.hlo").modules[0], ReplayOptions())
    record = compile_live(LiveQuestion(task, "xla", str(tmp_path / "dump"), 1))
    assert not record.error
    [culprit] = bisected(Path(record.folder), pool).culprits
    assert (culprit.pass_name, culprit.confirmed) == ("float-normalization-s4", True)
    assert "multiply" in culprit.opcodes
    assert list((tmp_path / "dump").glob("*spmd-partitioning*"))


@pytest.mark.xla
def test_global_arrays_are_spread_as_the_program_says(corpus: Path, tmp_path: Path) -> None:
    """The partitioner runs, and what it made gives what the program on global arrays gives."""
    [module] = open_dump(corpus / "jax/collectives").modules
    task = Task(replace(module, artefacts=()), ReplayOptions())
    record = compile_live(LiveQuestion(task, "xla", str(tmp_path / "dump"), 2))
    assert (record.results, record.runs, record.error) == (1, 2, "")
    [dumped] = open_dump(record.folder).modules
    assert any(stage.after_pass == "spmd-partitioning" for stage in dumped.stages)
    assert {"f32[4,4]"} <= {str(p.shape)[:8] for p in load_stage(dumped, dumped.stages[-1]).entry.parameters}
