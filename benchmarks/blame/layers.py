"""Is the first wrong layer named, and is a right model left alone? `hlotool diff RUN ARRAYS --by scope`.

Each pair is a model in JAX, whose values `run --save-values` writes, and the same model in NumPy as PyTorch
computes it, written as its hooks would (`layer_models`). Half of them have one fault in one layer.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import hlotool
from benchmarks.blame.layer_models import MODELS, Hooked
from hlotool.facts import thresholds


def main() -> None:
    """Draw pairs, compare them, print what was named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20, help="pairs with a fault, and as many without")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    rng = random.Random(asked.seed)
    rows = []
    for number in range(asked.cases):
        for is_planted in (True, False):
            row = compared(list(MODELS)[number % len(MODELS)], rng, is_planted)
            rows.append(row)
            if not asked.json:
                print(" ".join(f"{name}={value}" for name, value in row.items()), flush=True)
    planted = [row for row in rows if row["planted"]]
    limit = thresholds.OTHER_LAYERS.value
    totals = {
        "pairs": len(planted),
        "named": sum(row["named"] == row["planted"] for row in planted),
        "unplanted": len(rows) - len(planted),
        "accused": sum(bool(row["named"]) for row in rows if not row["planted"]),
        "largest_legal_ratio": max(row["largest"] for row in rows if not row["planted"]),
        "unaligned": sum(row["unaligned"] for row in rows),
        "named_doubled": sum(row["named"] == row["planted"] and row["ratio"] > 2 * limit for row in planted),
        "accused_halved": sum(row["largest"] > limit / 2 for row in rows if not row["planted"]),
    }
    print(json.dumps(totals))


def compared(name: str, rng: random.Random, is_planted: bool) -> dict[str, Any]:
    """One pair, and what is said of it."""
    import jax

    make, faults = MODELS[name]
    seed = rng.randrange(10**6)
    model, hooked, weights, x = make(seed)
    fault = rng.choice(faults) if is_planted else ""
    arrays = Hooked(fault, 0)
    hooked(arrays, weights, x)
    # A second pass, once it is known how many layers can have the fault.
    arrays = Hooked(fault, rng.randrange(arrays._met) if is_planted else 0)
    hooked(arrays, weights, x)
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "model.mlir")
        program.write_text(jax.jit(model).lower(weights, x).as_text(debug_info=True))
        given = [np.asarray(leaf) for leaf in jax.tree.leaves((weights, x))]
        hlotool.replay(str(program), inputs=given, save_values=str(Path(folder, "run")), further_sets=False)
        hooks = Path(folder, "hooks")
        hooks.mkdir()
        for array, value in arrays.arrays.items():
            np.save(hooks / f"{array}.npy", value)
        result = hlotool.diff(str(Path(folder, "run")), str(hooks), by="scope")
    layers = result.record.layers
    assert layers is not None
    ratios = [row.ratio for row in layers.layers if row.ratio is not None]
    first = layers.layers[layers.first] if layers.first is not None else None
    return {
        "model": name,
        "seed": seed,
        "fault": fault or "none",
        "planted": arrays.planted,
        "named": first.right.partition(".")[2] if first is not None else "",
        "layer": first.name if first is not None else "",
        "ratio": math.inf if first is None or first.ratio is None else first.ratio,
        "largest": max(ratios, default=0.0),
        "aligned": len(layers.layers),
        "unaligned": len(result.record.only_right),
    }


if __name__ == "__main__":
    main()
