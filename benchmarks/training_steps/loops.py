"""The loop that most scripts end in: value and gradient, the optimizer's update, the next batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.training_steps.drawing import Draw


def fit(
    draw: Draw,
    steps: int,
    params: Any,
    loss_fn: Callable[..., Any],
    tx: Any,
    batch: Callable[[], tuple[Any, ...]],
    *,
    donate: bool = False,
) -> Any:
    """Train and return the last loss.

    Args:
        loss_fn: of the parameters and a batch.
        batch: draws the next one.
        donate: parameters and state of the optimizer are given away to the step, as large models have to.
    """
    import jax
    import optax

    def train_step(params: Any, state: Any, *batch: Any) -> Any:
        loss, grads = jax.value_and_grad(loss_fn)(params, *batch)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    jitted = jax.jit(train_step, donate_argnums=(0, 1) if donate else ())
    state = tx.init(params)
    loss: Any = None
    for _ in range(steps):
        params, state, loss = jitted(params, state, *batch())
    return loss
