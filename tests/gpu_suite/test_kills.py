"""Killed at whatever moment, the suite leaves whole files with all that was reported until then."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.kernels import needs_compiler

from benchmarks.gpu.results import Results
from benchmarks.gpu.table import markdown
from benchmarks.gpu.work import Settings

ROOT = Path(__file__).resolve().parents[2]

_CASES = ("bias_f32", "few_rows_sum_f32")
_PARTS = ("smoke", "speed", "accuracy")

#: What an item must have been found to be, by part, when the suite says that it is done.
_KEYS = {"speed": {"median", "launches", "repeats_bits"}, "accuracy": {"relative", "ulps"}}

#: Saves more and more, and says which save is over.
_SAVING = """
import sys
from pathlib import Path
from benchmarks.gpu.results import Results
from benchmarks.gpu.work import Settings
results = Results(Path(sys.argv[1]), "title", Settings("cuda"), {})
for number in range(10**6):
    results.cases[f"case{number % 400}"] = {"group": "elementwise", "number": number}
    results.save()
    print(number, flush=True)
"""


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}


def _read(folder: Path) -> tuple[dict[str, Any], str]:
    """Both files; the table is of these results, or of the ones just before."""
    results: dict[str, Any] = json.loads((folder / "gpu.json").read_text(encoding="utf-8"))
    return results, (folder / "gpu.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("seed", range(4))
def test_files_are_whole_at_any_moment(tmp_path: Path, seed: int) -> None:
    command = [sys.executable, "-c", _SAVING, str(tmp_path)]
    process = subprocess.Popen(command, env=_environment(), stdout=subprocess.PIPE, encoding="utf-8")
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(random.Random(seed).uniform(0.05, 0.5))
    process.kill()
    said = [int(line) for line in process.stdout.read().splitlines() if line.strip()]
    process.wait()
    process.stdout.close()
    results, table = _read(tmp_path)
    newest = max(found["number"] for found in results["cases"].values())
    assert newest in (said[-1], said[-1] + 1)
    assert table == markdown(results) or table == markdown(_without(results, newest))


def _without(results: dict[str, Any], number: int) -> dict[str, Any]:
    """The results before one of them came."""
    cases = {n: found for n, found in results["cases"].items() if found["number"] != number}
    if number >= 400:
        cases[f"case{number % 400}"] = {"group": "elementwise", "number": number - 400}
        cases = {name: cases[name] for name in results["cases"]}
    return {**results, "cases": cases}


def _command(folder: Path, *options: str) -> list[str]:
    command = [sys.executable, "-m", "benchmarks.gpu.suite", "--dry-run", "--backend", "cuda-emu"]
    command += ["--xla", "none", "--out", str(folder), *options]
    for name, values in (("--part", _PARTS), ("--case", _CASES)):
        command += [word for value in values for word in (name, value)]
    return command


def _done(text: str) -> list[tuple[str, str]]:
    """Part and item of each line that says that one is done."""
    return re.findall(r"^gpu-suite: (\w+): (\S+) is done$", text, re.MULTILINE)


@needs_compiler
@pytest.mark.parametrize("seed", range(3))
def test_nothing_that_was_reported_is_lost(tmp_path: Path, seed: int) -> None:
    """It is killed some moments behind its first, fifth, ninth line; once it goes on with what is left."""
    rng = random.Random(seed)
    log = tmp_path / "log"
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            _command(tmp_path), env=_environment(), stderr=errors, stdout=subprocess.DEVNULL
        )
        end = time.monotonic() + 120
        while len(_done(log.read_text(encoding="utf-8"))) <= 4 * seed and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.4))
        process.kill()
        process.wait()
    said = _done(log.read_text(encoding="utf-8"))
    results, table = _read(tmp_path)
    assert len(said) > 4 * seed
    for part, item in said:
        assert item in results["parts"][part]["done"]
        if part in _KEYS:
            assert _KEYS[part] <= results["cases"][item].keys()
            assert f"| {item} |" in table
        else:
            assert f"| {item} | {results['parts'][part]['rows'][item]['state']} |" in table
    assert table.endswith(" |\n")
    if seed == 1:
        _goes_on(tmp_path, said)


def _goes_on(tmp_path: Path, said: list[tuple[str, str]]) -> None:
    again = subprocess.run(
        _command(tmp_path, "--resume"), env=_environment(), capture_output=True, encoding="utf-8", timeout=120
    )
    assert again.returncode == 0, again.stderr
    repeated = {(part, item) for part, item in _done(again.stderr) if part != "smoke"} & set(said)
    assert repeated == set()
    results, _ = _read(tmp_path)
    assert {name: part["state"] for name, part in results["parts"].items()} == dict.fromkeys(_PARTS, "passed")
    assert all(set().union(*_KEYS.values()) <= results["cases"][name].keys() for name in _CASES)


def test_a_half_written_file_is_none_of_the_results(tmp_path: Path) -> None:
    """What a kill may leave of a write is beside the files, and the next write replaces it."""
    results = Results(tmp_path, "title", Settings("cuda"), {})
    results.save()
    (tmp_path / "gpu.json.tmp").write_text('{"title": "ti', encoding="utf-8")
    before = _read(tmp_path)
    results.save()
    assert _read(tmp_path) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gpu.json", "gpu.md"]
