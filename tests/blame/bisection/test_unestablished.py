"""Directories that cannot be judged, in many ways: never healthy, never exit 0, but with a bracket."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from hlotool.blame.bisection.directory import Findings, bisect_directory
from hlotool.blame.bisection.stages import StageOracle
from hlotool.blame.steps import Steps
from hlotool.errors import ExitCode
from hlotool.interface.cli.main import main
from hlotool.interface.report.command_records import bisect_exit_code
from hlotool.runs.options.kept import PRELOAD, ReplayOptions
from hlotool.runs.task import Task
from hlotool.sources.directory import open_dump
from hlotool.system.executor import Limits
from hlotool.system.pool import Pool

STAGES = 8

PROGRAM = """HloModule jit_f
ENTRY main {
  x = f32[4] parameter(0)
  big = f32[4] constant({1e30, 1e30, 1e30, 1e30})
  small = f32[4] constant({1e-30, 1e-30, 1e-30, 1e-30})
  table = f32[12] constant({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
  part = f32[4] slice(table), slice={[4:8]}
  y = f32[4] multiply(x, part)
  ONE
  TWO
  ROOT w = f32[4] multiply(v, THREE)
}
"""


def text(two: str = "v = f32[4] multiply(u, small)", three: str = "big") -> str:
    one = "u = f32[4] multiply(y, big)"
    return PROGRAM.replace("ONE", one).replace("TWO", two).replace("THREE", three)


SOUND = text()
UNKNOWN = text('v = f32[4] custom-call(u), custom_call_target="nobody_knows"')
RANDOM = (
    text("v = f32[4] rng(u, u), distribution=rng_uniform")
    .replace("(u, u)", "(nil, one)")
    .replace("  v =", "  nil = f32[] constant(0)\n  one = f32[] constant(1)\n  v =")
)
CRASHING = text('v = f32[4] custom-call(u), custom_call_target="die"')
ELIDED = SOUND.replace("{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}", "{...}")
#: Of y times 1e30 times 1e30 times 1e-30 only one order stays within f32.
RANGE = text("v = f32[4] multiply(u, big)", three="small")
TORN = SOUND[: len(SOUND) // 2]
NOT_HLO = "no program at all\n"

#: What the stages from the given one on are instead.
TAILS = {
    "unknown custom call": UNKNOWN,
    "random": RANDOM,
    "crash": CRASHING,
    "torn": TORN,
    "no HLO": NOT_HLO,
    "range": RANGE,
}


@dataclass(frozen=True)
class Case:
    """A directory and how it is bisected.

    Attributes:
        name: of the case.
        stage: the text of each stage, None where the file is missing.
        exhaustive: judge every stage.
        outputs: what the program returned, if known.
    """

    name: str
    stage: Callable[[int], str | None]
    exhaustive: bool = False
    outputs: np.ndarray[tuple[int, ...], np.dtype[np.float32]] | None = None


def tail(instead: str, first: int) -> Callable[[int], str | None]:
    return lambda number: instead if number >= first else SOUND


def only(numbers: set[int], instead: str | None) -> Callable[[int], str | None]:
    return lambda number: instead if number in numbers else SOUND


def cases() -> Iterator[Case]:
    for name, instead in TAILS.items():
        for first in (1, 4, STAGES - 1):
            for exhaustive in (False, True):
                yield Case(f"{name} from {first}", tail(instead, first), exhaustive)
        # In the middle only: hidden to a search of the ends, but not judged where every stage is asked for.
        yield Case(f"{name} in the middle", only({4}, instead), True)
        yield Case(f"{name} everywhere but at the ends", only({1, 2, 3, 4, 5, 6}, instead), True)
        if name not in ("range", "random"):
            yield Case(f"{name} at all stages", tail(instead, 0))
    for exhaustive in (False, True):
        yield Case("no last stage", only({STAGES - 1}, None), exhaustive)
        yield Case("no first stage", only({0}, None), exhaustive)
        yield Case("constants left out", only(set(range(STAGES)), ELIDED), exhaustive)
        yield Case("a stage alone", only(set(range(1, STAGES)), None), exhaustive)
    yield Case("a number left out", only({3}, None), True)
    yield Case("a result of another size", tail(SOUND, 0), outputs=np.zeros(7, np.float32))


CASES = list(cases())

BACKEND = """
import os
from hlotool.backends.registry import get_backend


class Dying:
    name, version = "dying", "1"

    def compile(self, module):
        if any(i.attributes.get("custom_call_target") == "die" for i in module.instructions()):
            os.abort()
        return get_backend("numpy").compile(module)
"""


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    """Workers that know a backend which takes its process along when it meets a certain call."""
    folder = tmp_path_factory.mktemp("plug-in")
    (folder / "dying.py").write_text(BACKEND)
    (folder / "dying-1.dist-info").mkdir()
    (folder / "dying-1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: dying\nVersion: 1\n")
    entry = "[hlotool.backends]\ndying = dying:Dying\n"
    (folder / "dying-1.dist-info/entry_points.txt").write_text(entry)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        with Pool(Limits(1, 60.0), PRELOAD, "dying") as started:
            started.start()
            yield started


def written(case: Case, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    for number in range(STAGES):
        name = f"{number - 1:04d}.simplification.after_p{number - 1}.before_p{number}"
        if number in (0, STAGES - 1):
            name = "before_optimizations" if number == 0 else "cpu_after_optimizations"
        if (content := case.stage(number)) is not None:
            (folder / f"module_0000.jit_f.{name}.txt").write_text(content)
    if case.outputs is not None:
        np.savez(folder / "outputs.npz", case.outputs)
        np.savez(folder / "inputs.npz", x=np.ones(4, np.float32))
    return folder


def bisected(case: Case, folder: Path, pool: Pool) -> Findings:
    written(case, folder)
    files = [
        str(folder / name) if case.outputs is not None else None for name in ("inputs.npz", "outputs.npz")
    ]
    options = ReplayOptions(
        reference="dying", backend="dying", inputs=files[0], outputs=files[1], input_range=(1.0, 2.0)
    )
    tasks = [Task(replace(module, artefacts=()), options) for module in open_dump(folder).modules]
    oracle, findings = StageOracle(pool, Steps()), Findings()
    bisect_directory(tasks, oracle, findings, case.exhaustive)
    findings.unusable = len(oracle.unanswered)
    return findings


def test_there_are_many_cases() -> None:
    assert len(CASES) >= 50


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}{', every stage' * case.exhaustive}")
def test_what_cannot_be_judged_is_not_called_healthy(case: Case, tmp_path: Path, pool: Pool) -> None:
    found = bisected(case, tmp_path / "dump", pool)
    assert found.healthy == []
    assert found.culprits == []
    [module] = found.modules
    assert module.reason
    code = bisect_exit_code(found.culprits, found.modules, found.healthy)
    assert code not in (ExitCode.AGREE, ExitCode.MISMATCH)
    if " from " in case.name:
        assert code == ExitCode.INCONCLUSIVE


@pytest.mark.parametrize("name", TAILS)
@pytest.mark.parametrize("first", [1, 4, STAGES - 1])
def test_the_bracket_is_named(name: str, first: int, tmp_path: Path, pool: Pool) -> None:
    found = bisected(Case(name, tail(TAILS[name], first)), tmp_path / "dump", pool)
    [module] = found.modules
    # What was written: the first stage that is not `SOUND` is number `first` in the order of compilation.
    stages = open_dump(tmp_path / "dump").modules[0].stages
    start = f"right up to {stages[first - 1].numbered}, from {stages[first].numbered} on "
    assert module.reason.startswith(start)
    what = {"unknown custom call": "it cannot be run: ", "crash": "it cannot be run: ", "range": "range: "}
    assert module.reason.removeprefix(start).startswith(what.get(name, ""))
    if name == "unknown custom call":
        assert "nobody_knows" in module.reason
    if name == "crash":
        assert found.unusable >= 1


def test_a_fault_before_the_tail_that_cannot_be_run_is_found(tmp_path: Path, pool: Pool) -> None:
    wrong = SOUND.replace("multiply(u, small)", "add(u, small)")

    def stage(number: int) -> str:
        return UNKNOWN if number >= 6 else wrong if number >= 3 else SOUND

    [culprit] = bisected(Case("", stage), tmp_path / "dump", pool).culprits
    assert (culprit.pass_name, culprit.confirmed) == ("p2", True)


def test_the_command_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(Case("", tail(UNKNOWN, 4)), tmp_path / "dump")
    sound = written(Case("", tail(SOUND, 0)), tmp_path / "sound")
    assert main(["bisect", str(sound)]) == ExitCode.AGREE
    capsys.readouterr()
    assert main(["bisect", str(folder)]) == ExitCode.INCONCLUSIVE
    shown = capsys.readouterr().out
    assert "right up to 0002 simplification.after_p2" in shown
    assert "nobody_knows" in shown
    assert "without an answer" in shown
    assert main(["bisect", str(folder), str(sound)]) == ExitCode.INCONCLUSIVE
