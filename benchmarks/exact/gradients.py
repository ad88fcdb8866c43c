"""`hlotool gradcheck` on right and on wrong gradients.

    python -m benchmarks.exact.gradients --seed N [--count N] [--json FILE]

Losses of JAX in drawn sizes; their gradients by JAX are right. The wrong ones are mistakes of backward
passes written by hand: a factor, a sign, a place that was forgotten, a row that is another one's. `--inside`
makes one in the middle of JAX's gradient instead: a term or a factor is left out, what a select kept away
comes through, a constant is off by a thousandth, a product is of transposed matrices.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import hlotool
from hlotool.backends.numpy import NumpyBackend
from hlotool.facts.retyping import retyped_value, widened
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.arrays import flatten
from hlotool.runs.gradients import slopes_of


def losses(rng: random.Random) -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...], tuple[int, ...]]]:
    """Name, function, arguments, and by which of these it is differentiated."""
    import jax
    import jax.numpy as jnp

    n, d, k = rng.randint(2, 6), rng.randint(2, 7), rng.randint(2, 5)
    x, w, b = jnp.ones((n, d)), jnp.ones((d, k)), jnp.ones(k)
    q = jnp.ones((n, d))
    labels = jnp.arange(n) % k
    yield "linear", lambda w, b, x: ((x @ w + b) ** 2).mean(), (w, b, x), (0, 1)
    yield (
        "classifier",
        lambda w, b, x: -jax.nn.log_softmax(jnp.tanh(x @ w) + b)[jnp.arange(n), labels].mean(),
        (w, b, x),
        (0, 1),
    )
    yield "relu", lambda w, b, x: (jax.nn.relu(x @ w + b) * jnp.arange(k)).sum(), (w, b, x), (0, 1, 2)
    yield "gelu", lambda w, x: jax.nn.gelu(x @ w).var(), (w, x), (0, 1)
    yield "attention", lambda q, k, v: ((jax.nn.softmax(q @ k.T) @ v) ** 3).sum(), (q, q, q), (0, 1, 2)
    yield (
        "layer_norm",
        lambda x, g: jnp.sin((x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 0.1) * g).sum(),
        (x, jnp.ones(d)),
        (0, 1),
    )
    yield "logsumexp", lambda x: jax.nn.logsumexp(x * 3, axis=-1).sum(), (x,), (0,)
    yield (
        "scan",
        lambda x: jax.lax.scan(lambda c, r: (jnp.tanh(c + r), None), jnp.ones(d), x)[0].sum(),
        (x,),
        (0,),
    )
    yield "gather", lambda x: (x[jnp.array([1, 0, 1])] ** 2).sum(), (x,), (0,)
    yield "cumulative", lambda x: (jnp.cumsum(x, 0) * jnp.cumprod(x, 1)).sum(), (x,), (0,)
    yield "maxima", lambda x: jnp.max(x, axis=0).sum() + jnp.sort(x, axis=1)[:, 0].sum(), (x,), (0,)
    yield "huber", lambda x: jnp.where(jnp.abs(x) < 0.5, x**2 / 2, jnp.abs(x) / 2).sum(), (x,), (0,)


def _mistakes(rng: random.Random) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """What is done to one derivative, in words, and the doing; in random order."""
    import jax.numpy as jnp

    factor = rng.choice([0.5, 0.9, 0.99, 1.01, 2.0, 3.0])

    where = [rng.random() for _ in range(4)]

    def one(of: Any) -> tuple[int, ...]:
        return tuple(int(share * n) for share, n in zip(where, of.shape))

    known: list[tuple[str, Callable[[Any], Any]]] = [
        (f"times {factor}", lambda g: g * factor),
        ("the other sign", lambda g: -g),
        ("nothing", jnp.zeros_like),
        (f"one component times {factor}", lambda g: g.at[one(g)].multiply(factor)),
        ("one component is nothing", lambda g: g.at[one(g)].set(0)),
        ("rows by one further", lambda g: jnp.roll(g, 1, 0)),
        ("the last row is nothing", lambda g: g.at[-1].set(0)),
        ("the mean over rows", lambda g: jnp.broadcast_to(g.mean(0), g.shape)),
        ("only what is positive", lambda g: jnp.maximum(g, 0)),
        ("one more than it is", lambda g: g + 1e-2),
    ]
    rng.shuffle(known)
    yield from known


#: An instruction of a gradient: what stands before its opcode, its opcode, its operands.
_LINE = re.compile(r"^(  (?:ROOT )?\S+ = (f32\[[\d,]*\]\{[\d,]*\}) )([\w-]+)\(([^()]*)\).*$", re.MULTILINE)
_KEPT = {"add": 0, "subtract": 0, "multiply": 0, "divide": 0, "select": 1, "negate": 0}


def planted(text: str, rng: random.Random) -> Iterator[tuple[str, str]]:
    """Gradients with one mistake inside, and it in words; in random order."""
    found = list(_LINE.finditer(text))
    rng.shuffle(found)
    for line in found:
        head, _, opcode, operands = line.groups()
        names = operands.split(", ")
        if opcode in _KEPT and len(set(names)) == len(names):
            changed = f"{head}copy({names[_KEPT[opcode]]})"
        elif opcode == "constant" and re.fullmatch(r"-?[\d.e-]+", operands) and float(operands):
            changed = f"{head}constant({float(operands) * 1.001!r})"
        elif opcode == "transpose" and len(set(line[2].split("{")[0][4:-1].split(","))) == 1:
            changed = f"{head}copy({operands})"
        else:
            continue
        yield text[: line.start()] + changed + text[line.end() :], f"{opcode} became {changed.split('= ')[1]}"


def _differ(one: str, other: str, seed: int) -> bool:
    """Whether two gradients differ by a thousandth of what they say, at ordinary points, in f64."""
    backend = NumpyBackend()
    modules = [widened(hlotool.parse(text)).module for text in (one, other)]
    for point in range(3):
        given = generate_inputs(hlotool.parse(one), 1000 * seed + point).values
        results = []
        for module in modules:
            wide = [retyped_value(v, p.shape) for v, p in zip(given, module.entry.parameters)]
            result = backend.compile(module).run(wide)
            parts = [np.asarray(part) for _, _, part in flatten(module.entry.root.shape, result)]
            results.append(parts)
        for a, b in zip(*results):
            if np.isfinite(a).all() and not np.abs(a - b).max() <= 1e-3 * np.abs(a).max():
                return True
    return False


def subjects_inside(seed: int) -> Iterator[tuple[str, str, str, str, str]]:
    """As `subjects`, with a mistake inside that shows at ordinary points."""
    rng = random.Random(seed)
    for name, loss, gradient, _, _ in subjects(seed):
        for text, what in planted(gradient, rng):
            if _differ(gradient, text, seed):
                yield name, loss, gradient, what, text
                break


def subjects(seed: int) -> Iterator[tuple[str, str, str, str, str]]:
    """Name, texts of the loss and of its gradient, a mistake in words, the text of the gradient with it."""
    import jax

    rng = random.Random(seed)
    draw = np.random.default_rng(seed)
    for name, function, given, wrt in losses(random.Random(seed)):
        gradient = jax.grad(function, wrt)
        values = [draw.standard_normal(a.shape).astype(a.dtype) for a in given]
        place = rng.randrange(len(wrt))
        right = np.asarray(gradient(*values)[place])
        for what, spoil in _mistakes(rng):  # noqa: B007 - the last one is used
            spoiled = np.asarray(spoil(jax.numpy.asarray(right)))
            # What changes nothing is no mistake.
            if np.abs(spoiled - right).max() > 1e-3 * np.abs(right).max() > 0:
                break

        def mistaken(*args: Any, gradient: Any = gradient, place: int = place, spoil: Any = spoil) -> Any:
            found = list(gradient(*args))
            found[place] = spoil(found[place])
            return tuple(found)

        texts = [
            jax.jit(one, keep_unused=True).lower(*given).compiler_ir("hlo").as_hlo_text()
            for one in (function, gradient, mistaken)
        ]
        yield f"{name}.{seed}", texts[0], texts[1], f"{what}, of argument {wrt[place]}", texts[2]


def main() -> None:
    """Print how many are judged as they are."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=60, help="right ones, and as many wrong ones")
    parser.add_argument("--inside", action="store_true", help="mistakes in the middle of gradients")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    seed, drawn = options.seed, subjects_inside if options.inside else subjects
    while len(rows) < 2 * options.count:
        for name, loss, gradient, mistake, mistaken in drawn(seed):
            for truth, what, text in (("right", "", gradient), ("wrong", mistake, mistaken)):
                found = [row.verdict for row in slopes_of(hlotool.parse(loss), hlotool.parse(text), (), seed)]
                said = "wrong" if "wrong" in found else "unknown" if "unknown" in found else "right"
                rows.append({"program": name, "truth": truth, "said": said, "mistake": what})
                if said != truth:
                    print(f"{name}: {said}, and is {truth}: {what}", flush=True)
        seed += 1
    for truth in ("right", "wrong"):
        own = [row for row in rows if row["truth"] == truth][: options.count]
        counts = Counter(row["said"] for row in own)
        print(f"{truth}: {len(own)} programs, said to be " + ", ".join(f"{n} {s}" for s, n in counts.items()))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
