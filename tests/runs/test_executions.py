"""Executions that are looked at within the program: what is kept, run again, repeated."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.budget import HUNG

from hlotool.parser.proto.schema import decode
from hlotool.parser.proto.values import read_literal
from hlotool.runs.capture.snapshots import field_of, is_known, snapshot

ROOT = Path(__file__).resolve().parents[2]

_ARRAYS = [
    np.array([[-1, 2, 3], [2**31 - 1, -(2**31), 0]], np.int32),
    np.array([0, 127, 128, 2**63, 2**64 - 1], np.uint64),
    np.array([-(2**63), -1, 2**62]),
    np.array([[300, 2**32 - 1]], np.uint32),
    np.array([True, False]),
    np.array([-3, 4], np.int16),
    np.array([1, np.nan, -np.inf], np.float32),
    np.array(2.5),
    np.array([1, -3], ml_dtypes.bfloat16),
    np.array([1, -3], ml_dtypes.float8_e4m3fn),
    np.array([7, -8], ml_dtypes.int4),
    np.array([1 + 2j, 3], np.complex64),
    np.zeros((0, 2), np.float16),
]


@pytest.mark.parametrize("is_tuple", [True, False])
def test_what_is_written_is_what_xla_writes(is_tuple: bool) -> None:
    results = _ARRAYS if is_tuple else _ARRAYS[:1]
    content = b"".join(snapshot(b"\x0a\x01f\x28\x96\x01", _ARRAYS, results, is_tuple, "gpu"))
    found = decode("HloSnapshot", content, "a snapshot")
    assert (found.hlo.hlo_module.name, found.hlo.hlo_module.id, found.execution_platform) == ("f", 150, "gpu")
    assert field_of(found.hlo.hlo_module.SerializeToString(), 5) == 150
    result: Any = read_literal(found.result)
    read = [*map(read_literal, found.arguments), *(result.value if is_tuple else [result])]
    for literal, array in zip(read, [*_ARRAYS, *results], strict=True):
        assert (literal.array.dtype, literal.array.shape) == (array.dtype, array.shape)
        assert literal.array.tobytes() == array.tobytes()
    assert not is_known(np.dtype("datetime64[s]"))


#: A step whose device is at times another one: in the executions of `bad`, counted with those run again.
_FAULTY = """
import jax, jax.numpy as jnp, numpy as np
x = np.linspace(1, 2, 64, dtype=np.float32)
def train_step(x): return jnp.exp(x) * 2, x.sum()
def other(x): return jnp.log(x - 1.5), x.sum()
step, wrong = (jax.jit(f).lower(x).compile() for f in (train_step, other))
class Device:
    def __init__(self, right, wrong):
        self.right, self.wrong, self.count = right, wrong, 0
    def __getattr__(self, name):
        return getattr(self.right, name)
    def execute_sharded(self, *arguments):
        self.count += 1
        return (self.wrong if self.count in {bad} else self.right).execute_sharded(*arguments)
run = step._executable.unsafe_call
run.xla_executable = Device(run.xla_executable, wrong._executable.unsafe_call.xla_executable)
for n in range(6):
    y, total = step(x)
    jax.block_until_ready(y)
print("total", float(total))
"""


def executed(tmp_path: Path, source: str, *options: str) -> dict[str, Any]:
    """The record of `exec --only train_step` of a program."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    environment["HLOTOOL_CACHE"] = str(tmp_path / "cache")
    command = [sys.executable, "-m", "hlotool", "exec", "--only", "train_step", "--json", *options, "--"]
    command += [sys.executable, "-c", source]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HUNG)
    record: dict[str, Any] = json.loads(done.stdout)
    assert record["program"]["status"] == 0, done.stderr
    return record


@pytest.mark.xla
@pytest.mark.parametrize(
    ("bad", "again"), [("{5}", "other bits: 64 of 65 elements"), ("range(5, 99)", "the same bits again")]
)
def test_a_passing_fault_is_told_from_one_that_stays(tmp_path: Path, bad: str, again: str) -> None:
    pytest.importorskip("jax")
    record = executed(tmp_path, _FAULTY.replace("{bad}", bad), "--keep-when", "nan", "--keep-last", "1")
    [event] = record["events"]
    assert (event["execution"], event["detail"], event["verdict"]) == (5, "32 of 64 elements", "wrong")
    assert event["again"] == again
    assert record["exit_code"] == 1


@pytest.mark.xla
def test_repeats_of_one_execution_are_judged_together(tmp_path: Path) -> None:
    """Of the third one, and of 20 runs of it in all three are wrong."""
    pytest.importorskip("jax")
    record = executed(tmp_path, _FAULTY.replace("{bad}", "{8, 9, 15}"), "--repeat", "20")
    [row] = [row for row in record["run"]["modules"] if row.get("repeated")]
    repeated = row["repeated"]
    assert (repeated["runs"], repeated["results"], repeated["judged"]) == (20, 2, 20)
    assert repeated["wrong"] <= 3
    assert repeated["usual"] == 20 - repeated["wrong"]
    assert (row["verdict"], row["stage_tested"], repeated["outputs"]) == ("wrong", "result", ["out[0]"])
    assert row["reason"].startswith(f"in {repeated['wrong']} of 20 runs: ")
    assert len([row for row in record["run"]["modules"] if row["stage_tested"] == "result"]) == 1


_DONATED = """
import jax, jax.numpy as jnp, numpy as np
def train_step(state, x):
    return {"w": state["w"] * 0.9 + x, "key": state["key"]}, (state["w"] * x).sum()
step = jax.jit(train_step, donate_argnums=0)
state = {"w": jnp.arange(64.0), "key": jax.random.key(1)}
batch = np.ones(64, np.float32)
for n in range(1, 8):
    batch[:] = np.nan if n == 5 else n  # in place: the program may do that once JAX has taken it
    state, loss = step(state, jnp.array(batch))
"""


@pytest.mark.xla
def test_donated_arguments_are_copied_before(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    record = executed(tmp_path, _DONATED, "--keep-when", "nan", "--keep-last", "2")
    [event] = record["events"]
    assert (event["execution"], event["again"], event["verdict"]) == (5, "the same bits again", "identical")
    executions = {row["inputs"]["description"].split(",")[0] for row in record["run"]["modules"]}
    assert executions == {f"execution {n}" for n in (3, 4, 5)}
