"""The executor on Dask, on workers of this machine: what it promises, and the same record as without it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.heard import Heard
from support.programs import BROKEN, DOUBLE, SQUARE, SUM, write_module
from support.records import without

import hlotool
from hlotool.errors import (
    BackendCrashed,
    BackendTimeout,
    BackendUnavailable,
    ExitCode,
    UsageError,
)
from hlotool.runs.fleet import batch, identity
from hlotool.runs.fleet import cluster as cluster_module
from hlotool.runs.fleet import cluster as clusters
from hlotool.runs.fleet.cluster import Cluster, ClusterSpec, cluster_spec
from hlotool.runs.fleet.on_worker import Seen, machine_here
from hlotool.system.executor import Done, Limits, Started

pytest.importorskip("distributed")

#: Seconds after which a cluster's end is taken for stuck, on the busiest machine.
PATIENCE = 600


@pytest.fixture(scope="module")
def local() -> Iterator[Any]:
    """A cluster of two workers that several tests share."""
    made = clusters._local(2)
    yield made
    close(made)


def close(cluster: Any) -> None:
    """Dask gives a worker five seconds to end, kills it, and fails where a busy machine takes longer."""
    with suppress(TimeoutError):
        cluster.close(timeout=PATIENCE)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    folder = tmp_path / "dump"
    folder.mkdir()
    write_module(folder, 0, DOUBLE, SUM)
    write_module(folder, 1, DOUBLE, SQUARE, "jit_g")
    write_module(folder, 2, DOUBLE, BROKEN, "jit_h")
    return folder


def ends(executor: Cluster, arguments: Iterable[object], function: str = "support.planted:act") -> list[Done]:
    found = []
    for event in executor.run(function, arguments):
        assert isinstance(event, Started | Done)
        if isinstance(event, Done):
            found.append(event)
    assert len({end.index for end in found}) == len(found)
    return sorted(found, key=lambda end: end.index)


def test_a_cluster_of_this_machine_leaves_the_environment_as_it_is() -> None:
    """Variables are in the keys of answers: what one left there made no journal go on without the cluster."""
    before = dict(os.environ)
    close(clusters._local(1))
    changed = {name for name, value in os.environ.items() if before.get(name) != value}
    assert not [name for name in changed if name.startswith(identity._VARIABLES)]


def test_each_task_ends_once_whatever_it_does(local: Any) -> None:
    limits = Limits(timeout=20, memory=4 << 30)
    with Cluster(local.scheduler_address, limits, backend="planted") as executor:
        found = ends(executor, ["segfault", "print", "raise", "exit", "print"])
        values = [end.value for end in found]
        assert [type(value) for value in values] == [
            BackendCrashed,
            bytes,
            BackendCrashed,
            BackendCrashed,
            bytes,
        ]
        assert "SIGSEGV" in str(values[0])
        # The workers themselves live.
        assert len(local.scheduler_info["workers"]) == 2


def test_a_task_that_hangs(local: Any) -> None:
    with Cluster(local.scheduler_address, Limits(timeout=1.0), backend="planted") as executor:
        [end] = ends(executor, ["hang"])
    assert isinstance(end.value, BackendTimeout)


def test_few_are_handed_in_at_a_time(local: Any) -> None:
    drawn = 0

    def arguments() -> Iterator[int]:
        nonlocal drawn
        for number in range(60):
            drawn += 1
            yield number

    done = 0
    with Cluster(local.scheduler_address, Limits()) as executor:
        for event in executor.run("support.planted:double", arguments()):
            done += isinstance(event, Done)
            # Two for each of the two that can run.
            assert drawn - done <= 4
    assert done == drawn == 60


def test_the_record_is_that_of_this_machine(local: Any, dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(dump.parent)
    # Each of them replays: what one of them has found is not for the others to repeat.
    options: dict[str, Any] = {"further_sets": False, "cache": False}
    here = hlotool.replay("dump", **options)
    assert [row.verdict.value for row in here.rows] == ["identical", "wrong", "bad input"]
    there = hlotool.replay("dump", cluster=local.scheduler_address, **options)
    assert without(there.to_dict()) == without(here.to_dict())
    # Workers that have not got the files: other ones of the same names, say.
    monkeypatch.setattr(cluster_module, "files_of", lambda task: [Seen("dump", 0, 0)])
    sent = hlotool.replay("dump", cluster=local.scheduler_address, **options)
    assert without(sent.to_dict()) == without(here.to_dict())


@pytest.mark.parametrize("first_on_cluster", [True, False])
def test_an_interrupted_run_goes_on_with_the_cluster_or_without(
    local: Any, dump: Path, first_on_cluster: bool
) -> None:
    for number in range(3, 9):
        pair = (text.replace("[4]", f"[{number}4]") for text in (DOUBLE, SUM))
        write_module(dump, number, *pair, f"jit_{number}")
    wheres = [local.scheduler_address, None][:: 1 if first_on_cluster else -1]
    options: dict[str, Any] = {"further_sets": False, "cache": False}
    with pytest.raises(KeyboardInterrupt):
        hlotool.replay(dump, course=Heard(interrupt_after=4), cluster=wheres[0], **options)
    heard = Heard()
    there = hlotool.replay(dump, course=heard, cluster=wheres[1], **options)
    assert (heard.started_count, heard.finished_count) == (9 - 4, 9)
    here = hlotool.replay(dump, **options)
    assert without(there.to_dict()) == without(here.to_dict())


def test_verdicts_are_kept_and_believed_where_machines_are_alike(
    local: Any, dump: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(cluster: str | None) -> int:
        heard = Heard()
        hlotool.replay(dump, further_sets=False, cluster=cluster, course=heard)
        return heard.started_count

    where = local.scheduler_address
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(cluster_module, "made_with_any", lambda: "of another processor")
        assert [started(where), started(where)] == [3, 3]
    assert [started(where), started(where), started(None)] == [3, 0, 0]
    monkeypatch.setattr(cluster_module, "made_with_any", lambda: "of another processor")
    assert [started(where), started(None)] == [3, 0]


def test_what_dask_chooses_for_workers_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    mine = machine_here()
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as Dask's configuration has it
    assert machine_here() == mine
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert machine_here() != mine


def test_check_and_bisect(local: Any, dump: Path) -> None:
    where = local.scheduler_address
    assert without(hlotool.check(dump, cluster=where).to_dict()) == without(hlotool.check(dump).to_dict())
    options: dict[str, Any] = {"only": "jit_g", "try_on": "none", "resume": False}
    here = hlotool.bisect(dump, **options)
    assert without(hlotool.bisect(dump, cluster=where, **options).to_dict()) == without(here.to_dict())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_workers_that_are_lost(dump: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Four workers, two of them killed at random moments: the same record, and hardly anything done twice."""
    for number in range(3, 40):
        # Each of its own shape: the same program would be run once.
        pair = (text.replace("[4]", f"[{number}4]") for text in (DOUBLE, SUM if number % 5 else SQUARE))
        write_module(dump, number, *pair, f"jit_{number}")
    # What the first run knows must be of no use to the second one.
    options: dict[str, Any] = {"further_sets": False, "jobs": 2, "cache": False}
    here = hlotool.replay(dump, **options)
    monkeypatch.setattr(batch, "_FUNCTION", "support.planted:noted_replay")
    chance, kills = random.Random(seed), 2
    moments = sorted(chance.sample(range(40), kills))
    made = clusters._local(4)
    try:
        watch = _Killer(made, dump.parent / "notes", moments, chance)
        with watch:
            there = hlotool.replay(dump, **options, cluster=made.scheduler_address)
    finally:
        close(made)
    assert len(watch.killed) == kills
    assert without(there.to_dict()) == without(here.to_dict())
    times = Counter((dump.parent / "notes").read_text().split())
    assert len(times) == 40
    # A lost worker takes the task it works on with it, and those whose results were still there.
    assert max(times.values()) <= 1 + kills
    assert sum(times.values()) <= 40 + kills * 4


class _Killer:
    """Kills a worker whenever so many tasks have begun."""

    def __init__(self, cluster: Any, notes: Path, moments: list[int], chance: random.Random) -> None:
        self.killed: list[int] = []
        self._cluster = cluster
        self._notes = notes
        self._moments = moments
        self._chance = chance
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while self._moments and not self._over.wait(0.01):
            begun = len(self._notes.read_text().split()) if self._notes.exists() else -1
            if begun >= self._moments[0]:
                del self._moments[0]
                nannies = list(self._cluster.workers.values())
                pids = [nanny.pid for nanny in nannies if nanny.pid not in (None, *self.killed)]
                self.killed.append(self._chance.choice(pids))
                os.kill(self.killed[-1], signal.SIGKILL)


@pytest.mark.slow
def test_ctrl_c_leaves_a_journal(dump: Path, tmp_path: Path) -> None:
    for number in range(3, 60):
        pair = (text.replace("[4]", f"[{number}4]") for text in (DOUBLE, SUM))
        write_module(dump, number, *pair, f"jit_{number}")
    command = [sys.executable, "-m", "hlotool", "run", str(dump), "--cluster", "local:2", "--json"]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    while running.poll() is None and _answers(tmp_path) < 5:
        time.sleep(0.05)
    # To all processes of the terminal, as Ctrl-C does.
    os.killpg(running.pid, signal.SIGINT)
    out, error = running.communicate(timeout=120)
    assert running.returncode == ExitCode.INTERRUPTED
    assert json.loads(out)["interrupted"]
    assert b"Traceback" not in error
    kept = _answers(tmp_path)
    assert 5 <= kept < 60
    heard = Heard()
    hlotool.replay(dump, cache=False, course=heard)
    assert (heard.started_count, heard.finished_count) == (60 - kept, 60)


def _answers(folder: Path) -> int:
    """Lines of the journal."""
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("cache/journals/*.jsonl"))


def test_workers_of_another_version(local: Any, dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = cluster_module.versions_here()
    monkeypatch.setattr(cluster_module, "versions_here", lambda: {**mine, "numpy": "1.0"})
    with pytest.raises(BackendUnavailable, match=rf"other versions: numpy {mine['numpy']} \(here 1\.0\)"):
        hlotool.replay(dump, cluster=local.scheduler_address)


def test_nobody_is_there(monkeypatch: pytest.MonkeyPatch, dump: Path) -> None:
    monkeypatch.setattr(clusters, "_CONNECT", 1)
    with pytest.raises(
        BackendUnavailable, match=r"--cluster tcp://127\.0\.0\.1:9: the scheduler does not answer"
    ):
        hlotool.replay(dump, cluster="tcp://127.0.0.1:9")


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("tcp://host:8786", ClusterSpec("address", "tcp://host:8786")),
        ("local:3", ClusterSpec("local", workers=3)),
        ("slurm:jobs=8,cores=4,memory=16GB", ClusterSpec("slurm", "", 8, {"cores": 4, "memory": "16GB"})),
        ("k8s:n_workers=2,image=me/hlotool", ClusterSpec("k8s", "", 2, {"image": "me/hlotool"})),
        ("slurm:", ClusterSpec("slurm")),
    ],
)
def test_names_of_clusters(text: str, spec: ClusterSpec) -> None:
    assert cluster_spec(text) == spec


@pytest.mark.parametrize("text", ["host:8786", "local:0", "local:", "slurm:cores", "tcp://", "dask:2"])
def test_what_is_no_cluster(text: str, dump: Path) -> None:
    with pytest.raises(UsageError, match="cluster"):
        hlotool.replay(dump, cluster=text)


def test_a_cluster_that_is_started(monkeypatch: pytest.MonkeyPatch, local: Any) -> None:
    made: list[Any] = []

    class SLURMCluster:
        """What dask_jobqueue has, as far as it is used; the jobs are workers of this machine."""

        def __init__(self, cores: int, memory: str) -> None:
            made.append((cores, memory))
            self.scheduler_address = local.scheduler_address

        def scale(self, jobs: int) -> None:
            made.append(jobs)

    with pytest.raises(BackendUnavailable, match="slurm: needs a package: pip install dask-jobqueue"):
        clusters._started(cluster_spec("slurm:jobs=3"))
    monkeypatch.setitem(sys.modules, "dask_jobqueue", SimpleNamespace(SLURMCluster=SLURMCluster))
    clusters._started(cluster_spec("slurm:jobs=3,cores=2,memory=4GB"))
    assert made == [(2, "4GB"), 3]
    with pytest.raises(UsageError, match=r"--cluster slurm: .*coers"):
        clusters._started(cluster_spec("slurm:jobs=3,coers=2"))
