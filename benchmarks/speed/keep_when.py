"""What `exec --keep-when` adds to a training, and whether what it should keep is kept.

    JAX_PLATFORMS=cpu python -m benchmarks.speed.keep_when [--rounds N] [--json]

Five hundred steps of a small transformer with Adam, alone and under `exec`, in turns. `longer` is the loop's
time under `exec` beside that alone, of the fastest round of each, by the clock and in the processors' time
of the process; the program's start and the replay at the end are not in it. A batch has a NaN at step 300,
from which everything is NaN; in a last round the program kills itself at step 400.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

_SCRIPT = """
import functools, os, signal, sys, time
import jax, jax.numpy as jnp, numpy as np

WIDTH, LAYERS, BATCH, LENGTH, WORDS = 128, 2, 16, 64, 256

def init(key):
    keys = iter(jax.random.split(key, 6 * LAYERS + 2))
    def w(*dims):
        return jax.random.normal(next(keys), dims) * 0.02
    layers = [
        {
            "qkv": w(WIDTH, 3 * WIDTH), "out": w(WIDTH, WIDTH), "up": w(WIDTH, 4 * WIDTH),
            "down": w(4 * WIDTH, WIDTH),
        }
        for _ in range(LAYERS)
    ]
    return {"embed": w(WORDS, WIDTH), "head": w(WIDTH, WORDS), "layers": layers}

def norm(x):
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

def loss_of(p, tokens, weights):
    x = p["embed"][tokens] * weights[..., None]
    mask = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    for layer in p["layers"]:
        q, k, v = jnp.split(norm(x) @ layer["qkv"], 3, -1)
        q, k, v = (a.reshape(BATCH, LENGTH, 4, -1) for a in (q, k, v))
        scores = jnp.einsum("blhd,bmhd->bhlm", q, k) / 32**0.5
        a = jax.nn.softmax(jnp.where(mask, scores, -1e9), -1)
        x = x + jnp.einsum("bhlm,bmhd->blhd", a, v).reshape(BATCH, LENGTH, WIDTH) @ layer["out"]
        x = x + jax.nn.gelu(norm(x) @ layer["up"]) @ layer["down"]
    logits = norm(x) @ p["head"]
    return -jnp.take_along_axis(jax.nn.log_softmax(logits)[:, :-1], tokens[:, 1:, None], -1).mean()

@functools.partial(jax.jit, DONATED)
def train_step(state, tokens, weights):
    p, m, v, n = state
    loss, g = jax.value_and_grad(loss_of)(p, tokens, weights)
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
    p = jax.tree.map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), p, m, v)
    return (p, m, v, n + 1), loss

rng = np.random.default_rng(0)
p = init(jax.random.key(0))
zeros = jax.tree.map(jnp.zeros_like, p)
state = (p, zeros, jax.tree.map(jnp.zeros_like, p), jnp.int32(0))
tokens = rng.integers(0, WORDS, (BATCH, LENGTH), np.int32)
for step in range(1, 501):
    weights = np.ones((BATCH, LENGTH), np.float32)
    if step == 300:
        weights[0, 0] = np.nan
    if step == KILLED:
        os.kill(os.getpid(), signal.SIGKILL)
    state, loss = train_step(state, tokens, weights)
    if step == 3:  # everything is compiled
        jax.block_until_ready(state)
        began, worked = time.perf_counter(), time.process_time()
    if step % 20 == 0:
        float(loss)
jax.block_until_ready(state)
seconds, work = time.perf_counter() - began, time.process_time() - worked
sizes = sum(x.nbytes for x in jax.tree.leaves(state))
print("loop", seconds, work, sizes, file=sys.stderr)
"""


def loop(command: list[str]) -> tuple[list[float], str]:
    """Seconds of the loop by the clock and of processors, bytes of the state, where it ended; stdout."""
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "JAX_PLATFORMS": "cpu"})
    line = next((line.split() for line in done.stderr.splitlines() if line.startswith("loop ")), None)
    return [float(word) for word in line[1:]] if line else [], done.stdout


def kept(out: str) -> dict[str, Any]:
    """What the record says of the event."""
    record = json.loads(out)
    [event] = [event for event in record["events"] if event["condition"] == "nan"]
    return {key: event[key] for key in ("execution", "is_kept", "again", "verdict")} | {
        "status": record["program"]["status"],
        "judged": len(record["run"]["modules"]),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, donated in (("", ""), ("donated", "donate_argnums=0")):
            script = Path(folder, f"train_{name}.py")
            text = _SCRIPT.replace("DONATED", donated)
            script.write_text(text.replace("KILLED", "0"), encoding="utf-8")
            program = [sys.executable, str(script)]
            watched = [sys.executable, "-m", "hlotool", "exec", "--json", "--only", "train_step"]
            watched += ["--keep-when", "nan|inf|jump:5", "--"]
            alone, under, out = [], [], ""
            for _ in range(asked.rounds):
                alone.append(loop(program)[0])
                found, out = loop([*watched, *program])
                under.append(found)
            script.write_text(text.replace("KILLED", "400"), encoding="utf-8")
            began = time.perf_counter()
            _, killed = loop([*watched, *program])
            figures[name or "not donated"] = {
                "state_bytes": int(alone[0][2]),
                "step_ms": [round(1000 * min(one[n] for one in alone) / 497, 1) for n in (0, 1)],
                "alone": [[round(x, 2) for x in one[:2]] for one in alone],
                "under": [[round(x, 2) for x in one[:2]] for one in under],
                "longer": [
                    round(min(one[n] for one in under) / min(one[n] for one in alone) - 1, 4) for n in (0, 1)
                ],
                "nan": kept(out),
                "killed": kept(killed) | {"whole_seconds": round(time.perf_counter() - began, 1)},
            }
            print(json.dumps(figures), file=sys.stderr, flush=True)
    print(json.dumps(figures, indent=None if asked.json else 2))


if __name__ == "__main__":
    main()
