"""Programs that are the same under other names: replayed once, reported each in its own words.

The expected rows are those of each module replayed by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from support.heard import Heard
from support.renaming import renamed

import hlotool
from hlotool.interface.report.basis import basis_lines
from hlotool.interface.report.records import RunRecord
from hlotool.judge.verdicts import Verdict
from hlotool.runs.fleet.identity import identity_of
from hlotool.runs.options.kept import RunOptions
from hlotool.runs.records import ModuleRecord
from hlotool.runs.task import find_tasks, select_stages
from hlotool.sources.directory import open_dump

#: One that is wrong and located, one with decisions, one with generated indices, one that rounds.
MODULES = ("jax/int4_product", "jax/int8_dot", "jax/batched_indexing", "jax/pooling_gradient")


@pytest.fixture
def hosts(corpus: Path, tmp_path: Path) -> Path:
    """The modules as two hosts dumped them."""
    for host in ("host0", "host1"):
        folder = tmp_path / "hosts" / host
        folder.mkdir(parents=True)
        for number, name in enumerate(MODULES):
            [module] = open_dump(corpus / name).modules
            selection = select_stages(module)
            assert selection.reference is not None
            for stage in (selection.reference, *selection.tested):
                assert stage.text is not None
                text = stage.text.read_text()
                path = (
                    tmp_path / "hosts" / host / f"module_{number:04d}.{module.name}_{host}.{stage.label}.txt"
                )
                path.write_text(text if host == "host0" else renamed(text, host, number), encoding="utf-8")
    return tmp_path / "hosts"


def rows(*paths: Path) -> Sequence[ModuleRecord]:
    """What a replay says, apart from what depends on the clock and on the folder that was named."""
    found = hlotool.replay([str(path) for path in paths], further_sets=False, coverage=True, cache=False).rows
    return [
        msgspec.structs.replace(row, seconds=0.0, name=row.name.rpartition("/")[2], twin_of="")
        for row in found
    ]


def without_times(record: RunRecord) -> RunRecord:
    """A record apart from the clock, and from where its entries come from."""
    modules = [msgspec.structs.replace(row, seconds=0.0) for row in record.modules]
    return msgspec.structs.replace(record, modules=modules, seconds=0.0, remembered=None)


def shared_keys(folder: Path) -> set[str]:
    return {identity_of(task).shared for task in find_tasks([str(folder)], RunOptions(), [])}


def test_each_twin_is_told_in_its_own_words(hosts: Path) -> None:
    heard = Heard()
    together = hlotool.replay(str(hosts), further_sets=False, coverage=True, cache=False, course=heard).rows
    count = len(MODULES)
    assert (heard.started_count, heard.finished_count) == (count, 2 * count)
    assert [row.twin_of for row in together] == [""] * count + [row.path for row in together[:count]]
    alone = [*rows(hosts / "host0"), *rows(hosts / "host1")]
    assert rows(hosts) == alone
    wrong = alone[count]
    assert wrong.verdict is Verdict.WRONG
    assert wrong.divergence is not None
    assert wrong.divergence.source.file == "host1/corpus/generate/jax_numbers.py"


def test_what_decides_makes_another_identity(hosts: Path) -> None:
    keys = {
        task.module.title: identity_of(task).shared for task in find_tasks([str(hosts)], RunOptions(), [])
    }
    assert len(set(keys.values())) == len(MODULES)
    path = next((hosts / "host1").glob("*int8_dot*.cpu_after*"))
    text = path.read_text()
    for old, new in [
        ("constant(-127)", "constant(-126)"),
        ("lhs_contracting_dims={1}", "lhs_contracting_dims={0}"),
        ("s8[12,5]{1,0} parameter(1)", "s8[12,5]{0,1} parameter(1)"),
        ('"kind":"__ynn_fusion"', '"kind":"__other_fusion"'),
        ("dimensions={0}", "dimensions={0}, operand_precision={highest,highest}"),
    ]:
        assert old in text
        path.write_text(text.replace(old, new, 1))
        assert len(shared_keys(hosts)) == len(MODULES) + 1, old
    path.write_text(text)
    [first, *_] = find_tasks([str(hosts)], RunOptions(), [])
    [seeded, *_] = find_tasks([str(hosts)], RunOptions(seed=1), [])
    assert identity_of(first).shared != identity_of(seeded).shared
    [parallel, *_] = find_tasks([str(hosts)], RunOptions(jobs=3), [])
    assert identity_of(first).shared == identity_of(parallel).shared


def test_a_later_run_remembers(hosts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    options = {"further_sets": False, "coverage": True}
    first = hlotool.replay(str(hosts / "host0"), **options)
    heard = Heard()
    again = hlotool.replay(str(hosts), course=heard, **options)
    assert heard.started_count == 0
    assert first.record.remembered is None
    remembered = again.record.remembered
    assert remembered is not None
    assert remembered.results == 2 * len(MODULES)
    assert remembered.oldest <= remembered.newest
    [line] = [line for line in basis_lines(again.record) if "cache" in line]
    assert line.startswith(f"all {2 * len(MODULES)} results are from the verdict cache, from ")
    plain = hlotool.replay(str(hosts), cache=False, **options).record
    assert plain.remembered is None
    assert without_times(again.record) == without_times(plain)
    assert again.rows[: len(MODULES)] == [
        msgspec.structs.replace(row, name=f"host0/{row.name}") for row in first.rows
    ]
    for path in (tmp_path / "cache" / "verdicts").rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            path.write_bytes(content[:-9] + b"0" + content[-8:])
    heard = Heard()
    believed = hlotool.replay(str(hosts), course=heard, **options)
    assert heard.started_count == len(MODULES)
    assert [row.verdict for row in believed.rows] == [row.verdict for row in again.rows]


def test_a_changed_environment_makes_another_identity(hosts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in one process, in which keys are remembered."""
    [task, *_] = find_tasks([str(hosts)], RunOptions(), [])
    before = identity_of(task).shared
    with monkeypatch.context() as changed:
        changed.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
        assert identity_of(task).shared != before
    assert identity_of(task).shared == before
