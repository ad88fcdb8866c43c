"""JAX training steps with many outputs, before and after optimisation: new parameters and their moments.

Every output depends on every layer, so one early fault makes all of them wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

#: Parameters, then a batch: the new state, and the loss.
_Step = tuple[Callable[..., Any], tuple[Any, ...]]


def dumped_steps(folder: Path) -> list[Path]:
    """Dumps of all training steps, each in a folder of its own under `folder`; none without JAX."""
    try:
        import jax
    except ImportError:
        return []
    jax.config.update("jax_platforms", "cpu")
    found = []
    for name, (step, arguments) in _steps().items():
        target = folder / name
        target.mkdir(parents=True)
        step.__name__ = name
        # As XLA dumps them: with the names of the user's operations, which the text of a lowering lacks.
        options = {"xla_dump_hlo_as_text": True, "xla_dump_large_constants": True}
        jax.jit(step).lower(*arguments).compile(compiler_options={"xla_dump_to": str(target), **options})
        found.append(target)
    return found


def _steps() -> dict[str, _Step]:
    from benchmarks.common.programs import array, layer_parameters, transformer_layer

    def mlp(p: Any, x: Any) -> Any:
        import jax

        for layer in p["layers"]:
            x = jax.nn.gelu(x @ layer["w"] + layer["b"])
        return ((p["scale"] * x) ** 2).mean()

    def transformer(p: Any, x: Any) -> Any:
        for layer in p["layers"]:
            x = transformer_layer(x, layer, 4)
        return (x**2).mean()

    def dense(width: int) -> dict[str, Any]:
        return {"w": array(width, width), "b": array(width)}

    def blocks(count: int, dtype: str) -> dict[str, Any]:
        return {"layers": [layer_parameters(64, dtype) for _ in range(count)]}

    deep = {"layers": [dense(192) for _ in range(12)], "scale": array(192)}
    tokens, narrow = array(2, 32, 64), array(2, 32, 64, dtype="bfloat16")
    return {
        "mlp_12_layers": _with_adam(mlp, deep, array(128, 192)),
        "transformer_f32": _with_adam(transformer, blocks(2, "float32"), tokens),
        "transformer_bf16": _with_adam(transformer, blocks(1, "bfloat16"), narrow),
    }


def _with_adam(loss: Callable[[Any, Any], Any], parameters: Any, batch: Any) -> _Step:
    """A step of Adam on a loss: the new parameters, both moments, and the loss."""
    import jax
    import jax.numpy as jnp

    def step(p: Any, m: Any, v: Any, x: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(p, x)
        m = jax.tree.map(lambda old, g: 0.9 * old + 0.1 * g, m, gradient)
        v = jax.tree.map(lambda old, g: 0.999 * old + 0.001 * g * g, v, gradient)
        p = jax.tree.map(lambda old, one, two: old - 1e-3 * one / (jnp.sqrt(jnp.abs(two)) + 1e-3), p, m, v)
        return p, m, v, value

    return step, (parameters, parameters, parameters, batch)
