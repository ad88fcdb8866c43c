"""The pool with real processes and planted misbehaviour."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import pytest
from support.budget import HUNG

from hlotool.errors import BackendCrashed, BackendFailed, BackendOutOfMemory, BackendTimeout
from hlotool.system import pool as pool_module
from hlotool.system.executor import Done, Limits, Started
from hlotool.system.pool import Pool, worker_environment
from hlotool.system.process import WorkerProcess

GIB = 1 << 30


def outcomes(
    pool: Pool, arguments: Iterable[object], function: str = "support.planted:act"
) -> dict[int, object]:
    """Decoded values and errors by task number."""
    found: dict[int, object] = {}
    for event in pool.run(function, arguments):
        if isinstance(event, Done):
            assert event.index not in found
            value = event.value
            found[event.index] = msgspec.msgpack.decode(value) if isinstance(value, bytes) else value
    return found


def only(pool: Pool, argument: str) -> object:
    return outcomes(pool, [argument])[0]


def failure(pool: Pool, argument: str) -> BackendFailed:
    value = only(pool, argument)
    assert isinstance(value, BackendFailed)
    return value


@pytest.fixture
def pool() -> Iterator[Pool]:
    with Pool(Limits(jobs=1, timeout=20, memory=4 * GIB), backend="planted") as pool:
        yield pool


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    # A dead orphan stays visible until the system's first process collects it, and the first thread of a
    # process may be dead while others still hold its pipes.
    try:
        is_dead = status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
        return not is_dead or len(list(status.with_name("task").iterdir())) > 1
    except FileNotFoundError:
        return False


def test_values_come_back_under_their_number() -> None:
    with Pool(Limits(jobs=2)) as pool:
        assert outcomes(pool, range(20), "support.planted:double") == {i: 2 * i for i in range(20)}


def test_one_worker_serves_many_tasks(pool: Pool) -> None:
    assert len(set(outcomes(pool, range(5), "support.planted:process_id").values())) == 1


def test_no_more_workers_than_tasks() -> None:
    with Pool(Limits(jobs=8)) as pool:
        pool.start()
        assert len(set(outcomes(pool, [1], "support.planted:process_id").values())) == 1
        assert len(pool._workers) == 1


def test_every_task_is_announced_before_it_is_done(pool: Pool) -> None:
    events = list(pool.run("support.planted:double", [1, 2]))
    assert [type(e) for e in events] == [Started, Done, Started, Done]
    assert [e.index for e in events] == [0, 0, 1, 1]


def test_arguments_are_drawn_late() -> None:
    drawn: list[int] = []

    def arguments() -> Iterator[int]:
        for i in range(100):
            drawn.append(i)
            yield i

    with Pool(Limits(jobs=1)) as pool:
        next(pool.run("support.planted:double", arguments()))
        assert len(drawn) < 5


@pytest.mark.parametrize(
    ("misdeed", "kind", "message", "log"),
    [
        ("segfault", BackendCrashed, "the process died of SIGSEGV", "planted.py"),
        ("abort", BackendCrashed, "the process died of SIGABRT", "F0000 planted check failed"),
        ("fatal", BackendCrashed, "SIGABRT: shape.h:397 Check failed: has_layout()", "frame 29"),
        ("llvm", BackendCrashed, "SIGABRT: LLVM ERROR: Unsupported op", ""),
        ("exit", BackendCrashed, "the process ended with exit status 7", ""),
        ("raise", BackendCrashed, "ValueError: planted exception", "planted.py"),
        ("break", BackendCrashed, "device: an illegal memory access", "planted.py"),
        ("overrun", BackendTimeout, "device: the launch timed out", "planted.py"),
        ("allocate", BackendOutOfMemory, "needs more memory than the limit of 4 GiB", ""),
        ("bad_alloc", BackendOutOfMemory, "needs more memory than the limit of 4 GiB", "std::bad_alloc"),
        ("kill", BackendOutOfMemory, "killed by SIGKILL from outside", ""),
    ],
)
def test_a_misbehaving_task_is_one_typed_error_and_the_pool_goes_on(
    pool: Pool, misdeed: str, kind: type[BackendFailed], message: str, log: str
) -> None:
    found = outcomes(pool, ["before", misdeed, "after"])
    error = found[1]
    assert type(error) is kind
    assert message in error.message
    assert log in error.log
    assert error.backend == "planted"
    assert (found[0], found[2]) == ("fine before", "fine after")


@pytest.mark.parametrize("misdeed", ["allocate", "break"])
def test_a_worker_that_is_of_no_more_use_is_replaced(pool: Pool, misdeed: str) -> None:
    [before] = outcomes(pool, [0], "support.planted:process_id").values()
    failure(pool, misdeed)
    [after] = outcomes(pool, [0], "support.planted:process_id").values()
    assert before != after


def test_a_hanging_task_is_killed() -> None:
    with Pool(Limits(jobs=1, timeout=1.0), preload=["support.planted"]) as pool:
        found = outcomes(pool, ["hang", "after"])
    error = found[0]
    assert isinstance(error, BackendTimeout)
    assert error.message == "no answer within 1 s; the process was killed"
    assert found[1] == "fine after"


@pytest.mark.parametrize("misdeed", ["hang", "exit", "raise", "break", "allocate"])
def test_what_was_handed_over_outlives_its_process(misdeed: str) -> None:
    with Pool(Limits(jobs=1, timeout=2.0, memory=4 * GIB), preload=["support.planted"]) as pool:
        [failed, fine] = pool.call_all("support.planted:find_and", [misdeed, "well"])
        [later] = pool.call_all("support.planted:act", [misdeed])
    assert isinstance(failed.value, BackendFailed)
    assert [msgspec.msgpack.decode(one) for one in failed.so_far] == [{"found": 1}, {"found": 2}]
    # What returned says it all, and what others found is not taken for its own.
    assert isinstance(fine.value, bytes)
    assert not fine.so_far
    assert not later.so_far


def test_stray_output_does_not_reach_the_channel(pool: Pool, capfd: pytest.CaptureFixture[str]) -> None:
    assert only(pool, "print") == "printed"
    assert capfd.readouterr() == ("", "")


def test_the_log_keeps_the_last_lines_only(pool: Pool) -> None:
    log = failure(pool, "chatter").log.splitlines()
    assert log[-1] == "line 99999"
    assert len(log) == 20


def test_the_log_of_a_task_does_not_show_its_predecessor(pool: Pool) -> None:
    found = outcomes(pool, ["print", "exit"])
    error = found[1]
    assert isinstance(error, BackendCrashed)
    assert "stray" not in error.log


def test_a_worker_that_cannot_start_is_no_fault_of_a_task() -> None:
    with (
        Pool(Limits(), preload=["no_such_package"]) as pool,
        pytest.raises(BackendCrashed, match="did not start"),
    ):
        outcomes(pool, ["a"])


@pytest.mark.parametrize(("deaths", "fate"), [(2, "fine"), (3, "lost"), (4, "lost")])
def test_workers_killed_while_they_start(
    deaths: int, fate: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As by a system that is out of memory: the process has no say in it.
    (tmp_path / "left").write_text(str(deaths))
    monkeypatch.setenv("DYING_IMPORT", str(tmp_path / "left"))
    with Pool(Limits(jobs=1, timeout=20), preload=["support.dying_import"]) as pool:
        first, second = outcomes(pool, ["a", "b"]).values()
    assert second == "fine b"
    if fate == "fine":
        assert first == "fine a"
    else:
        assert isinstance(first, BackendOutOfMemory)
        assert "did not start: killed by SIGKILL" in first.message


def test_an_unpicklable_function_name_is_an_error_of_the_task(pool: Pool) -> None:
    error = outcomes(pool, [1], "support.planted:absent")[0]
    assert isinstance(error, BackendCrashed)
    assert "absent" in error.message


def test_a_worker_that_dies_between_two_tasks_costs_none(pool: Pool) -> None:
    [before] = outcomes(pool, [0], "support.planted:process_id").values()
    assert isinstance(before, int)
    os.kill(before, signal.SIGKILL)
    while is_alive(before):
        time.sleep(0.01)
    [after] = outcomes(pool, [0], "support.planted:process_id").values()
    assert isinstance(after, int)
    assert after != before


def test_garbage_on_the_channel_is_the_end_of_the_worker(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hlotool.system.process._LAST_WORDS", 0.1)
    found = outcomes(pool, ["scribble", "after"])
    error = found[0]
    assert isinstance(error, BackendCrashed)
    assert error.message == "the process lost its channel and was killed"
    assert found[1] == "fine after"


def test_a_worker_that_takes_for_ever_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hlotool.system.pool.START_LIMIT", 0.2)
    with (
        Pool(Limits(), preload=["support.slow_import"]) as pool,
        pytest.raises(BackendCrashed, match=r"did not start: no answer within 0\.2 s"),
    ):
        outcomes(pool, ["a"])


def test_close_leaves_no_process_behind() -> None:
    with Pool(Limits(jobs=2, timeout=20)) as pool:
        pids = {
            pid
            for pid in outcomes(pool, range(4), "support.planted:process_id").values()
            if isinstance(pid, int)
        }
        events = pool.run("support.planted:act", ["hang", "hang"])
        assert isinstance(next(events), Started)
    assert pids
    assert not any(is_alive(pid) for pid in pids)


ORPHANING = """
import os, sys, msgspec
from hlotool.system.executor import Done, Limits
from hlotool.system.pool import Pool
pool = Pool(Limits(jobs=1))
done = next(e for e in pool.run("support.planted:process_id", [0]) if isinstance(e, Done))
print(msgspec.msgpack.decode(done.value), flush=True)
next(pool.run("support.planted:act", ["hang"]))
os._exit(0)
"""


def test_a_busy_worker_ends_with_its_parent() -> None:
    """The parent dies without any chance to clean up."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    parent = subprocess.run(
        [sys.executable, "-c", ORPHANING], env=environment, stdout=subprocess.PIPE, check=True, timeout=HUNG
    )
    worker = int(parent.stdout)
    deadline = time.monotonic() + HUNG
    while is_alive(worker) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_alive(worker)


def test_workers_share_the_cores_and_keep_their_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "usable_cores", lambda: 8)
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    environment = worker_environment(jobs=4)
    assert environment["OPENBLAS_NUM_THREADS"] == "1"
    assert environment["HLOTOOL_THREADS"] == "2"
    assert environment["OMP_NUM_THREADS"] == "3"
    assert int(environment["MALLOC_TRIM_THRESHOLD_"]) > int(environment["MALLOC_MMAP_THRESHOLD_"])


def test_a_worker_says_what_it_is_busy_with() -> None:
    heard: list[tuple[int, str]] = []
    with Pool(Limits(1)) as pool:
        pool.listener = lambda index, text: heard.append((index, text))
        pool.call_all("hlotool.system.worker:tell", ["judging", "searching"])
    assert sorted(heard) == [(0, "judging"), (1, "searching")]


def test_a_task_for_which_no_processor_was_free_gets_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def put_off(worker: WorkerProcess) -> bool:
        asked.append(len(asked) < 3)
        worker.deadline = time.monotonic() + 0.01
        return asked[-1]

    monkeypatch.setattr(WorkerProcess, "put_off", put_off)
    with Pool(Limits(jobs=1, timeout=0.01), preload=["support.planted"]) as pool:
        assert isinstance(failure(pool, "hang"), BackendTimeout)
    # A worker that has not finished its imports by then is asked about, too.
    assert asked[:4] == [True, True, True, False]
