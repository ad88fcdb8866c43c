"""Programs for several devices: the pass, the instruction, and a bundle that fails alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.bisection import bisected, workers

from hlotool.blame.bisection.records import CulpritRecord
from hlotool.blame.repro.bundle import read_bundle, write_bundle
from hlotool.blame.repro.making import bundle_of
from hlotool.blame.repro.verify import verify
from hlotool.ir.partitioning import own_arguments
from hlotool.parser.reader import parse_module
from hlotool.runs.options.kept import ReplayOptions
from hlotool.system.pool import Pool

#: What JAX gives, what the partitioner makes of it, and what a later pass makes of that.
GIVEN = """HloModule jit_f, num_partitions=4
ENTRY main {
  x = f32[8,4] parameter(0), sharding={devices=[1,4]<=[4]}
  y = f32[4,8] parameter(1), sharding={devices=[4,1]<=[4]}
  d = f32[8,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[8,8] exponential(d)
  n = f32[8,8] negate(d)
  ROOT t = (f32[8,8], f32[8,8]) tuple(e, n)
}
"""
PARTITIONED = """HloModule jit_f, num_partitions=4
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY main {
  x = f32[8,1] parameter(0), sharding={devices=[1,4]<=[4]}
  y = f32[1,8] parameter(1), sharding={devices=[4,1]<=[4]}
  p = f32[8,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  d = f32[8,8] all-reduce(p), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true,
    to_apply=sum
  e = f32[8,8] exponential(d)
  n = f32[8,8] negate(d)
  ROOT t = (f32[8,8], f32[8,8]) tuple(e, n)
}
"""
#: The same on replicas, which have arguments of their own.
REPLICAS = (
    PARTITIONED.replace("num_partitions", "replica_count")
    .replace("channel_id=1, ", "")
    .replace("use_global_device_ids=true,\n    ", "")
)
HALVED = ("{{0,1,2,3}}", "{{0,1},{2,3}}")


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with workers() as started:
        yield started


def culprit_of(texts: list[str], folder: Path, pool: Pool) -> CulpritRecord:
    names = ["before_optimizations", "0001.p.after_spmd-partitioning.before_a", "0002.p.after_a.before_b"]
    folder.mkdir()
    for name, text in zip([*names[: len(texts) - 1], "cpu_after_optimizations"], texts):
        (folder / f"module_0000.jit_f.{name}.txt").write_text(text, encoding="utf-8")
    [culprit] = bisected(folder, pool).culprits
    return culprit


def bundled(culprit: CulpritRecord, folder: Path) -> tuple[int, int]:
    """How many devices have their own arguments before and after the pass, in a bundle that fails alike."""
    bundle = bundle_of(culprit, ReplayOptions(), {})
    assert bundle is not None
    write_bundle(bundle, folder)
    found = verify(folder)
    assert found.same, found.reason
    kept = read_bundle(folder)
    return own_arguments(parse_module(kept.program)), own_arguments(parse_module(kept.after))


def test_wrong_groups(pool: Pool, tmp_path: Path) -> None:
    wrong = PARTITIONED.replace(*HALVED)
    culprit = culprit_of([GIVEN, PARTITIONED, wrong, wrong], tmp_path / "dump", pool)
    assert (culprit.pass_name, culprit.instructions, culprit.confirmed) == ("a", ["d"], True)
    assert bundled(culprit, tmp_path / "bundle") == (4, 4)


def test_a_missing_exchange(pool: Pool, tmp_path: Path) -> None:
    """The right program exchanges values, the wrong one does not: both get those of each device."""
    wrong = PARTITIONED.replace("exponential(d)", "exponential(p)").replace("negate(d)", "negate(p)")
    culprit = culprit_of([GIVEN, PARTITIONED, wrong, wrong], tmp_path / "dump", pool)
    assert culprit.pass_name == "a"
    assert bundled(culprit, tmp_path / "bundle")[0] == 4


def test_what_one_device_does_alone(pool: Pool, tmp_path: Path) -> None:
    """The spot exchanges nothing; what stands around it does."""
    wrong = PARTITIONED.replace("exponential(d)", "cosine(d)")
    culprit = culprit_of([GIVEN, PARTITIONED, wrong, wrong], tmp_path / "dump", pool)
    assert culprit.instructions == ["e"]
    bundled(culprit, tmp_path / "bundle")


def test_the_partitioner(pool: Pool, tmp_path: Path) -> None:
    """What it was given is on global arrays: so are the arguments of the bundle."""
    wrong = PARTITIONED.replace("add(a, b)", "maximum(a, b)")
    culprit = culprit_of([GIVEN, wrong, wrong], tmp_path / "dump", pool)
    assert (culprit.pass_name, "d" in culprit.instructions) == ("spmd-partitioning", True)
    assert bundled(culprit, tmp_path / "bundle") == (1, 4)


def test_replicas(pool: Pool, tmp_path: Path) -> None:
    wrong = REPLICAS.replace(*HALVED)
    culprit = culprit_of([REPLICAS, REPLICAS, wrong, wrong], tmp_path / "dump", pool)
    assert (culprit.pass_name, culprit.instructions) == ("a", ["d"])
    assert bundled(culprit, tmp_path / "bundle") == (4, 4)
