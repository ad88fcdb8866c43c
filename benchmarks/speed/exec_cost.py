"""What `hlotool exec` adds to a training script with the same dump flags, and to the replay of its dump.

    JAX_PLATFORMS=cpu python -m benchmarks.speed.exec_cost --repeats 3 [--json]

`longer` is the time of the program under `exec` beside that with the flags alone; `whole` the time of the
whole command beside the program with flags and a replay of its dump afterwards. Medians of runs in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_SCRIPT = """
import jax, jax.numpy as jnp, numpy as np

def loss(weights, x, y):
    for w in weights[:-1]:
        x = jax.nn.relu(x @ w)
    return jnp.mean((x @ weights[-1] - y) ** 2)

@jax.jit
def step(weights, x, y):
    gradients = jax.grad(loss)(weights, x, y)
    return [w - 0.01 * g for w, g in zip(weights, gradients)]

keys = jax.random.split(jax.random.key(0), 4)
weights = [jax.random.normal(k, (256, 256)) * 0.05 for k in keys]
x, y = np.ones((512, 256), np.float32), np.zeros((512, 256), np.float32)
for _ in range({steps}):
    weights = step(weights, x, y)
print(float(loss(weights, x, y)))
"""

_FLAGS = "--xla_dump_to={} --xla_dump_hlo_as_text --xla_dump_large_constants --xla_dump_hlo_snapshots"


def timed(command: list[str], **variables: str) -> tuple[float, str]:
    """Seconds and stdout of a command that has to end well."""
    start = time.perf_counter()
    done = subprocess.run(
        command, env=os.environ | variables, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
    )
    return time.perf_counter() - start, done.stdout.decode()


def measure(script: Path, folder: Path) -> dict[str, float]:
    """One round: with flags, the replay of that, and the command that does both."""
    program = [sys.executable, str(script)]
    hlotool = [sys.executable, "-m", "hlotool"]
    dump = folder / "dump"
    flags, _ = timed(program, XLA_FLAGS=_FLAGS.format(dump))
    for path in sorted(dump.glob("*snapshot*.pb"), key=os.path.getmtime):
        module = path.name.partition(".snapshot.")[0]
        first = min(dump.glob(f"{module}.snapshot.*.pb"), key=os.path.getmtime)
        if path != first:
            path.unlink()
    replay, _ = timed([*hlotool, "run", str(dump), "--json", "--no-resume"])
    whole, out = timed([*hlotool, "exec", "--json", "--", *program])
    return {"flags": flags, "replay": replay, "exec": whole, "program": json.loads(out)["program"]["seconds"]}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "train.py")
        script.write_text(_SCRIPT.format(steps=options.steps), encoding="utf-8")
        for number in range(options.repeats):
            own = Path(folder, str(number))
            own.mkdir()
            rounds.append(measure(script, own))
    middle = {key: round(statistics.median(one[key] for one in rounds), 2) for key in rounds[0]}
    middle["longer"] = round(statistics.median(one["program"] / one["flags"] for one in rounds), 3)
    middle["whole"] = round(
        statistics.median(one["exec"] / (one["flags"] + one["replay"]) for one in rounds), 3
    )
    print(json.dumps(middle, indent=None if options.json else 2))


if __name__ == "__main__":
    main()
