"""Many modules: order, failures, interruption, resumption."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from msgspec.msgpack import encode

from hlotool.judge.verdicts import Verdict
from hlotool.runs.fleet import batch
from hlotool.runs.fleet.batch import Batch, replay_all
from hlotool.runs.fleet.contents import Contents, command_key
from hlotool.runs.fleet.identity import Identity, identity_of
from hlotool.runs.fleet.known import Known
from hlotool.runs.options.kept import ReplayOptions, RunOptions
from hlotool.runs.records import ModuleRecord
from hlotool.runs.task import Task
from hlotool.sources.file_names import Kind
from hlotool.sources.locations import Source
from hlotool.sources.records import DumpModule, Stage
from hlotool.system.cache import Journal
from hlotool.system.executor import Done, Event, Executor, Limits, Started
from hlotool.system.pool import Pool
from hlotool.system.worker import resolve


@pytest.fixture(autouse=True)
def planted_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "_FUNCTION", "support.planted:rows")


class Recorder:
    """A listener that notes what it hears, and interrupts after some modules."""

    def __init__(self, patience: int = 1000) -> None:
        self.heard: list[str] = []
        self.patience = patience

    def started(self, task: Task) -> None:
        self.heard.append(f"started {task.module.name}")

    def finished(self, task: Task, rows: Sequence[ModuleRecord]) -> None:
        self.heard.append(f"finished {task.module.name}")
        self.patience -= 1
        if not self.patience:
            raise KeyboardInterrupt


def tasks(folder: Path, *names: str, **options: object) -> list[Task]:
    return [task(folder, number, name, **options) for number, name in enumerate(names)]


def task(folder: Path, number: int, name: str, **options: object) -> Task:
    path = folder / f"module_{number:04d}.{name}.before_optimizations.txt"
    if not path.exists():
        path.write_text(f"text of {name}", encoding="utf-8")
    stage = Stage(Kind.BEFORE_OPTIMIZATIONS, "before_optimizations", text=Source(str(path)))
    return Task(DumpModule(number, name, stages=(stage,)), ReplayOptions(**options))


def run(
    work: Sequence[Task], listener: Recorder | None = None, journal: Journal | None = None, **settings: object
) -> Batch:
    resume = bool(settings.pop("resume", True))
    with Pool(Limits(**{"jobs": 1, "timeout": 20.0, "memory": 4 << 30} | settings), backend="numpy") as pool:
        return replay_all(work, pool, listener or Recorder(), Known(journal), resume)


def test_rows_keep_the_order_of_the_tasks_and_failures_are_rows(tmp_path: Path) -> None:
    names = ["a", "segfault", "b", "hang", "raise", "allocate", "c"]
    done = run(tasks(tmp_path, *names), jobs=2, timeout=6.0)
    assert [row.name for row in done.records] == [f"module_{i:04d}.{name}" for i, name in enumerate(names)]
    assert [row.verdict for row in done.records] == [
        Verdict.AGREE,
        Verdict.CRASHED,
        Verdict.AGREE,
        Verdict.TIMEOUT,
        Verdict.CRASHED,
        Verdict.OUT_OF_MEMORY,
        Verdict.AGREE,
    ]
    crashed = done.records[1]
    assert crashed.error is not None
    assert crashed.error.kind == "BackendCrashed"
    assert crashed.reason == "numpy: the process died of SIGSEGV"
    assert "planted.py" in crashed.error.log
    assert crashed.path.endswith("module_0001.segfault.before_optimizations.txt")
    assert not done.interrupted


def test_the_listener_hears_everything(tmp_path: Path) -> None:
    listener = Recorder()
    run(tasks(tmp_path, "a", "b"), listener)
    assert listener.heard == ["started a", "finished a", "started b", "finished b"]


def test_an_interrupted_batch_keeps_what_is_finished_and_goes_on(tmp_path: Path) -> None:
    work = tasks(tmp_path, "a", "exit", "b", "c")
    first = run(work, Recorder(patience=2), Journal(tmp_path / "k"))
    assert first.interrupted
    assert [row.verdict for row in first.records] == [Verdict.AGREE, Verdict.CRASHED]
    listener = Recorder()
    second = run(work, listener, Journal(tmp_path / "k"))
    assert not second.interrupted
    assert [h for h in listener.heard if h.startswith("started")] == ["started b", "started c"]
    assert [h for h in listener.heard if h.startswith("finished")] == [
        f"finished {n}" for n in ("a", "exit", "b", "c")
    ]
    assert second.records[:2] == first.records
    assert len(second.records) == 4


def test_a_finished_batch_is_kept_until_its_rows_are_printed(tmp_path: Path) -> None:
    work = tasks(tmp_path, "a", "b")
    journal = Journal(tmp_path / "k")
    run(work, journal=journal)
    listener = Recorder()
    run(work, listener, Journal(tmp_path / "k"))
    assert "started a" not in listener.heard
    journal.remove()
    run(work, listener, Journal(tmp_path / "k"))
    assert "started a" in listener.heard


@pytest.mark.parametrize("misdeed", ["allocate", "kill"])
def test_what_ran_out_of_memory_is_tried_again(misdeed: str, tmp_path: Path) -> None:
    work = tasks(tmp_path, "a", misdeed, "b")
    first = run(work, Recorder(patience=3), Journal(tmp_path / "k"))
    assert [row.verdict for row in first.records][1] is Verdict.OUT_OF_MEMORY
    listener = Recorder()
    run(work, listener, Journal(tmp_path / "k"))
    assert [h for h in listener.heard if h.startswith("started")] == [f"started {misdeed}"]


def test_rows_of_another_form_are_not_believed(tmp_path: Path) -> None:
    work = tasks(tmp_path, "a")
    journal = Journal(tmp_path / "k")
    journal.add(identity_of(work[0]).exact, [{"verdict": "identical"}])
    assert run(work, journal=journal).records[0].verdict is Verdict.AGREE


def test_no_resume(tmp_path: Path) -> None:
    work = tasks(tmp_path, "a", "b")
    run(work, Recorder(patience=1), Journal(tmp_path / "k"))
    listener = Recorder()
    run(work, listener, Journal(tmp_path / "k"), resume=False)
    assert "started a" in listener.heard


def test_a_changed_module_is_run_again(tmp_path: Path) -> None:
    work = tasks(tmp_path, "a", "b", "c")
    run(work, Recorder(patience=2), Journal(tmp_path / "k"))
    Path(work[0].path).write_text("another text", encoding="utf-8")
    listener = Recorder()
    run(work, listener, Journal(tmp_path / "k"))
    assert [h for h in listener.heard if h.startswith("started")] == ["started a", "started c"]


def test_a_task_whose_files_are_gone_is_not_kept(tmp_path: Path) -> None:
    [work] = tasks(tmp_path, "a")
    assert identity_of(work).exact
    Path(work.path).unlink()
    assert identity_of(work).exact == ""


def test_keys_depend_on_what_decides(tmp_path: Path) -> None:
    inputs = tmp_path / "in.npz"
    inputs.write_bytes(b"1")
    keys = {identity_of(task(tmp_path, 0, "a")).exact, identity_of(task(tmp_path, 0, "a", seed=1)).exact}
    keys.add(identity_of(task(tmp_path, 0, "a", inputs=str(inputs))).exact)
    inputs.write_bytes(b"22")
    keys.add(identity_of(task(tmp_path, 0, "a", inputs=str(inputs))).exact)
    assert len(keys) == 4
    assert identity_of(task(tmp_path, 0, "a")).exact in keys


def test_a_command_is_its_paths_and_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dump").mkdir()
    monkeypatch.chdir(tmp_path)
    key = command_key(["dump"], RunOptions())
    assert command_key([str(tmp_path / "dump")], RunOptions()) == key
    assert command_key(["other"], RunOptions()) != key
    assert command_key(["dump"], RunOptions(only="f")) != key


class Eager(Executor):
    """Draws all arguments before the first task is over, and runs them in this process."""

    def __init__(self) -> None:
        self.notes = []
        self.listener = None
        self.ran: list[str] = []

    def run(self, function: str, arguments: Iterable[object]) -> Iterator[Event]:
        for index, argument in enumerate(list(arguments)):
            assert isinstance(argument, Task)
            self.ran.append(argument.module.name)
            yield Started(index)
            yield Done(index, encode(resolve(function)(argument)), 0.0)


@pytest.mark.parametrize(("held", "identified"), [(1 << 20, 6), (150, 9), (0, 10)])
def test_few_texts_wait_in_memory(
    held: int, identified: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are read again when the twin is over that they wait for."""
    monkeypatch.setattr(batch, "_HELD", held)
    count = 0

    def counted(task: Task, contents: Contents) -> Identity:
        nonlocal count
        count += 1
        return identity_of(task, contents)

    monkeypatch.setattr(batch, "identity_of", counted)
    names = ["a", "other", "b", "c", "d", "e"]
    work = tasks(tmp_path, *names)
    for one, name in zip(work, names):
        assert one.module.stages[0].text is not None
        operation = "negate" if name == "other" else "sine"
        Path(one.module.stages[0].text.path).write_text(
            f"HloModule {name}\n\nENTRY %{name} () -> f32[] {{\n  %c.{name} = f32[] constant(1)\n"
            f"  ROOT %{name}.1 = f32[] {operation}(%c.{name})\n}}\n",
            encoding="utf-8",
        )
    executor = Eager()
    done = replay_all(work, executor, Recorder())
    assert executor.ran == ["a", "other"]
    assert [row.name for row in done.records] == [f"module_{i:04d}.{name}" for i, name in enumerate(names)]
    assert [bool(row.twin_of) for row in done.records] == [False, False, True, True, True, True]
    assert count == identified
