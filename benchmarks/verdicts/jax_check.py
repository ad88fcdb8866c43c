"""Does `hlotool.jax.check` say of a function what `hlotool run` says of its dump?

The programs of the corpus generator, their `vmap` and their gradients, each on arguments of its own, are
checked in process, and captured by XLA itself (text and snapshot) and replayed. It counts how often both ways
come to the same verdicts.

    JAX_PLATFORMS=cpu PYTHONPATH=corpus/generate python -m benchmarks.verdicts.jax_check --cases 120 --seed 1
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

#: Programs that take minutes as they are, and need no larger ones made of them.
_LARGE = ("transformer", "resnet", "train_mnist_cnn", "rng_threefry")


class Case(NamedTuple):
    """A function with arguments."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def cases() -> Iterator[Case]:
    """All functions of the generator for one device, over a batch of two, too, and their gradients."""
    import jax
    import programs

    for group in ("jax", "miscompiles"):
        for name, program in programs.load(group).items():
            if program.devices > 1 or program.x64 or program.target:
                continue
            for number, (function, *arguments) in enumerate(program.body()):
                title = f"{name}[{number}]"
                yield Case(title, function, tuple(arguments))
                if not hasattr(function, "lower") and not name.startswith(_LARGE):
                    yield Case(f"vmap({title})", jax.vmap(function), _twice(arguments))
                    yield Case(f"grad({title})", jax.grad(_scalar(function)), tuple(arguments))


def _twice(arguments: list[Any]) -> tuple[Any, ...]:
    import jax
    import numpy as np

    return tuple(jax.tree_util.tree_map(lambda leaf: np.stack([leaf, leaf]), a) for a in arguments)


def _scalar(function: Callable[..., Any]) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    def total(*arguments: Any) -> Any:
        leaves = jax.tree_util.tree_leaves(function(*arguments))
        return sum(jnp.sum(leaf) for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating))

    return total


def checked(case: Case) -> list[tuple[str, str]]:
    """Stages and verdicts of the one way."""
    import hlotool.jax

    result = hlotool.jax.Checker(op_by_op=False, options={"timeout": 100.0}).check(
        case.function, *case.arguments
    )
    return [(str(row.stage_tested), row.verdict.value) for row in result]


def replayed(case: Case) -> list[tuple[str, str]]:
    """Of the other way."""
    import jax

    import hlotool.jax

    jitted: Any = case.function if hasattr(case.function, "lower") else jax.jit(case.function)
    with hlotool.jax.capture() as programs:
        jax.block_until_ready(jitted(*case.arguments))
        name = jitted.lower(*case.arguments).compile().runtime_executable().hlo_modules()[0].name
    result = programs.replay(only=rf"\.{name}$", timeout=100.0, jobs=1)
    return [(str(row.stage_tested), row.verdict.value) for row in result]


def main() -> None:
    """Compare, and print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = list(cases())
    random.Random(options.seed).shuffle(found)
    counts: Counter[str] = Counter()
    verdicts: Counter[str] = Counter()
    others = []
    start = time.perf_counter()
    for case in found:
        if counts["equal"] + counts["unequal"] == options.cases:
            break
        try:
            ours = checked(case)
        except (TypeError, ValueError, NotImplementedError) as error:
            counts["no function"] += 1  # JAX has no gradient or no vmap of it
            print(f"{case.name}: {type(error).__name__}", file=sys.stderr)
            continue
        theirs = replayed(case)
        counts["equal" if ours == theirs else "unequal"] += 1
        verdicts.update(verdict for _, verdict in ours)
        if ours != theirs:
            others.append({"case": case.name, "check": ours, "run": theirs})
        print(f"{case.name}: {ours}{'' if ours == theirs else f' but {theirs}'}", file=sys.stderr, flush=True)
    record = {
        **counts,
        "verdicts": verdicts,
        "others": others,
        "seconds": round(time.perf_counter() - start, 1),
    }
    print(json.dumps(record, indent=None if options.json else 2))


if __name__ == "__main__":
    main()
