"""Parts of the suite judge what their processes left: the processes here are scripts that leave just that."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu import parts
from benchmarks.gpu.lines import LATE, Limits, lines_of, main_command
from benchmarks.gpu.sanitizers import sanitizers
from benchmarks.gpu.work import TESTS, Settings, Work

ROOT = Path(__file__).resolve().parents[2]

_FUZZ = """
import sys, time
from benchmarks.gpu.lines import Reporter
report = Reporter()
for item in sys.argv[3:]:
    report.begin(item)
    if item in {bad}:
        report.fail(item, "BackendCrashed: it died")
    elif item == "{slow}":
        time.sleep(60)
    else:
        report.add(item, fusions=12, differing={differing})
    report.done(item)
"""


def _work(seconds: float, batches: int = 1) -> Work:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    settings = Settings("cuda", batches=batches, environment=environment)
    return Work("part", settings, {}, time.monotonic() + seconds, lambda: None)


def _scripted(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Whatever is started: a script gets what follows the options."""

    def command(module: str, *arguments: object) -> list[str]:
        return [sys.executable, "-c", script, *map(str, arguments)]

    monkeypatch.setattr(parts, "main_command", command)


def _fuzz(monkeypatch: pytest.MonkeyPatch, seconds: float = 30, **script: Any) -> dict[str, Any]:
    given = {"bad": [], "slow": "", "differing": {}, **script}
    _scripted(monkeypatch, _FUZZ.format(**given))
    work = _work(seconds, batches=3)
    parts.fuzz(work)
    return work.part


def test_random_fusions_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    part = _fuzz(monkeypatch)
    assert (part["state"], part["reason"]) == ("passed", "36 fusions, equal to the bit")


def test_random_fusions_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    part = _fuzz(monkeypatch, differing={"5": 2})
    assert part["state"] == "failed"
    assert part["differing"] == {"0": {"5": 2}, "1": {"5": 2}, "2": {"5": 2}}
    assert "results in 3 batches differ" in part["reason"]


def test_the_end_of_the_time_is_no_failure_of_random_fusions(monkeypatch: pytest.MonkeyPatch) -> None:
    part = _fuzz(monkeypatch, seconds=2, slow="1")
    assert (part["state"], part["reason"]) == ("passed", "12 fusions, equal to the bit")


def test_a_batch_that_failed_counts_when_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    part = _fuzz(monkeypatch, seconds=2, bad=["0"], slow="2")
    assert part["state"] == "failed"
    assert "it died" in part["reason"]


_TESTS = """
import os, pytest, time
def test_that_passes(): pass
@pytest.mark.alone
def test_alone(): pass
def test_that_is_skipped(): pytest.skip("no GPU")
"""
_BAD = """
def test_that_fails(): assert 1 == 2
def test_that_hangs(): time.sleep(500)
def test_that_dies(): os.abort()
def test_behind_them(): pass
"""


def _tests(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str, seconds: float = 60) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    (folder / "test_it.py").write_text(text, encoding="utf-8")
    (folder / "conftest.py").write_text(
        "def pytest_configure(config):\n"
        "    for name in ('alone', 'slow'): config.addinivalue_line('markers', name)\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(parts, "TESTS", folder)
    work = _work(seconds)
    parts.tests(work)
    return work.part


def test_tests_that_pass(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    part = _tests(monkeypatch, tmp_path / "tests", _TESTS)
    assert (part["state"], part["reason"]) == ("passed", "2 passed, 1 skipped")
    skipped = next(found for name, found in part["tests"].items() if "skipped" in name)
    assert "no GPU" in skipped["said"]


def test_a_test_that_hangs_or_dies_costs_no_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(parts, "_TEST", 8)
    start = time.monotonic()
    part = _tests(monkeypatch, tmp_path / "tests", _TESTS + _BAD, seconds=400)
    assert time.monotonic() - start < 300
    assert part["state"] == "failed"
    assert part["reason"].startswith("3 passed, 1 skipped, 3 failed: ")
    failed = {
        n.rpartition("::")[2]: found["failed"] for n, found in part["tests"].items() if "failed" in found
    }
    assert set(failed) == {"test_that_fails", "test_that_hangs", "test_that_dies"}
    assert "assert 1 == 2" in failed["test_that_fails"]
    assert failed["test_that_hangs"].startswith("no news in 8 s")
    assert failed["test_that_dies"].startswith("died of SIGABRT")


@pytest.mark.parametrize("seconds", [0.1, 3])
def test_tests_that_are_late(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seconds: float) -> None:
    """While they are listed, or later: nothing has failed."""
    hanging = "import time\ndef test_it(): time.sleep(60)"
    part = _tests(monkeypatch, tmp_path / "tests", hanging, seconds)
    assert part["state"] == "unfinished"
    assert part["reason"] in (LATE, "no time left for test_it.py::test_it")


def test_only_skipped_tests_are_skipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    part = _tests(monkeypatch, tmp_path / "tests", "import pytest\ndef test_it(): pytest.skip('no GPU')")
    assert (part["state"], part["reason"]) == ("skipped", "1 skipped")


def test_tests_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    part = _tests(monkeypatch, tmp_path / "tests", "import nonsense_that_is_not_there")
    assert part["state"] == "failed"
    assert "nonsense_that_is_not_there" in part["reason"]


def test_no_tests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(parts, "TESTS", tmp_path / "none")
    work = _work(10)
    parts.tests(work)
    assert work.part == {"state": "skipped", "reason": "there is no tests/gpu"}


def test_the_tests_of_a_device_are_all_listed() -> None:
    """With no plug-in of pytest, as on a machine that has none: which of them need the device alone."""
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }  # fmt: skip
    (line,) = lines_of(
        main_command("testing", "--list", TESTS), Limits(time.monotonic() + 60, 60), environment
    )
    alone = json.loads(line)["about"]["tests"]
    assert len(alone) > 60
    assert all(name.startswith("tests/gpu/") for name in alone)
    assert {name.rpartition("::")[2] for name, is_alone in alone.items() if is_alone} == {
        "test_updates_in_a_loop_happen_in_place",
        "test_what_does_not_fit_is_one_error_and_the_device_goes_on",
    }


def test_sanitizers_only_watch_a_gpu() -> None:
    work = _work(10)
    sanitizers(work)
    assert work.part["state"] == "skipped"


_SMOKE = """
import sys
from benchmarks.gpu.lines import Reporter
report = Reporter()
for item in sys.argv[1:]:
    if item not in "--backend cuda --copied 1073741824".split():
        report.begin(item)
        state = "failed" if item in {bad} else "skipped" if item in {missing} else "passed"
        report.add(item, state=state, said=item + " says so")
        if item == "{dies}":
            sys.exit("for no reason")
        report.done(item)
"""


def _smoke(monkeypatch: pytest.MonkeyPatch, **script: Any) -> Work:
    given = {"bad": [], "missing": ["g++"], "dies": "", **script}
    _scripted(monkeypatch, _SMOKE.format(**given))
    work = _work(30)
    parts.smoke(work)
    return work


def test_what_everything_needs_works(monkeypatch: pytest.MonkeyPatch) -> None:
    work = _smoke(monkeypatch)
    assert (work.part["state"], work.part["blocked"]) == ("passed", "")
    assert work.backend == "cuda"


def test_one_compiler_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    work = _smoke(monkeypatch, bad=["nvrtc"])
    assert (work.part["state"], work.part["blocked"]) == ("failed", "")
    assert work.part["reason"] == "nvrtc: nvrtc says so"
    assert work.backend == "cuda:compiler=nvcc"
    assert _smoke(monkeypatch, bad=["nvcc"]).backend == "cuda"


def test_xla_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    work = _smoke(monkeypatch, dies="xla")
    assert (work.part["state"], work.part["blocked"]) == ("failed", "")
    assert work.part["rows"]["xla"]["said"].startswith("ended with status 1: for no reason")


@pytest.mark.parametrize(
    ("bad", "missing", "blocked"),
    [
        (["context"], ["nvrtc", "nvcc", "g++"], "context: context says so"),
        (["nvrtc", "nvcc"], ["g++"], "nvrtc: nvrtc says so; nvcc: nvcc says so"),
        (["nvrtc"], ["nvcc", "g++"], "nvrtc: nvrtc says so"),
        ([], ["nvrtc", "nvcc", "g++"], "nvrtc: nvrtc says so; nvcc: nvcc says so; g++: g++ says so"),
    ],
)
def test_nothing_else_is_run(
    monkeypatch: pytest.MonkeyPatch, bad: list[str], missing: list[str], blocked: str
) -> None:
    assert _smoke(monkeypatch, bad=bad, missing=missing).part["blocked"] == blocked


_MEASURE = """
import sys
from benchmarks.gpu.lines import Reporter
report = Reporter()
known = {"speed": {"median": 1.0}, "xla": {"xla": {"missing": "it"}}}
known["accuracy"] = {"relative": 0, "misfits": 0}
what = next(word for word in sys.argv if word in known)
for case in sys.argv[sys.argv.index(what) + 1:]:
    report.begin(case)
    if (what, case) == ("DIES", "bias_f32"):
        sys.exit("it dies")
    report.add(case, **known[what])
    report.done(case)
"""


@pytest.mark.parametrize(("dies", "compared"), [("speed", ["sort_f32"]), ("xla", ["bias_f32", "sort_f32"])])
def test_what_crashed_is_not_run_again(
    monkeypatch: pytest.MonkeyPatch, dies: str, compared: list[str]
) -> None:
    """Of ours; that XLA died of a case says nothing."""
    _scripted(monkeypatch, _MEASURE.replace("DIES", dies))
    settings = Settings(
        "cuda", xla="gpu", cases=("bias_f32", "sort_f32"), environment=_work(1).settings.environment
    )
    cases: dict[str, dict[str, Any]] = {}
    states = {}
    for part in (parts.speed, parts.xla, parts.accuracy):
        work = Work(part.__name__, settings, {}, time.monotonic() + 30, lambda: None, {}, cases)
        part(work)
        states[part.__name__] = work.part["state"]
    assert states == {"speed": "passed", "xla": "passed", "accuracy": "passed", dies: "failed"}
    assert sorted(name for name, found in cases.items() if "relative" in found) == compared
    assert cases["bias_f32"]["failed"] == f"{dies}: ended with status 1: it dies"
