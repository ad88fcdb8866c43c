"""Child process of `generate.py`: run one program here, under the XLA_FLAGS of the environment.

Usage: `python run_program.py jax|tf|miscompiles PROGRAM [FOLDER]`; with FOLDER, the arguments and results of
the one call are written there as `inputs.npz` and `outputs.npz`.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import programs


def _flatten(tree: Any) -> list[np.ndarray]:
    """The leaves of nested lists, tuples and (in key order) dictionaries."""
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in _flatten(tree[key])]
    if isinstance(tree, list | tuple):
        return [leaf for branch in tree for leaf in _flatten(branch)]
    return [np.asarray(tree)]


def _save(path: Path, prefix: str, tree: Any) -> None:
    np.savez_compressed(path, **{f"{prefix}_{number}": leaf for number, leaf in enumerate(_flatten(tree))})


def main() -> None:
    """Run the program named on the command line."""
    framework, name, *folder = sys.argv[1:]
    calls = list(programs.load(framework)[name].body())
    if folder and len(calls) != 1:
        raise SystemExit(f"{name} makes {len(calls)} calls; values are kept of one only")
    for function, *arguments in calls:
        if framework != "tf" and not hasattr(function, "lower"):
            import jax

            function = jax.jit(function)
        if folder:
            _save(Path(folder[0], "inputs.npz"), "arg", arguments)
        results = function(*arguments)
        if folder:
            _save(Path(folder[0], "outputs.npz"), "out", results)
        if framework != "tf":
            jax_wait(results)


def jax_wait(results: Any) -> None:
    """Let asynchronous work, callbacks too, end before the process does."""
    import jax

    jax.block_until_ready(results)
    jax.effects_barrier()


if __name__ == "__main__":
    main()
