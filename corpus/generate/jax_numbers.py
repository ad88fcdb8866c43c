"""JAX: element types, conversions, bits and the unary functions."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax
from jax_programs import array
from programs import Call, program


@program("dot", "s8", "s32", "quantisation")
def int8_dot() -> Iterator[Call]:
    """A quantised product: s8 operands, s32 accumulation, rescaled to f32."""

    def int8_dot(x, w, scale):
        step = jnp.max(jnp.abs(x), axis=1, keepdims=True) / 127.0
        quantised = jnp.clip(jnp.round(x / step), -127, 127).astype(jnp.int8)
        total = lax.dot(quantised, w, preferred_element_type=jnp.int32)
        return total.astype(jnp.float32) * step * scale

    weights = np.random.default_rng(1).integers(-127, 128, (12, 5)).astype(np.int8)
    yield int8_dot, array(4, 12), weights, array(5, seed=2)


@program("s4", "u4", "convert", "shift")
def int4() -> Iterator[Call]:
    """Four-bit integers: arithmetic, unpacking from bytes, and a product after widening."""

    def int4(signed, unsigned, packed, x):
        low = lax.bitcast_convert_type(packed, jnp.uint4).reshape(packed.shape[0], -1)
        weights = signed.astype(jnp.float32)
        return signed + signed, unsigned * unsigned, low.astype(jnp.int32), x @ weights

    signed = np.arange(-8, 8).reshape(4, 4).astype(ml_dtypes.int4)
    unsigned = np.arange(16).reshape(4, 4).astype(ml_dtypes.uint4)
    yield int4, signed, unsigned, array(3, 4, dtype="uint8"), array(2, 4)


@program("s4", "convert", "wrong result of XLA")
def int4_product() -> Iterator[Call]:
    """A product of four-bit integers, widened afterwards: float-normalization-s4 loses its wrap-around."""

    def int4_product(x, y):
        return (x * y).astype(jnp.int8) + 1

    x = np.array([[-4, 5, -5, 0], [3, 7, -8, 1]]).astype(ml_dtypes.int4)
    yield int4_product, x, x[::-1].copy()


@program("dot", "f8e4m3fn", "f8e5m2", "f8e4m3b11fnuz")
def float8_dot() -> Iterator[Call]:
    """Products of eight-bit floats with scales, and the round trip through each such type."""
    narrow = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz")

    def float8_dot(x, w, scale):
        a, b = (x / scale).astype(jnp.float8_e4m3fn), w.astype(jnp.float8_e5m2)
        product = lax.dot(a.astype(jnp.bfloat16), b.astype(jnp.bfloat16), preferred_element_type=jnp.float32)
        direct = lax.dot(a, a.T, preferred_element_type=jnp.float32)
        return product * scale, direct, [x.astype(t).astype(jnp.float32) for t in narrow]

    yield float8_dot, array(4, 6) * 100, array(6, 5, seed=1), np.float32(2.0)


@program("convert", "f4e2m1fn", "f8e8m0fnu", "saturation", x64=True)
def converts() -> Iterator[Call]:
    """Conversions between integers and floats of all widths, with NaN, infinities and values out of range."""
    targets = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool")
    floats = ("float16", "bfloat16", "float64", "float8_e3m4", "float8_e4m3", "float4_e2m1fn", "complex64")

    def converts(x, n):
        rounded = lax.reduce_precision(x, exponent_bits=5, mantissa_bits=10)
        scales = jnp.abs(x).astype(jnp.float8_e8m0fnu).astype(jnp.float32)
        return (
            [x.astype(t) for t in targets],
            [x.astype(t).astype(jnp.complex64) for t in floats],
            [n.astype(t) for t in targets + floats[:3]],
            (rounded, scales),
        )

    special = [0.0, -0.0, np.nan, np.inf, -np.inf, 3e9, -3e9, 300.7, -1.5, 2.5, 1e-40, 65519.0]
    wide = np.array([0, -1, 127, 128, 255, 256, 2**31, -(2**31) - 1, 2**53 + 1, -(2**63)], np.int64)
    yield converts, np.array(special, np.float32), wide


@program("popcnt", "count-leading-zeros", "shift", "bitcast-convert", "xor", "not")
def bits() -> Iterator[Call]:
    """Bitwise operations, shifts beyond the width, and reinterpretation between widths."""

    def bits(n, u, amount, x):
        return (
            n & 0x55,
            n | amount,
            n ^ ~amount,
            lax.shift_left(n, amount),
            lax.shift_right_arithmetic(n, amount),
            lax.shift_right_logical(u, amount.astype(jnp.uint32)),
            lax.population_count(u),
            lax.clz(u),
            lax.bitcast_convert_type(x, jnp.int32),
            lax.bitcast_convert_type(x, jnp.uint8),
            lax.bitcast_convert_type(u.astype(jnp.uint8).reshape(2, 4), jnp.uint32),
            lax.nextafter(x, jnp.float32(0)),
        )

    n = np.array([0, 1, -1, 5, -77, 2**31 - 1, -(2**31), 12345], np.int32)
    amount = np.array([0, 1, 31, 32, 33, -1, 4, 7], np.int32)
    yield bits, n, n.view(np.uint32), amount, array(8)


@program("divide", "remainder", "power", "sign", "clamp")
def integers() -> Iterator[Call]:
    """Integer arithmetic at its edges: division by zero, the smallest integer, wrap-around, powers."""

    def integers(a, b, small):
        return (
            lax.div(a, b),
            lax.rem(a, b),
            lax.integer_pow(a, 3),
            lax.mul(a, b),
            lax.sign(a),
            jnp.abs(a),
            a // jnp.where(b == 0, 1, b),
            lax.clamp(np.int32(-5), a, np.int32(9)),
            small + small,
            small * small,
            lax.max(a, b),
        )

    a = np.array([7, -7, 7, -7, 0, -(2**31), 2**31 - 1, 5], np.int32)
    b = np.array([2, 2, -2, 0, 0, -1, 3, 0], np.int32)
    yield integers, a, b, np.array([100, -100, 127, -128], np.int8)


@program("complex", "real", "imag", "abs", "c64")
def complex_numbers() -> Iterator[Call]:
    """Complex arithmetic and functions, a complex product of matrices, and a gradient."""

    def complex_numbers(z, w):
        return (
            z * w,
            z / w,
            jnp.abs(z),
            jnp.angle(z),
            jnp.exp(z),
            jnp.log(z),
            jnp.sqrt(z),
            jnp.tanh(z),
            jnp.sin(w),
            lax.pow(z, w),
            jnp.conj(z) @ w.T,
            lax.complex(z.real, w.imag),
            jax.grad(lambda z: jnp.sum(jnp.abs(z * w) ** 2).real)(z),
        )

    z = (array(3, 4) + 1j * array(3, 4, seed=1)).astype(np.complex64)
    w = (array(3, 4, seed=2) + 1j * array(3, 4, seed=3)).astype(np.complex64)
    yield complex_numbers, z, w


@program("erf", "tan", "cbrt", "logistic", "log-plus-one", "exponential-minus-one", "atan2")
def special_functions() -> Iterator[Call]:
    """The unary functions HLO has opcodes for, and those that JAX builds from them."""

    def special_functions(x, y):
        positive = jnp.abs(x) + 0.1
        direct = [lax.erf, lax.tan, lax.cbrt, lax.logistic, lax.expm1, lax.sin, lax.cos, lax.tanh]
        direct += [lax.floor, lax.ceil, lax.sign, lax.is_finite, lax.asinh, lax.sinh, lax.cosh, lax.atan]
        guarded = [lax.log, lax.log1p, lax.sqrt, lax.rsqrt, lax.lgamma, lax.digamma, lax.bessel_i0e]
        away = lax.round(x * 2, lax.RoundingMethod.AWAY_FROM_ZERO)
        even = lax.round(x * 2, lax.RoundingMethod.TO_NEAREST_EVEN)
        return (
            [f(x) for f in direct],
            [f(positive) for f in guarded],
            (lax.atan2(x, y), lax.pow(positive, y), lax.rem(x, y), away, even),
            (lax.erf_inv(jnp.tanh(x)), lax.erfc(x), lax.acos(jnp.tanh(x)), lax.bessel_i1e(x)),
        )

    yield special_functions, array(12), array(12, seed=1)
