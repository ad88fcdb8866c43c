"""Which executions of a long run stay for what their results show."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from hlotool.ir.arrays import Array, Literal, dtype_of
from hlotool.ir.types import ArrayShape, ElementType, TupleShape
from hlotool.parser.proto.schema import message_class
from hlotool.parser.proto.values import write_literal
from hlotool.runs.capture import watch as watching
from hlotool.runs.capture.keeping import Keeper, parse_conditions
from hlotool.runs.capture.results import float_outputs
from hlotool.runs.capture.watch import Watch

_STEP, _OTHER = (Path("process_1"), 6), (Path("process_1"), 4)


def _run(keeper: Keeper, losses: Sequence[float], size: int = 1) -> set[int]:
    """A training of which each step returns a weight and a loss; the executions that are left at its end."""
    left = set()
    for number, loss in enumerate(losses, start=1):
        outputs: dict[tuple[int, ...], Array] = {
            (0,): np.ones(2, np.float32),
            (1,): np.array(loss, np.float32),
        }
        left.add(number)
        left -= set(map(int, keeper.see(_STEP, number, str(number), size, outputs)))
    return left - set(map(int, keeper.end(_STEP)))


def _found(keeper: Keeper) -> list[tuple[str, int, str]]:
    return [(event.condition, event.execution, event.output) for _, event in keeper.events]


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("conditions", "losses", "events", "left"),
    [
        ("nan", [1, 1, 1, 1, NAN, 1], [5], {3, 4, 5}),
        ("nan", [1, 1, 1, NAN, NAN, NAN], [4], {2, 3, 4}),  # only where it begins
        ("nan", [1, NAN, 1, 1, 1, NAN], [2, 6], {1, 2, 4, 5, 6}),
        ("inf", [1, NAN, 1, -INF], [4], {2, 3, 4}),
        ("jump:5", [1, 1, 1, 1, 1, 4.9, -5.1, 1], [7], {5, 6, 7}),
        ("jump:5", [1, 1, 1, 1, 9], [], {3, 4, 5}),  # too few values before it
        ("jump:5", [0] * 6 + [1], [], {5, 6, 7}),  # nothing is five times 0
        ("jump:5", [NAN, 1, 1, 1, 1, 1, NAN, INF], [8], {6, 7, 8}),
        ("jump:2", [1] * 20 + [9] * 21 + [19], [21, 42], {19, 20, 21, 40, 41, 42}),
        ("every:3", [1] * 8, [3, 6], {3, 6}),  # a sample has no history
        ("nan|every:3", [1, 1, 1, NAN], [3, 4], {2, 3, 4}),
    ],
)
def test_events_and_what_stays(
    conditions: str, losses: list[float], events: list[int], left: set[int]
) -> None:
    keeper = Keeper(parse_conditions(conditions), last=2, most_bytes=1000)
    assert _run(keeper, losses) == left
    assert [event.execution for _, event in keeper.events] == events
    assert {event.output for _, event in keeper.events} <= {"out[1]", ""}


def test_the_bytes_are_bounded() -> None:
    """What waits goes first; then new events are named, and not kept."""
    keeper = Keeper(parse_conditions("nan"), last=3, most_bytes=35)
    assert _run(keeper, [1, 1, 1, 1, NAN, 1, NAN], size=10) == {3, 4, 5}
    assert [event.is_kept for _, event in keeper.events] == [True, False]


def test_modules_are_apart() -> None:
    """Values of one are no history of another, and its executions push none of the other out."""
    keeper = Keeper(parse_conditions("jump:5|nan"), last=1, most_bytes=100)
    gone = []
    for number in range(1, 9):
        gone += keeper.see(_STEP, number, f"a{number}", 1, {(): np.array(100.0)})
        gone += keeper.see(_OTHER, number, f"b{number}", 1, {(): np.array(1.0)})
    assert keeper.events == []
    assert sorted(gone) == [f"{module}{number}" for module in "ab" for number in range(1, 7)]


def test_an_execution_without_a_result_is_counted() -> None:
    keeper = Keeper(parse_conditions("nan|every:2"), last=1, most_bytes=100)
    keeper.see(_STEP, 1, "1", 1, None)
    keeper.see(_STEP, 2, "2", 1, {})  # it has integers alone
    assert (keeper.without_result, _found(keeper)) == (1, [("every:2", 2, "")])


def test_several_outputs_are_one_event() -> None:
    keeper = Keeper(parse_conditions("nan"), last=1, most_bytes=100)
    keeper.see(_STEP, 1, "1", 1, {(0,): np.array([NAN, 1]), (1, 0): np.array(1), (1, 1): np.array(NAN)})
    [(_, event)] = keeper.events
    assert (event.output, event.others, event.detail) == ("out[0]", 1, "1 of 2 elements")


@pytest.mark.parametrize(
    "text", ["", "nan|", "nans", "jump", "jump:1", "jump:x", "every:0", "every:1.5", "nan:3"]
)
def test_what_is_no_condition(text: str) -> None:
    with pytest.raises(ValueError, match="write nan, inf"):
        parse_conditions(text)


def _snapshot(*arrays: tuple[ElementType, Array]) -> bytes:
    """An execution with a tuple for a result, as XLA writes it."""
    literals = [Literal(ArrayShape(kind, array.shape), array) for kind, array in arrays]
    proto = message_class("HloSnapshot")()
    whole = Literal(TupleShape(tuple(one.shape for one in literals)), tuple(literals))
    write_literal(proto.result, whole)
    return bytes(proto.SerializeToString())


@pytest.mark.parametrize(
    "kind", [k for k in ElementType if (k.is_inexact and k.bits >= 8)], ids=lambda kind: str(kind.value)
)
def test_results_are_read(kind: ElementType, tmp_path: Path) -> None:
    """Of every type that has a NaN or an infinity, beside integers."""
    array = np.array([1, 2, 0.5, NAN], np.float32).astype(dtype_of(kind))
    path = tmp_path / "a.pb"
    path.write_bytes(_snapshot((ElementType.S32, np.arange(3, dtype=np.int32)), (kind, array)))
    found = float_outputs(str(path), is_still=False)
    assert found is not None
    assert list(found) == [(1,)]
    assert found[1,].tobytes() == array.tobytes()
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ValueError, match="ends within"):
        float_outputs(str(path), is_still=False)


def test_an_empty_tuple_is_no_result(tmp_path: Path) -> None:
    """XLA writes it where the arguments are gone."""
    path = tmp_path / "a.pb"
    path.write_bytes(_snapshot())
    assert float_outputs(str(path), is_still=False) is None
    path.write_bytes(b"\x12\x00")  # an argument alone, so far
    with pytest.raises(ValueError, match="the result is missing"):
        float_outputs(str(path), is_still=False)
    assert float_outputs(str(path), is_still=True) is None


def test_the_files_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order where many have one time and some are missed by a look; only what is kept is left."""
    monkeypatch.setattr(watching, "_QUIET", 0.0)
    listed, seen = watching._stamped, set()

    def stamped(folder: Path) -> Iterator[tuple[os.DirEntry[str], tuple[int, int]]]:
        for entry, stamp in listed(folder):
            if entry.name in missed and entry.name not in seen:
                seen.add(entry.name)
            else:
                yield entry, stamp

    monkeypatch.setattr(watching, "_stamped", stamped)
    folder = tmp_path / "process_1"
    folder.mkdir()
    text = "HloModule jit_f\nENTRY e { ROOT x = f32[] parameter(0) }"
    (folder / "module_0006.jit_f.cpu_after_optimizations.txt").write_text(text)
    paths = [folder / f"module_0006.jit_f.snapshot.{2 * number - 8}.pb" for number in range(1, 31)]
    missed = {paths[8].name, paths[23].name}
    keeper = Keeper(parse_conditions("nan"), last=2, most_bytes=1 << 20)
    with Watch(tmp_path, 1, 0, 2, keeper) as watch:
        for number, path in enumerate(paths, start=1):
            with watch._lock:  # no look of the watch itself comes between
                values = np.array([NAN if number == 11 else 1.0], np.float32)
                path.write_bytes(_snapshot((ElementType.F32, values)))
                os.utime(path, (number // 10, number // 10))
            if number % 5 == 0:
                watch._look()
                assert len(list(folder.glob("*.pb"))) <= 3 + 3 + 5
        assert watch.take(1) == []
    assert seen == missed
    assert {Path(path): n for path, n in watch.ordinals().items()} == {paths[n - 1]: n for n in (9, 10, 11)}
    assert set(folder.glob("*.pb")) == set(paths[8:11])
