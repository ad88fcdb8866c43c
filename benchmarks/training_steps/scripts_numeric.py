"""Scripts of science: kernels with log length scales, filters, bodies, equations, second order, by hand."""

from __future__ import annotations

from typing import Any

from benchmarks.training_steps.drawing import Draw, script
from benchmarks.training_steps.loops import fit


@script("optax")
def gaussian_process(draw: Draw, steps: int) -> Any:
    """The marginal likelihood of an RBF kernel with a log length scale, by Cholesky."""
    import jax
    import jax.numpy as jnp

    n, jitter = draw.choose(8, 12), draw.choose(1e-4, 1e-3)
    params = {"log_l": jnp.float32(draw.rng.normal()), "log_s": jnp.float32(0.0), "log_n": jnp.float32(-1.0)}

    def loss_fn(p: Any, x: Any, y: Any) -> Any:
        gap = ((x[:, None] - x[None]) ** 2).sum(-1)
        k = jnp.exp(2 * p["log_s"]) * jnp.exp(-0.5 * gap / jnp.exp(p["log_l"]) ** 2)
        k = k + (jnp.exp(2 * p["log_n"]) + jitter) * jnp.eye(n)
        factor = jnp.linalg.cholesky(k)
        white = jax.scipy.linalg.solve_triangular(factor, y, lower=True)
        return 0.5 * white @ white + jnp.log(jnp.diag(factor)).sum() + 0.5 * n * jnp.log(2 * jnp.pi)

    tx = draw.optimizer("adam", "sgd")
    return fit(draw, steps, params, loss_fn, tx, lambda: (draw.normal(n, 2), draw.normal(n)))


@script("optax")
def kernel_network(draw: Draw, steps: int) -> Any:
    """A radial basis network: centres, log widths per centre, a nested exponential."""
    import jax.numpy as jnp

    centres = draw.choose(5, 9)
    params = {
        "c": draw.normal(centres, 3),
        "log_w": draw.normal(centres, scale=0.2),
        "out": draw.weights(centres, 1),
    }

    def loss_fn(p: Any, x: Any, y: Any) -> Any:
        gap = ((x[:, None] - p["c"]) ** 2).sum(-1)
        return ((jnp.exp(-gap / jnp.exp(p["log_w"])) @ p["out"])[:, 0] - y).__pow__(2).mean()

    tx = draw.optimizer("adam", "lion", "rmsprop")
    return fit(draw, steps, params, loss_fn, tx, lambda: (draw.normal(10, 3), draw.normal(10)))


@script("optax")
def kalman_filter(draw: Draw, steps: int) -> Any:
    """The likelihood of a linear model in a scan; the innovations are solved for."""
    import jax
    import jax.numpy as jnp

    size = draw.choose(2, 3)
    params = {
        "a": 0.9 * jnp.eye(size) + draw.normal(size, size, scale=0.02),
        "c": draw.normal(2, size),
        "log_q": jnp.zeros(size),
    }

    def loss_fn(p: Any, ys: Any) -> Any:
        def step(carry: Any, y: Any) -> Any:
            mean, cov = carry
            mean, cov = p["a"] @ mean, p["a"] @ cov @ p["a"].T + jnp.diag(jnp.exp(p["log_q"]))
            s = p["c"] @ cov @ p["c"].T + 0.5 * jnp.eye(2)
            gain = jnp.linalg.solve(s, p["c"] @ cov).T
            missed = y - p["c"] @ mean
            cost = 0.5 * (missed @ jnp.linalg.solve(s, missed) + jnp.linalg.slogdet(s)[1])
            return (mean + gain @ missed, cov - gain @ p["c"] @ cov), cost

        _, costs = jax.lax.scan(step, (jnp.zeros(size), jnp.eye(size)), ys)
        return costs.mean()

    return fit(draw, steps, params, loss_fn, draw.optimizer("adam", "sgd"), lambda: (draw.normal(6, 2),))


@script("optax")
def n_body_energy(draw: Draw, steps: int) -> Any:
    """Masses fitted through a leapfrog integration of softened gravity."""
    import jax
    import jax.numpy as jnp

    bodies, soft, dt = draw.choose(4, 6), draw.choose(1e-2, 1e-1), 0.01
    params = {"log_m": draw.normal(bodies, scale=0.2)}

    def loss_fn(p: Any, x: Any, v: Any, wanted: Any) -> Any:
        mass = jnp.exp(p["log_m"])

        def force(x: Any) -> Any:
            gap = x[None] - x[:, None]
            return (mass[None, :, None] * gap / ((gap**2).sum(-1, keepdims=True) + soft) ** 1.5).sum(1)

        def leap(carry: Any, _: Any) -> Any:
            x, v = carry
            v = v + 0.5 * dt * force(x)
            x = x + dt * v
            return (x, v + 0.5 * dt * force(x)), None

        (x, _), _ = jax.lax.scan(leap, (x, v), None, length=4)
        return ((x - wanted) ** 2).mean()

    def batch() -> tuple[Any, ...]:
        return draw.normal(bodies, 3), draw.normal(bodies, 3), draw.normal(bodies, 3)

    return fit(draw, steps, params, loss_fn, draw.optimizer("adam", "adamw"), batch)


@script("optax")
def physics_informed(draw: Draw, steps: int) -> Any:
    """Second derivatives of a network by nested forward differentiation, and its boundary."""
    import jax
    import jax.numpy as jnp

    width = draw.choose(8, 12)
    params = [
        {"w": draw.weights(n, m), "b": draw.normal(m, scale=0.1)}
        for n, m in ((2, width), (width, width), (width, 1))
    ]

    def u(params: Any, t: Any, x: Any) -> Any:
        h = jnp.stack([t, x])
        for p in params[:-1]:
            h = jnp.tanh(h @ p["w"] + p["b"])
        return (h @ params[-1]["w"] + params[-1]["b"])[0]

    def loss_fn(params: Any, t: Any, x: Any) -> Any:
        def residual(t: Any, x: Any) -> Any:
            value, slope = jax.value_and_grad(u, 2)(params, t, x)
            bent = jax.grad(jax.grad(u, 2), 2)(params, t, x)
            return jax.grad(u, 1)(params, t, x) + value * slope - 0.01 / jnp.pi * bent

        start = jax.vmap(u, (None, None, 0))(params, 0.0, x) + jnp.sin(jnp.pi * x)
        return (jax.vmap(residual)(t, x) ** 2).mean() + (start**2).mean()

    def batch() -> tuple[Any, Any]:
        return jnp.abs(draw.normal(6)), draw.normal(6)

    return fit(draw, steps, params, loss_fn, draw.optimizer("adam", "sgd"), batch)


@script()
def newton_logistic(draw: Draw, steps: int) -> Any:
    """Newton's method on a ridge logistic regression, with the Hessian of JAX."""
    import jax
    import jax.numpy as jnp

    size, ridge = draw.choose(4, 6), draw.between(1e-3, 1e-1)
    w = draw.normal(size, scale=0.1)

    @jax.jit
    def train_step(w: Any, x: Any, y: Any) -> Any:
        def loss_fn(w: Any) -> Any:
            return jax.nn.softplus(-y * (x @ w)).mean() + ridge * w @ w

        loss, grad = jax.value_and_grad(loss_fn)(w)
        return w - jnp.linalg.solve(jax.hessian(loss_fn)(w), grad), loss

    loss: Any = None
    for _ in range(steps):
        w, loss = train_step(w, draw.normal(16, size), 2.0 * draw.integers(2, 16) - 1)
    return loss


@script()
def adam_by_hand(draw: Draw, steps: int) -> Any:
    """The first example of a course: an MLP, Adam with corrections of its bias, all written out."""
    import jax
    import jax.numpy as jnp

    width, activation, rate = draw.choose(12, 24), draw.activation(), draw.between(1e-4, 1e-2)
    eps = draw.choose(1e-8, 1e-7)
    params = [
        {"w": draw.weights(n, m), "b": jnp.zeros(m)} for n, m in ((9, width), (width, width), (width, 4))
    ]
    zeros = jax.tree.map(jnp.zeros_like, params)

    @jax.jit
    def train_step(params: Any, m: Any, v: Any, t: Any, x: Any, y: Any) -> Any:
        def loss_fn(params: Any) -> Any:
            h = x
            for p in params[:-1]:
                h = activation(h @ p["w"] + p["b"])
            logits = h @ params[-1]["w"] + params[-1]["b"]
            return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, v, grads)
        params = jax.tree.map(
            lambda p, m, v: p - rate * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + eps), params, m, v
        )
        return params, m, v, t, loss

    state: tuple[Any, ...] = (params, zeros, zeros, jnp.float32(0))
    loss: Any = None
    for _ in range(steps):
        *state, loss = train_step(*state, draw.normal(8, 9), draw.integers(4, 8))  # type: ignore[assignment]
    return loss


@script("optax")
def meta_learning(draw: Draw, steps: int) -> Any:
    """MAML: a gradient through two inner steps of gradient descent, over tasks by vmap."""
    import jax
    import jax.numpy as jnp

    width, inner = draw.choose(6, 10), draw.choose(0.01, 0.1)
    params = {"w": draw.weights(1, width), "b": draw.normal(width, scale=0.1), "out": draw.weights(width, 1)}

    def task_loss(p: Any, x: Any, y: Any) -> Any:
        return ((jnp.tanh(x @ p["w"] + p["b"]) @ p["out"] - y) ** 2).mean()

    def loss_fn(params: Any, x: Any, y: Any) -> Any:
        def adapted(x: Any, y: Any) -> Any:
            p = params
            for _ in range(2):
                p = jax.tree.map(lambda a, g: a - inner * g, p, jax.grad(task_loss)(p, x[:4], y[:4]))
            return task_loss(p, x[4:], y[4:])

        return jax.vmap(adapted)(x, y).mean()

    def batch() -> tuple[Any, Any]:
        return draw.normal(3, 8, 1), draw.normal(3, 8, 1)

    return fit(draw, steps, params, loss_fn, draw.optimizer("adam", "momentum"), batch)


@script("optax")
def dropout_mc_regression(draw: Draw, steps: int) -> Any:
    """A variance that is predicted with the mean, quantiles, and dropout by a key folded with the step."""
    import jax
    import jax.numpy as jnp

    width, rate, activation = draw.choose(10, 16), draw.choose(0.1, 0.2, 0.5), draw.activation()
    params = {"w": draw.weights(6, width), "b": jnp.zeros(width), "out": draw.weights(width, 4)}
    key, levels = draw.key(), jnp.array([0.1, 0.9])

    def loss_fn(p: Any, x: Any, y: Any, key: Any) -> Any:
        h = activation(x @ p["w"] + p["b"])
        h = jnp.where(jax.random.bernoulli(key, 1 - rate, h.shape), h / (1 - rate), 0)
        mean, raw, *quantiles = jnp.split(h @ p["out"], 4, -1)
        var = jax.nn.softplus(raw) + 1e-6
        likelihood = 0.5 * (jnp.log(var) + (y[:, None] - mean) ** 2 / var).mean()
        missed = y[:, None] - jnp.concatenate(quantiles, -1)
        return likelihood + jnp.maximum(levels * missed, (levels - 1) * missed).mean()

    def batch() -> tuple[Any, ...]:
        return draw.normal(9, 6), draw.normal(9), jax.random.fold_in(key, draw.seed())

    return fit(draw, steps, params, loss_fn, draw.optimizer("adam", "adamw"), batch)
