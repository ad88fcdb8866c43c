"""What `hlotool exec` adds to a training script: to the script alone, to the same with dump flags, and to a
replay of its dump.

    JAX_PLATFORMS=cpu python -m benchmarks.speed.exec_cost [SCRIPT] [--python PYTHON] --repeats 3 [--json]

`longer` is the time of the program under `exec` beside that with the flags alone, by the clock. The others
are processor time of all processes: `beside` that of the whole command beside the script alone, `whole` that
beside the program with flags and a replay of its dump afterwards. Medians of runs in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
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


def timed(command: list[str], **variables: str) -> tuple[float, float, str]:
    """Seconds by the clock, of the processor, and stdout of a command that may find something wrong."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command, env=os.environ | variables, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, used, done.stdout.decode()


def measure(program: list[str], folder: Path) -> dict[str, float]:
    """One round: alone, with flags, the replay of that, and the command that does both."""
    hlotool = [sys.executable, "-m", "hlotool"]
    dump = folder / "dump"
    _, alone, _ = timed(program)
    clock, flags, _ = timed(program, XLA_FLAGS=_FLAGS.format(dump))
    for path in sorted(dump.glob("*snapshot*.pb"), key=os.path.getmtime):
        module = path.name.partition(".snapshot.")[0]
        first = min(dump.glob(f"{module}.snapshot.*.pb"), key=os.path.getmtime)
        if path != first:
            path.unlink()
    _, replay, _ = timed([*hlotool, "run", str(dump), "--json", "--no-resume", "--no-cache"])
    _, whole, out = timed([*hlotool, "exec", "--json", "--", *program])
    longer = json.loads(out)["program"]["seconds"] / clock
    return {
        "alone": alone, "flags": flags, "replay": replay, "exec": whole,
        "longer": longer, "beside": whole / alone, "whole": whole / (flags + replay),
    }  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("script", nargs="?", help="in place of the one in here")
    parser.add_argument("--python", default=sys.executable, help="runs the script")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        script = options.script
        if script is None:
            script = str(Path(folder, "train.py"))
            Path(script).write_text(_SCRIPT.format(steps=options.steps), encoding="utf-8")
        for number in range(options.repeats):
            own = Path(folder, str(number))
            own.mkdir()
            rounds.append(measure([options.python, script], own))
    middle = {key: round(statistics.median(one[key] for one in rounds), 2) for key in rounds[0]}
    print(json.dumps(middle, indent=None if options.json else 2))


if __name__ == "__main__":
    main()
