"""Which executions of a module are kept, waited for and judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlotool.runs.capture import watch as watching
from hlotool.runs.capture.watch import Watch

_TEXT = "HloModule jit_f\nENTRY e { ROOT x = f32[] parameter(0) }"
#: A proto: field 4 with four bytes.
_MESSAGE = b"\x22\x04host"
#: Numbers of 32 bits that begin below 0, as XLA 0.10 writes them.
_FIRST = -1495075608


@pytest.fixture
def dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A process's folder with a compiled module; files are complete as soon as they are seen."""
    monkeypatch.setattr(watching, "_QUIET", 0.0)
    folder = tmp_path / "process_1"
    folder.mkdir()
    (folder / "module_0002.jit_f.cpu_after_optimizations.txt").write_text(_TEXT)
    return folder


def _execute(watch: Watch, folder: Path, *numbers: int) -> None:
    """Executions that XLA writes, each seen before the next."""
    for number in numbers:
        (folder / f"module_0002.jit_f.snapshot.{_FIRST + number}.pb").write_bytes(_MESSAGE)
        watch._look()


def _left(folder: Path) -> set[int]:
    return {int(path.name.split(".")[-2]) - _FIRST for path in folder.glob("*.pb")}


@pytest.mark.parametrize(
    ("snapshots", "passed_over", "executed", "kept"),
    [(1, 0, 4, {1: 0}), (1, 2, 4, {3: 2}), (2, 2, 9, {3: 2, 4: 3}), (1, 2, 2, {2: 1}), (0, 2, 3, {})],
)
def test_the_last_of_the_first_executions_are_judged(
    dump: Path, snapshots: int, passed_over: int, executed: int, kept: dict[int, int]
) -> None:
    """By their numbers, from 1; `kept` has the number in the file's name for each."""
    watch = Watch(dump.parent, snapshots, 0, passed_over)
    with watch:
        _execute(watch, dump, *range(executed))
    assert _left(dump) == set(kept.values())
    found = {n: int(Path(path).name.split(".")[-2]) - _FIRST for path, n in watch.ordinals().items()}
    assert found == kept


def test_more_telling_executions_are_waited_for_a_while(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(dump.parent, 1, 0, passed_over=2)
    _execute(watch, dump, 0, 1)
    assert watch.take() == []
    monkeypatch.setattr(watching, "_NO_MORE", 0.0)
    [finished] = watch.take()
    assert list(finished.captures.values()) == [2]
    assert _left(dump) == {1}
    _execute(watch, dump, 2)
    assert _left(dump) == {1}, "what comes after the choice is not kept"


def test_the_third_execution_ends_the_waiting(dump: Path) -> None:
    watch = Watch(dump.parent, 1, 0, passed_over=2)
    _execute(watch, dump, 0, 1, 2, 3)
    [finished] = watch.take()
    assert list(finished.captures.values()) == [3]
    assert _left(dump) == {2}


@pytest.mark.parametrize(("torn", "kept"), [(_MESSAGE[:4], {0}), (b"", {0}), (_MESSAGE, {1})])
def test_an_execution_that_was_cut_short_is_done_without(dump: Path, torn: bytes, kept: set[int]) -> None:
    """The program was killed while XLA wrote it."""
    with Watch(dump.parent, 1, 0, passed_over=2) as watch:
        _execute(watch, dump, 0, 1)
        (dump / f"module_0002.jit_f.snapshot.{_FIRST + 1}.pb").write_bytes(torn)
    assert _left(dump) == kept
