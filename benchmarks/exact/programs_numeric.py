"""The other half of `programs`: special functions, sampling, narrow types, loops, linear algebra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.exact.programs import Draw, Program, array, normalisation


def _elementwise(draw: Draw, functions: tuple[Any, ...], count: int = 3) -> Program:
    """The sum of a few functions of x and y, each stretched and shifted, and the gradient of it."""
    import jax

    chosen = [draw.one(*functions) for _ in range(count)]
    scales = [(draw.decimal(0.2, 3), draw.decimal(0.01, 2), draw.decimal(0.1, 9)) for _ in chosen]

    def total(x: Any, y: Any) -> Any:
        return sum(w * f(a * x + b, y) for f, (a, b, w) in zip(chosen, scales))

    def both(x: Any, y: Any) -> Any:
        values, pull = jax.vjp(total, x, y)
        return values, pull(values)

    return both, (array(3, 5), array(3, 5))


def _special(draw: Draw) -> Program:
    import jax.numpy as jnp
    from jax.scipy import special as s

    functions = (
        lambda x, y: s.gammaln(jnp.abs(x) + 0.1),
        lambda x, y: s.digamma(jnp.abs(x) + 0.1),
        lambda x, y: s.erfinv(jnp.tanh(x)),
        lambda x, y: s.ndtri(0.01 + 0.98 * jnp.abs(jnp.tanh(x))),
        lambda x, y: s.i0e(x),
        lambda x, y: s.i1e(x),
        lambda x, y: s.log_ndtr(x),
        lambda x, y: s.xlogy(jnp.abs(x), jnp.abs(y) + 0.5),
        lambda x, y: s.entr(jnp.abs(x)),
        lambda x, y: s.expit(x) * s.logit(0.1 + 0.8 * s.expit(y)),
        lambda x, y: s.spence(jnp.abs(x) + 0.2),
        lambda x, y: jnp.sinc(x),
    )
    return _elementwise(draw, functions)


def _special_loops(draw: Draw) -> Program:
    import jax.numpy as jnp
    from jax.scipy import special as s

    function = draw.one(
        lambda x, y: s.gammainc(jnp.abs(x) + 0.3, jnp.abs(y) + 0.2),
        lambda x, y: s.betainc(jnp.abs(x) + 0.3, jnp.abs(y) + 0.5, 0.3),
        lambda x, y: s.zeta(jnp.abs(x) + 1.5, jnp.abs(y) + 0.5),
        lambda x, y: s.poch(jnp.abs(x) + 0.5, jnp.abs(y) + 0.5),
        lambda x, y: s.expn(2, jnp.abs(x) + 0.5),
    )
    scale = draw.decimal(0.3, 3)
    return (lambda x, y: function(scale * x, y) * scale), (array(4), array(4))


def _transcendental(draw: Draw) -> Program:
    import jax.numpy as jnp

    a, b = draw.decimal(0.1, 5), draw.decimal(0.1, 3)
    functions = (
        lambda x, y: jnp.arctan2(x, y),
        lambda x, y: jnp.hypot(x, y),
        lambda x, y: jnp.logaddexp(x, y * b),
        lambda x, y: jnp.power(jnp.abs(x) + 0.1, b),
        lambda x, y: jnp.power(jnp.abs(x) + 0.1, y),
        lambda x, y: jnp.log2(jnp.abs(x) + a),
        lambda x, y: jnp.log10(jnp.abs(x) + a),
        lambda x, y: jnp.exp2(x * b),
        lambda x, y: jnp.cbrt(x) * jnp.sinh(y),
        lambda x, y: jnp.arcsinh(x) + jnp.arctanh(jnp.tanh(y)),
        lambda x, y: jnp.arccosh(1 + jnp.abs(x)),
        lambda x, y: jnp.sin(x * a) / (jnp.cos(y) + 2),
        lambda x, y: jnp.tan(x * 0.1) + jnp.degrees(y),
        lambda x, y: jnp.fmod(x * a, b) + jnp.floor(y / b),
        lambda x, y: jnp.clip(x, -a, b) * jnp.sign(y),
        lambda x, y: jnp.where(x > b, jnp.sqrt(jnp.abs(x)), x * x * y),
        lambda x, y: jnp.copysign(x, y) * b,
    )
    return _elementwise(draw, functions, 4)


def _finance(draw: Draw) -> Program:
    import jax
    import jax.numpy as jnp

    rate, volatility, strike = draw.decimal(1e-3, 0.2), draw.decimal(0.05, 0.9), draw.decimal(5, 200)
    years = draw.decimal(0.1, 10)

    def price(spot: Any) -> Any:
        deviation = volatility * jnp.sqrt(years)
        d1 = (jnp.log(jnp.abs(spot) / strike) + (rate + volatility**2 / 2) * years) / deviation
        normal = [0.5 * (1 + jax.lax.erf(d / jnp.sqrt(2.0))) for d in (d1, d1 - deviation)]
        return jnp.abs(spot) * normal[0] - strike * jnp.exp(-rate * years) * normal[1]

    def greeks(spot: Any) -> Any:
        first = jax.grad(lambda s: price(s).sum())
        return price(spot), first(spot), jax.vmap(jax.grad(lambda s: first(s).sum()))(spot)

    return greeks, (array(7),)


def _sampling(draw: Draw) -> Program:
    import jax
    import jax.numpy as jnp

    kind = draw.one(
        "normal", "truncated", "gumbel", "laplace", "exponential", "cauchy", "bernoulli", "uniform"
    )
    low, high, temperature = -draw.decimal(0.5, 3), draw.decimal(0.5, 3), draw.decimal(0.1, 3)

    def sample(key: Any, logits: Any) -> Any:
        k = jax.random.wrap_key_data(key, impl="threefry2x32")
        shape = logits.shape
        noise = {
            "normal": lambda: jax.random.normal(k, shape),
            "truncated": lambda: jax.random.truncated_normal(k, low, high, shape),
            "gumbel": lambda: jax.random.gumbel(k, shape),
            "laplace": lambda: jax.random.laplace(k, shape),
            "exponential": lambda: jax.random.exponential(k, shape),
            "cauchy": lambda: jax.random.cauchy(k, shape),
            "bernoulli": lambda: jax.random.bernoulli(k, abs(low) / 4, shape).astype("float32"),
            "uniform": lambda: jax.random.uniform(k, shape, minval=low, maxval=high),
        }[kind]()
        moved = logits / temperature + noise
        return moved, jax.random.categorical(k, moved, axis=-1), jnp.argmax(moved, -1)

    return sample, (array(2, dtype="uint32"), array(3, 6))


def _nucleus(draw: Draw) -> Program:
    import jax
    import jax.numpy as jnp

    share, temperature, penalty = draw.decimal(0.3, 0.95), draw.decimal(0.3, 2), draw.decimal(1.01, 2)

    def choose(logits: Any, counts: Any) -> Any:
        logits = jnp.where(counts > 0, jnp.where(logits > 0, logits / penalty, logits * penalty), logits)
        probability = jax.nn.softmax(logits / temperature)
        order = jnp.argsort(-probability, -1)
        ordered = jnp.take_along_axis(probability, order, -1)
        kept = jnp.cumsum(ordered, -1) - ordered < share
        return jnp.where(kept, ordered, 0) / jnp.where(kept, ordered, 0).sum(-1, keepdims=True), order

    return choose, (array(2, 8), array(2, 8, dtype="int32"))


def _quantised(draw: Draw) -> Program:
    import jax
    import jax.numpy as jnp

    scale, zero = draw.decimal(1e-3, 0.2), draw.size(0, 20)
    kind = draw.one("static", "dynamic", "fake")

    def quantised(x: Any, s: Any) -> Any:
        return jnp.clip(jnp.round(x / s) + zero, -128, 127).astype(jnp.int8)

    def run(x: Any, w: Any, weight_scale: Any) -> Any:
        s = jnp.abs(x).max() / 127 if kind == "dynamic" else scale
        if kind == "fake":
            q = (jnp.clip(jnp.round(x / s), -127, 127) * s - x) + x
            return jax.nn.relu(q @ w.astype("float32")) * weight_scale
        product = jax.lax.dot_general(
            quantised(x, s), w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32
        )
        corrected = product - zero * w.astype(jnp.int32).sum(0)
        return corrected.astype("float32") * (s * weight_scale)

    return run, (array(4, 6), array(6, 5, dtype="int8"), array(5))


def _narrow(draw: Draw) -> Program:
    import jax.numpy as jnp

    kind = draw.one("float8_e4m3fn", "float8_e5m2", "bfloat16", "float16")
    scale, epsilon = draw.decimal(0.01, 4), draw.decimal(1e-6, 1e-2)

    def run(x: Any, w: Any, b: Any) -> Any:
        a, c = (v.astype(kind).astype("bfloat16") for v in (x * scale, w))
        y = (a @ c).astype("float32") / scale + b.astype("bfloat16").astype("float32")
        return (y / jnp.sqrt((y * y).mean(-1, keepdims=True) + epsilon)).astype("bfloat16")

    return run, (array(4, 6), array(6, 8), array(8))


def _state_space(draw: Draw) -> Program:
    """The selective scan of Mamba, forwards, by a loop or by an associative scan."""
    import jax
    import jax.numpy as jnp

    states, is_parallel, floor = draw.size(2, 4), draw.one(True, False), draw.decimal(1e-4, 0.1)

    def run(x: Any, p: Any) -> Any:
        delta = jax.nn.softplus(x @ p["d"]) + floor
        decay = jnp.exp(-jnp.exp(p["a"]) * delta[..., None])
        gain = (delta * x)[..., None] * (x @ p["b"])[:, None, :]
        if is_parallel:
            _, h = jax.lax.associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (decay, gain))
        else:
            zero = jnp.zeros(decay.shape[1:])
            _, h = jax.lax.scan(lambda s, r: (r[0] * s + r[1],) * 2, zero, (decay, gain))
        return (h * (x @ p["c"])[:, None, :]).sum(-1) * jax.nn.silu(x)

    width = 4
    shapes = {"d": array(width, width), "a": array(width, states)}
    return run, (array(5, width), shapes | {n: array(width, states) for n in "bc"})


def _loops(draw: Draw) -> Program:
    import jax
    import jax.numpy as jnp

    steps, step, stiffness, damping = (
        draw.size(3, 6),
        draw.decimal(1e-3, 0.2),
        draw.decimal(0.1, 9),
        draw.decimal(0.01, 1),
    )
    kind = draw.one("verlet", "runge-kutta", "heat", "jacobi", "cumulative")

    def force(x: Any) -> Any:
        offset = x[None] - x[:, None]
        return (offset / ((offset**2).sum(-1, keepdims=True) + damping) ** 1.5).sum(1) - stiffness * x

    def run(x: Any, v: Any) -> Any:
        def verlet(_: Any, s: Any) -> Any:
            half = s[1] + 0.5 * step * force(s[0])
            moved = s[0] + step * half
            return moved, half + 0.5 * step * force(moved)

        def runge_kutta(_: Any, s: Any) -> Any:
            def f(u: Any, w: Any) -> tuple[Any, Any]:
                return w, -stiffness * jnp.sin(u) - damping * w

            k1 = f(*s)
            k2 = f(s[0] + step / 2 * k1[0], s[1] + step / 2 * k1[1])
            k3 = f(s[0] + step / 2 * k2[0], s[1] + step / 2 * k2[1])
            k4 = f(s[0] + step * k3[0], s[1] + step * k3[1])
            return tuple(u + step / 6 * (a + 2 * b + 2 * c + d) for u, a, b, c, d in zip(s, k1, k2, k3, k4))

        def heat(_: Any, s: Any) -> Any:
            p = jnp.pad(s[0], 1, mode="edge")
            laplacian = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * s[0]
            return s[0] + step * damping * laplacian, s[1]

        def jacobi(_: Any, s: Any) -> Any:
            return (s[1] - s[0] @ s[0].T @ s[0]) / stiffness, s[1]

        if kind == "cumulative":
            return jnp.cumsum(x, 0), jnp.cumprod(v, 1), jax.lax.cumlogsumexp(x, 0), jax.lax.cummax(v)
        body = {"verlet": verlet, "runge-kutta": runge_kutta, "heat": heat, "jacobi": jacobi}[kind]
        return jax.lax.fori_loop(0, steps, body, (x, v))

    return run, (array(4, 3), array(4, 3))


def _linear_algebra(draw: Draw) -> Program:
    import jax
    import jax.numpy as jnp

    ridge, kind = (
        draw.decimal(1e-4, 1),
        draw.one("cholesky", "ridge", "kalman", "gaussian process", "householder"),
    )
    length = draw.decimal(0.1, 3)

    def run(x: Any, y: Any) -> Any:
        gram = x.T @ x + ridge * jnp.eye(x.shape[1])
        if kind == "cholesky":
            factor = jnp.linalg.cholesky(gram)
            return jax.scipy.linalg.solve_triangular(factor, x.T @ y, lower=True), jnp.log(
                jnp.diag(factor)
            ).sum()
        if kind == "ridge":
            return jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(gram), True), x.T @ y)
        if kind == "kalman":
            s = gram[0, 0] + ridge
            gain = gram[:, 0] / s
            return gain * (y[0] - x[0].sum()), gram - jnp.outer(gain, gram[0])
        if kind == "gaussian process":
            d = ((x[:, None] - x[None]) ** 2).sum(-1)
            k = jnp.exp(-0.5 * d / length**2) + ridge * jnp.eye(len(x))
            return k @ y, jnp.linalg.cholesky(k + len(x) * jnp.eye(len(x)))
        v = x[:, 0] + jnp.sign(x[0, 0]) * jnp.linalg.norm(x[:, 0])
        return x - 2 * jnp.outer(v, v @ x) / (v @ v)

    return run, (array(5, 3), array(5))


def _signal(draw: Draw) -> Program:
    import jax.numpy as jnp

    n, cut, gain = draw.one(8, 12, 16), draw.decimal(0.1, 0.9), draw.decimal(0.1, 5)
    kind = draw.one("filter", "spectrum", "complex")

    def run(x: Any, y: Any) -> Any:
        if kind == "filter":
            return jnp.fft.irfft(jnp.fft.rfft(x) * jnp.exp(-cut * jnp.arange(n // 2 + 1)), n) * gain
        if kind == "spectrum":
            window = 0.54 - 0.46 * jnp.cos(2 * jnp.pi * jnp.arange(n) / (n - 1))
            return jnp.abs(jnp.fft.rfft(x * window)) ** 2 * gain
        z = x + 1j * y
        return jnp.abs(z), (z * z.conj()).real, z / (z + gain), jnp.exp(z * cut), jnp.sqrt(z) ** 2

    return run, (array(2, n), array(2, n))


def _complex(draw: Draw) -> Program:
    import jax.numpy as jnp

    a, b = draw.decimal(0.1, 3), draw.decimal(0.1, 3)
    functions = (
        lambda z, u: jnp.exp(a * z) * u,
        lambda z, u: jnp.log(z) + b * jnp.log(u),
        lambda z, u: jnp.sqrt(z * u),
        lambda z, u: z**2 / (u + a),
        lambda z, u: jnp.sin(z) * jnp.cos(u),
        lambda z, u: jnp.tanh(z) + u * b,
        lambda z, u: jnp.power(z, b) * u,
        lambda z, u: jnp.abs(z) * u / jnp.abs(u),
        lambda z, u: jnp.angle(z) + jnp.real(u * z),
        lambda z, u: jnp.where(jnp.real(z) > 0, z, -z) * u.conj(),
    )
    chosen = [draw.one(*functions) for _ in range(4)]
    return (lambda z, u: [f(z, u) for f in chosen]), (array(5, dtype="complex64"),) * 2


def _indexing(draw: Draw) -> Program:
    import jax
    import jax.numpy as jnp

    rate, kind, margin = (
        draw.decimal(1e-3, 1),
        draw.one("embedding", "segment", "topk", "sort", "interp"),
        draw.decimal(0.1, 2),
    )

    def run(table: Any, rows: Any) -> Any:
        if kind == "embedding":
            return table.at[rows].add(-rate * jnp.tanh(table[rows])), table[rows].sum(0) * rate
        if kind == "segment":
            total = jax.ops.segment_sum(table, rows, 4)
            return total / (1e-6 + jax.ops.segment_sum(table * table, rows, 4)), jax.ops.segment_max(
                table, rows, 4
            )
        if kind == "topk":
            values, where = jax.lax.top_k(table, 3)
            return jax.nn.softmax(values / rate), where
        if kind == "sort":
            return (
                jnp.sort(table, 0) * rate,
                jnp.argsort(table[:, 0]),
                jnp.median(table),
                jnp.quantile(table, 0.37, axis=0),
            )
        return jnp.interp(table[:, 0], jnp.linspace(-margin, margin, 7), rate * jnp.arange(7.0) ** 2)

    return run, (array(6, 5), array(6, dtype="int32"))


def _normalised(draw: Draw) -> Program:
    import jax

    norms = [normalisation(draw) for _ in range(2)]
    dtype, momentum = draw.one("float32", "bfloat16", "float16"), draw.decimal(0.01, 0.99)

    def run(x: Any, running: Any) -> Any:
        y = norms[0](x) * momentum + norms[1](x) * (1 - momentum)
        pulled = jax.grad(lambda x: (norms[0](x) ** 3).astype("float32").sum())(x)
        return y, running * momentum + (1 - momentum) * x.mean(0), pulled

    return run, (array(4, 8, dtype=dtype), array(8, dtype=dtype))


def _reinforcement(draw: Draw) -> Program:
    import jax
    import jax.numpy as jnp

    gamma, trace, clip, entropy = (
        draw.decimal(0.8, 0.99), draw.decimal(0.8, 0.98), draw.decimal(0.05, 0.4), draw.decimal(1e-3, 0.1)
    )  # fmt: skip

    def run(logits: Any, old: Any, values: Any, rewards: Any, actions: Any) -> Any:
        following = jnp.append(values[1:], 0.0)
        delta = rewards + gamma * following - values
        _, advantage = jax.lax.scan(lambda c, d: (d + gamma * trace * c,) * 2, 0.0, delta, reverse=True)
        log_p = jax.nn.log_softmax(logits)
        ratio = jnp.exp(jnp.take_along_axis(log_p, actions[:, None], 1)[:, 0] - old)
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        surrogate = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - clip, 1 + clip) * advantage)
        return -surrogate.mean() + entropy * (jnp.exp(log_p) * log_p).sum(-1).mean(), advantage

    return jax.value_and_grad(run, has_aux=True), (
        array(5, 3), array(5), array(5), array(5), array(5, dtype="int32")
    )  # fmt: skip


def _distributions(draw: Draw) -> Program:
    import jax
    import jax.numpy as jnp
    from jax.scipy import stats

    a, b = draw.decimal(0.3, 5), draw.decimal(0.3, 5)
    kinds = (
        lambda x: stats.norm.logpdf(x, a, b),
        lambda x: stats.beta.logpdf(jax.nn.sigmoid(x), a, b),
        lambda x: stats.gamma.logpdf(jnp.abs(x) + 0.1, a, scale=b),
        lambda x: stats.t.logpdf(x, a, 0.0, b),
        lambda x: stats.laplace.logpdf(x, a, b),
        lambda x: stats.logistic.logpdf(x * b),
        lambda x: stats.cauchy.logpdf(x, a, b),
        lambda x: stats.norm.cdf(x, a, b),
        lambda x: stats.expon.logpdf(jnp.abs(x), 0.0, b),
    )
    chosen = [draw.one(*kinds) for _ in range(3)]

    def run(x: Any) -> Any:
        return sum(f(x) for f in chosen), jax.vmap(jax.grad(lambda x: sum(f(x) for f in chosen)))(x)

    return run, (array(7),)


NUMERIC: dict[str, Callable[[Draw], Program]] = {
    "special": _special,
    "special_2": _special,
    "special_loops": _special_loops,
    "transcendental": _transcendental,
    "transcendental_2": _transcendental,
    "finance": _finance,
    "sampling": _sampling,
    "sampling_2": _sampling,
    "nucleus": _nucleus,
    "quantised": _quantised,
    "narrow": _narrow,
    "state_space": _state_space,
    "loops": _loops,
    "linear_algebra": _linear_algebra,
    "signal": _signal,
    "complex": _complex,
    "indexing": _indexing,
    "normalised": _normalised,
    "reinforcement": _reinforcement,
    "distributions": _distributions,
}
