"""`exec` sees results of executions whose arguments are donated, and leaves the program as it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.budget import HUNG

from hlotool.runs.capture.donation import keep_arguments

ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = """
import jax, jax.numpy as jnp
def train_step(state, x):
    return {"w": state["w"] * 0.9 + x, "key": state["key"]}, (state["w"] * x).sum()
step = jax.jit(train_step, donate_argnums=0)
state = {"w": jnp.arange(64.0), "key": jax.random.key(1)}
for n in range(4):
    state, loss = step(state, jnp.full(64, n + 1.0))
print("loss", float(loss))
"""


def test_without_jax_there_is_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax._src.pjit", None)
    assert not keep_arguments()


@pytest.mark.xla
@pytest.mark.parametrize("way", ["jit", "aot"])
def test_donated_arguments(tmp_path: Path, way: str) -> None:
    """The value is that of the program alone; the third execution has arguments and result."""
    pytest.importorskip("jax")
    source = _PROGRAM
    if way == "aot":
        source = source.replace("state, loss = step(", "state, loss = compiled(").replace(
            "for n", "compiled = step.lower(state, jnp.full(64, 1.0)).compile()\nfor n"
        )
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "HLOTOOL_CACHE": str(tmp_path / "cache")}
    environment["PYTHONPATH"] = str(ROOT)
    alone = subprocess.run(
        [sys.executable, "-c", source], env=environment, capture_output=True, text=True, timeout=HUNG
    )
    command = [sys.executable, "-m", "hlotool", "exec", "--only", "train_step", "--json", "--"]
    watched = subprocess.run(
        [*command, sys.executable, "-c", source],
        env=environment,
        capture_output=True,
        text=True,
        timeout=HUNG,
    )
    record = json.loads(watched.stdout)
    assert record["program"]["status"] == 0
    assert alone.stdout.strip() in watched.stderr
    assert "Failed to get literal" not in watched.stderr
    rows = {row["stage_tested"]: row for row in record["run"]["modules"]}
    assert rows["result"]["verdict"] in ("identical", "agree", "rounding")
    assert rows["result"]["inputs"]["description"].startswith("execution 3, captured in ")
    assert not [note for note in record["run"]["notes"] if "result was not" in note]
