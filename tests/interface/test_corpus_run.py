"""`hlotool run` on the corpus: every healthy program agrees, every faulty one is found, nothing is lost."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from hlotool.errors import ExitCode
from hlotool.interface.cli.main import main

#: Directories of the corpus whose programs do not agree, and what is said of them instead.
EXPECTED = {
    "unsupported": {"host_callback", "table_lookup_elided_for_good"},
    "not comparable": {"random_stateful"},
    "not compared": {"unoptimized_snapshots", "unoptimized_snapshots_text", "unpaired"},
    "wrong": {
        "int4_product",  # a fault of XLA's
        "cumulative_window",
        "dynamic_rnn_trip_count",
        "int8_dot_rounding",
        "model_fn_opcode",
        "slices_off_by_one",
        "train_mnist_mlp_constant",
    },
}


HEALTHY = dict.fromkeys(("identical", "agree", "rounding"), "healthy")
#: The longest of those for other devices.
LONG = {"tpu/train_decoder", "gpu/train_decoder", "tpu/attention", "tpu/scan_gru"}


@pytest.fixture(scope="module")
def record(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The JSON record of one run over the corpus, by the command that the README begins with."""
    readme = (corpus.parent / "README.md").read_text(encoding="utf-8")
    [arguments] = re.findall(
        r"^hlotool (run corpus/jax corpus/tf corpus/planted) +# exits 1", readme, re.MULTILINE
    )
    result = subprocess.run(
        [sys.executable, "-m", "hlotool", *shlex.split(arguments), "--json"],
        env=os.environ | {"HLOTOOL_CACHE": str(tmp_path_factory.mktemp("cache"))},
        cwd=corpus.parent,
        capture_output=True,
        timeout=300,
    )
    found: dict[str, Any] = json.loads(result.stdout)
    assert result.returncode == found["exit_code"] == ExitCode.MISMATCH
    return found


def test_verdicts(record: dict[str, Any], corpus: Path) -> None:
    groups = defaultdict(set)
    for module in record["modules"]:
        if module["verdict"] not in ("identical", "agree", "rounding"):
            groups[module["verdict"]].add(Path(module["path"]).parts[2])
    assert groups == EXPECTED


def test_every_directory_is_there(record: dict[str, Any], corpus: Path) -> None:
    seen = {Path(m["path"]).parts[1:3] for m in record["modules"]}
    there = {
        (top, d.name) for top in ("jax", "tf", "planted") for d in (corpus / top).iterdir() if d.is_dir()
    }
    assert seen == there


@pytest.mark.parametrize("is_long", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_programs_for_other_devices(corpus: Path, capsys: pytest.CaptureFixture[str], is_long: bool) -> None:
    """No device ran them; the manifest says what comes of each, how near may depend on the processor."""
    manifest = tomllib.loads((corpus / "MANIFEST.toml").read_text(encoding="utf-8"))["directory"]
    expected = {
        entry["path"]: HEALTHY.get(entry["verdict"], entry["verdict"])
        for entry in manifest
        if entry["path"].startswith(("tpu/", "gpu/")) and (entry["path"] in LONG) == is_long
    }
    folders = [str(corpus / path) for path in expected]
    assert main(["run", *folders, "--json", "--no-resume"]) == ExitCode.AGREE
    found = {
        "/".join(Path(row["path"]).relative_to(corpus).parts[:2]): HEALTHY.get(row["verdict"], row["verdict"])
        for row in json.loads(capsys.readouterr().out)["modules"]
        if row["verdict"] != "not compared"  # what a compiler compiled on the way
    }
    assert found == expected
