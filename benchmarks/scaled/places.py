"""Programs that name places along dimensions, without a fault, with smaller sizes: false alarms.

    python -m benchmarks.scaled.places [--seed S] [--only REGEX] [--memory 100K] [--json FILE]

Slices, rows, masks, pads, rolls, updates and lookups at places that follow from the seed, lowered by JAX and
compiled by the jaxlib that is installed, are replayed before against after: as they are, and with the sizes
that fit into little memory. Compilers say places in other forms than they were given (a row becomes a slice,
a scatter an update within limits), so this is where a rule on places would accuse what is right.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

import hlotool
from benchmarks.common.programs import array
from hlotool.blame.reduction.case_worker import optimised
from hlotool.parser.reader import parse_module

#: Rows and columns of the array that most programs have.
ROWS, COLUMNS = 1024, 300
_Programs = dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]


def programs(rng: random.Random) -> _Programs:
    """Name → function and arguments, at places drawn from `rng`."""
    a, b, c = sorted(rng.sample(range(10, ROWS - 10), 3))
    j, k = sorted(rng.sample(range(10, COLUMNS - 10), 2))
    return {**_moved(a, b, c, j, k), **_masks(a, b, j), **_lookups(a, b, c), **_updates(a, b, j, k)}


def _moved(a: int, b: int, c: int, j: int, k: int) -> _Programs:
    x = array(ROWS, COLUMNS)
    flat = a * COLUMNS + j
    return {
        "slices": (lambda x: x[a:b, j:k] * 2, (x,)),
        "joined": (lambda x: jnp.concatenate([x[:-a] * 2, x[-a:] + 1]), (x,)),
        "rolled": (lambda x: jnp.roll(x, (a, j), (0, 1)) * 2, (x,)),
        "padded": (lambda x: jnp.pad(x * 2, ((a, 3), (0, 0)))[7:], (x,)),
        "padding_gradient": (jax.grad(lambda x: (jnp.pad(x, ((9, 5), (0, 0)))[8:a] ** 2).sum()), (x,)),
        "slice_gradient": (jax.grad(lambda x: (jnp.tanh(x[a:b]) ** 2).sum() + (x[c:] ** 3).sum()), (x,)),
        "reversed": (lambda x: x[::-1][:a] * 2, (x,)),
        "flat_slice": (lambda x: x.reshape(-1)[flat : flat + 5000] * 2, (x,)),
        "heads": (lambda x: x.reshape(32, 32, COLUMNS)[:17].reshape(-1, COLUMNS)[1:] * 2, (x,)),
        "split": (lambda x: sum(p.sum(0) * n for n, p in enumerate(jnp.split(x, [a, b, c]))), (x,)),
        "interleaved": (lambda x: jnp.stack([x[:512], x[512:]], 1).reshape(ROWS, COLUMNS)[a:], (x,)),
        "halves": (lambda x: jnp.concatenate([-x[..., 32:], x[..., :32]], -1) * 2, (array(200, 64),)),
        "sorted": (lambda x: jnp.sort(x, 0)[a:b], (x,)),
        "top": (lambda x: lax.top_k(x, j)[0], (x,)),
        "scanned": (lambda x: lax.scan(lambda s, r: (s * 0.5 + r, s), x[0], x)[1][a:], (x,)),
        "looped": (lambda x: lax.fori_loop(9, 9 + j, lambda i, s: s * 0.5 + x[i], x[0]), (x,)),
        "once": (lambda x: lax.fori_loop(a, a + 1, lambda i, s: s * 0.5 + x[i], x[0]), (x,)),
        "diagonal": (lambda x: jnp.diagonal(x)[j:], (array(COLUMNS, COLUMNS),)),
    }


def _masks(a: int, b: int, j: int) -> _Programs:
    x, square = array(ROWS, COLUMNS), array(COLUMNS, COLUMNS)

    # Inside of what is traced, or they would be tables.
    def rows() -> Any:
        return jnp.arange(ROWS)[:, None]

    def columns() -> Any:
        return jnp.arange(COLUMNS)[None]

    def numbers() -> Any:
        return jnp.arange(ROWS * COLUMNS)

    return {
        "below": (lambda x: jnp.where(rows() < a, x, 0), (x,)),
        "both_sides": (lambda x: jnp.where(rows() < a, x, 0) + jnp.where(rows() >= a, x, 1), (x,)),
        "between": (lambda x: jnp.where((rows() > a - 1) & (rows() <= b), 1.0, 0.0) * x, (x,)),
        "either": (lambda x: jnp.where((rows() < a) | (columns() >= j), x, 0), (x,)),
        "moved": (lambda x: jnp.where(rows() + 5 < a, x, x * 3), (x,)),
        "from_behind": (lambda x: jnp.where((ROWS - 1 - rows()) < a, x, 0), (x,)),
        "turned": (lambda x: jnp.where(rows()[::-1] < a, x, 0), (x,)),
        "floats": (lambda x: jnp.where(rows().astype("float32") < float(a), x, 0) * jnp.sin(x), (x,)),
        "flat": (lambda x: jnp.where(numbers() < a * COLUMNS + j, x.reshape(-1), 0).reshape(x.shape), (x,)),
        "folded": (
            lambda x: jnp.where(jnp.arange(ROWS).reshape(32, 32)[:, :, None] < a, x, 0),
            (array(32, 32, 9),),
        ),
        "remainder": (lambda x: jnp.where(rows() % 64 < 45, x, 0), (x,)),
        "quotient": (lambda x: jnp.where(rows() // 64 == a // 64, x, -x), (x,)),
        "even": (lambda x: jnp.where(rows() % 2 == 0, x, -x), (x,)),
        "lower": (lambda x: jnp.tril(x, k=-j), (square,)),
        "upper": (lambda x: jnp.triu(x, k=j), (square,)),
        "unit": (lambda x: x + jnp.eye(COLUMNS, k=j), (square,)),
        "band": (lambda x: jnp.where(jnp.abs(columns().T - columns()) < j, x, 0) @ x, (square,)),
        "lengths": (
            lambda x, n: jnp.where(columns() < n[:, None], x, 0),
            (array(40, COLUMNS), array(40, dtype="int32")),
        ),
        "one_hot": (lambda i: jax.nn.one_hot(i, 1000)[:, a // 2 : a], (array(77, dtype="int32"),)),
    }


def _lookups(a: int, b: int, c: int) -> _Programs:
    x, i = array(ROWS, COLUMNS), array(33, dtype="int32")
    one, table = array(dtype="int32"), jnp.array([a, 5, c])
    return {
        "row": (lambda x: jnp.take(x, jnp.array([a]), axis=0) * 2, (x,)),
        "row_from_behind": (lambda x: x[jnp.array([-a])] * 3, (x,)),
        "rows": (lambda x: x[table] * 3, (x,)),
        "rows_from_both_ends": (lambda x: x[jnp.array([-a, 5, c])] * 3, (x,)),
        "rows_clipped": (lambda x: jnp.take(x, jnp.array([a, 5000]), axis=0, mode="clip") * 3, (x,)),
        "rows_wrapped": (lambda x: jnp.take(x, jnp.array([a, 5000]), axis=0, mode="wrap") * 3, (x,)),
        "embedding": (lambda w, i: w[i] * 2 + w[a], (x, i)),
        "embedding_clipped": (lambda w, i: w[jnp.clip(i, 3, c)] * 2, (x, i)),
        "embedding_gradient": (jax.grad(lambda w, i: (w[i] ** 2).sum()), (x, i)),
        "mixed": (lambda x, i: x[i] + x[a] + x[-b], (x, one)),
        "window": (lambda x, i: lax.dynamic_slice(x, (i, 100), (37, 50)) * 2, (x, one)),
        "window_limited": (lambda x, i: lax.dynamic_slice(x, (jnp.clip(i, 3, 900), 100), (37, 50)), (x, one)),
        "window_moved": (
            lambda x, i: lax.dynamic_slice(x, (jnp.minimum(i, 0) + a, 0), (9, COLUMNS)),
            (x, one),
        ),
        "largest": (lambda x: x[jnp.argmax(x, 0), jnp.arange(COLUMNS)], (x,)),
        "segments": (
            lambda x, i: jax.ops.segment_sum(x, i, num_segments=500)[a // 4 :],
            (x, array(ROWS, dtype="int32")),
        ),
    }


def _updates(a: int, b: int, j: int, k: int) -> _Programs:
    x, row, one = array(ROWS, COLUMNS), array(COLUMNS), array(dtype="int32")
    part, first = array(22, COLUMNS, dtype="int32"), a // 2

    def in_chunks(x: Any, u: Any) -> Any:
        for n in range(9):
            begin = 20 + a % 100 + 97 * n
            x = x.at[begin : begin + 22].set(u * n)
        return x

    return {
        "chunks": (in_chunks, (array(ROWS, COLUMNS, dtype="int32"), part)),
        "numbered": (
            lambda x, u: x.at[first : first + 22].set(u + first),
            (array(ROWS, COLUMNS, dtype="int32"), part),
        ),
        "row_set": (lambda x: (x * 2).at[a].set(1.0), (x,)),
        "row_from_behind_set": (lambda x: x.at[-a].set(1.0) * 3 + x[-b], (x,)),
        "rows_added": (lambda x: x.at[jnp.array([-a, 5, b])].add(1.0) * 3, (x,)),
        "block_set": (lambda x: x.at[a:b, j:k].set(1.0) * 3, (x,)),
        "block_added": (lambda x: (x * 2).at[a:b].add(1.0), (x,)),
        "flat_set": (lambda x: x.reshape(-1).at[a * COLUMNS + j].set(1).reshape(x.shape) * 2, (x,)),
        "updated": (lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 100)), (x, array(37, 50), one)),
        "cache": (
            lambda c, u, p: jnp.where(jnp.arange(ROWS)[:, None] <= p, c.at[p].set(u), 0),
            (x, row, one),
        ),
        "vector_set": (lambda x, p: (x * 2).at[p].set(1.0), (array(ROWS * 40), one)),
        "scattered": (lambda x, u: (x * 2).at[jnp.array([5, a, b])].add(u), (x, array(3, COLUMNS))),
    }


def write_programs(folder: Path, seed: int, only: str = "") -> None:
    """Write programs, as JAX lowers them and as XLA compiles them, as a dump."""
    jax.config.update("jax_platforms", "cpu")
    for name, (function, shapes) in programs(random.Random(seed)).items():
        if re.search(only, name):
            lowered = jax.jit(function).lower(*shapes).compiler_ir("hlo")
            module = parse_module(lowered.as_hlo_text(print_large_constants=True))
            stem = folder / f"module_0001.{name}.x"
            stem.with_suffix(".before_optimizations.txt").write_text(module.to_text())
            stem.with_suffix(".cpu_after_optimizations.txt").write_text(optimised(module, "xla").to_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, default=0, help="of places")
    parser.add_argument("--only", default="", help="regular expression of programs")
    parser.add_argument("--memory", default="100K", help="of a comparison")
    parser.add_argument("--json", type=Path, help="file for all figures")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        write_programs(Path(made), arguments.seed, arguments.only)
        rows = {
            scale: hlotool.replay(made, scale=scale, seed=arguments.seed, cache=False).rows
            for scale in ("never", arguments.memory)
        }
    found = [
        {
            "program": full.name.split(".")[1],
            "full": full.verdict.value,
            "scaled": small.verdict.value if small.scaled or small.verdict.value == "wrong" else "not scaled",
            "sizes": small.scaled.text if small.scaled else small.reason,
        }
        for full, small in zip(*rows.values(), strict=True)
    ]
    for row in found:
        print(*row.values(), flush=True)
    counted = Counter(f"{row['full']} → {row['scaled']}" for row in found)
    summary = {"programs": len(found), "verdicts": dict(counted), "load": os.getloadavg()[0]}
    print(json.dumps(summary, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps({"rows": found, "summary": summary}, indent=1))


if __name__ == "__main__":
    main()
