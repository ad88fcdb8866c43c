"""What varies between two draws of a script: sizes, activations, optimizers, hyper-parameters, data."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

#: A script: what it draws from, and how many steps it makes; returns the last loss.
Train = Callable[["Draw", int], Any]


@dataclass(frozen=True, slots=True)
class Script:
    """A training script.

    Attributes:
        name: also what `--only` matches.
        train: runs it.
        needs: packages beside JAX that it imports.
        devices: of the CPU that it runs on.
    """

    name: str
    train: Train
    needs: tuple[str, ...]
    devices: int


SCRIPTS: dict[str, Script] = {}


def script(*needs: str, devices: int = 1) -> Callable[[Train], Train]:
    """Register a function as a script; its main step is a function called `train_step`."""

    def register(train: Train) -> Train:
        SCRIPTS[train.__name__] = Script(train.__name__, train, needs, devices)
        return train

    return register


class Draw:
    """Everything that is random about one run of one script; equal seeds give equal programs and data."""

    def __init__(self, name: str, seed: int) -> None:
        self.rng = np.random.default_rng([seed, zlib.crc32(name.encode())])

    def choose(self, *options: Any) -> Any:
        """One of several options."""
        return options[int(self.rng.integers(len(options)))]

    def between(self, low: float, high: float) -> float:
        """A number whose logarithm is uniform, with three digits as people write them."""
        return float(f"{np.exp(self.rng.uniform(np.log(low), np.log(high))):.3g}")

    def key(self) -> Any:
        """A key of JAX."""
        import jax

        return jax.random.key(self.seed())

    def seed(self) -> int:
        """For what wants an integer."""
        return int(self.rng.integers(1 << 30))

    def normal(self, *dims: int, scale: float = 1.0, dtype: Any = None) -> Any:
        """Normal numbers, f32 unless said otherwise."""
        import jax.numpy as jnp

        return jnp.asarray(scale * self.rng.standard_normal(dims), dtype or jnp.float32)

    def integers(self, high: int, *dims: int) -> Any:
        """s32 from 0 to below `high`."""
        import jax.numpy as jnp

        return jnp.asarray(self.rng.integers(high, size=dims), jnp.int32)

    def weights(self, *dims: int, dtype: Any = None) -> Any:
        """Weights of a dense layer in the scale of LeCun, He or Glorot, times the draw's own factor."""
        fan_in, fan_out = int(np.prod(dims[:-1])), dims[-1]
        scale = self.choose(fan_in**-0.5, (2 / fan_in) ** 0.5, (2 / (fan_in + fan_out)) ** 0.5, 0.02)
        return self.normal(*dims, scale=scale, dtype=dtype)

    def activation(self) -> Callable[[Any], Any]:
        """One that networks have."""
        import jax

        return self.choose(
            jax.nn.relu, jax.nn.gelu, jax.nn.silu, jax.numpy.tanh, jax.nn.elu, jax.nn.leaky_relu
        )  # type: ignore[no-any-return]

    def rate(self) -> Any:
        """A learning rate: constant, or a schedule, often with a warm-up from 0."""
        import optax

        peak = self.between(1e-4, 1e-1)
        return self.choose(
            peak,
            peak,
            optax.cosine_decay_schedule(peak, 100),
            optax.warmup_cosine_decay_schedule(0.0, peak, 2, 100),
            optax.linear_schedule(0.0, peak, 3),
        )

    def optimizer(self, *names: str) -> Any:
        """An optimizer of optax, one of those named, sometimes behind clipping by the global norm."""
        import optax

        rate = self.rate()
        beta, eps = self.choose(0.9, 0.95, 0.8), self.choose(1e-8, 1e-6, 1e-7)
        decay = self.between(1e-4, 1e-1)
        known = {
            "sgd": lambda: optax.sgd(rate),
            "momentum": lambda: optax.sgd(rate, momentum=beta),
            "nesterov": lambda: optax.sgd(rate, momentum=beta, nesterov=True),
            "adam": lambda: optax.adam(rate, b1=beta, b2=self.choose(0.999, 0.99, 0.95), eps=eps),
            "adamw": lambda: optax.adamw(rate, b1=beta, b2=self.choose(0.999, 0.98), weight_decay=decay),
            "adafactor": lambda: optax.adafactor(rate, min_dim_size_to_factor=8),
            "lion": lambda: optax.lion(rate, weight_decay=decay),
            "lars": lambda: optax.lars(rate, weight_decay=decay, momentum=beta),
            "lamb": lambda: optax.lamb(rate, weight_decay=decay),
            "rmsprop": lambda: optax.rmsprop(rate, decay=beta, eps=eps),
            "adagrad": lambda: optax.adagrad(rate),
        }
        made = known[self.choose(*names)]()
        if self.choose(True, False):
            made = optax.chain(optax.clip_by_global_norm(self.choose(0.1, 1.0, 5.0)), made)
        return made
