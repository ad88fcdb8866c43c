"""One script as a program of its own.

    python -m benchmarks.training_steps.run_script NAME [--seed 0] [--steps 3]

The number of devices of the CPU is set before JAX starts.
"""

from __future__ import annotations

import argparse
import math
import os

from benchmarks.training_steps.catalogue import SCRIPTS
from benchmarks.training_steps.drawing import Draw


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("name", choices=sorted(SCRIPTS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=3)
    arguments = parser.parse_args()
    script = SCRIPTS[arguments.name]
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax

    jax.config.update("jax_num_cpu_devices", script.devices)
    loss = float(script.train(Draw(script.name, arguments.seed), arguments.steps))
    print(f"{script.name}: loss {loss:.6g}")
    if not math.isfinite(loss):
        raise SystemExit(f"{script.name}: a training script whose loss is {loss} measures nothing")


if __name__ == "__main__":
    main()
