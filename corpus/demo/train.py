"""Logistic regression by gradient descent; the last batch is smaller than the others."""

import jax
import jax.numpy as jnp


@jax.jit
def train_step(weights, bias, x, y):
    error = jax.nn.sigmoid(x @ weights + bias) - y
    return weights - 0.1 * (error @ x), bias - 0.1 * jnp.sum(error)


weights, bias = jnp.zeros(3), jnp.zeros(())
for size in (8, 8, 5):
    x = jax.random.normal(jax.random.key(size), (size, 3))
    weights, bias = train_step(weights, bias, x, jnp.float32(x.sum(1) > 0))
