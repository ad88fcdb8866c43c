"""Random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotool.backends.numpy.elementwise import adapt
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.patterns import reinterpret
from hlotool.backends.numpy.precision import compute_dtype
from hlotool.backends.numpy.random_bits import philox_bits, threefry_bits
from hlotool.backends.numpy.registry import Calling, Kernel, lowers
from hlotool.backends.numpy.run import Run
from hlotool.ir.dtypes import Array, dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType, TupleShape

_UNSIGNED = {
    1: ElementType.U1,
    2: ElementType.U2,
    4: ElementType.U4,
    8: ElementType.U8,
    16: ElementType.U16,
    32: ElementType.U32,
    64: ElementType.U64,
}


@lowers("rng-bit-generator")
def rng_bit_generator(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The new state and random bits, or these alone, whatever their type.

    The state is u64[2], key and counter; Philox also takes u64[3] with a 128-bit counter, and with u64[2]
    uses the key as the counter's upper half. `rng_default` is Philox, as on CPU and GPU.
    jaxlib 0.12 makes bits of s4 and s2 without their sign: converted they are 0 to 15, and as results of a
    program they cannot be read (earlier versions do as here, which is what the type says).
    XLA: operation_semantics.md#rngbitgenerator, rng_bit_generator_expander.cc.
    """
    algorithm = instruction.text("algorithm")
    if algorithm not in ("rng_default", "rng_philox", "rng_three_fry"):
        raise lowering.unsupported(instruction, f"random algorithm {algorithm}")
    shape = _bits_shape(instruction, lowering)
    element_type, dims = shape.element_type, shape.dims
    unsigned = _UNSIGNED[element_type.bits]

    def kernel(state: Array) -> Any:
        key, *counters = (int(word) for word in state)
        if algorithm == "rng_three_fry":
            numbers, counter = threefry_bits(key, counters[0], element_type.bits, dims)
        else:
            high = counters[1] if len(counters) > 1 else key
            numbers, counter = philox_bits(key, counters[0] | high << 64, element_type.bits, dims)
        words = [key, counter % (1 << 64), counter >> 64]
        new_state = np.array(words[: len(state)], np.uint64)
        return new_state, reinterpret(numbers, unsigned, element_type).reshape(dims)

    return kernel if isinstance(instruction.shape, TupleShape) else lambda state: kernel(state)[1]


def _bits_shape(instruction: Instruction, lowering: Lowering) -> ArrayShape:
    shape = instruction.shape
    bits = shape.elements[1] if isinstance(shape, TupleShape) and len(shape.elements) == 2 else shape
    if not isinstance(bits, ArrayShape):
        raise lowering.unsupported(instruction, f"random bits of shape {shape}")
    if bits.element_type.is_complex or bits.element_type is ElementType.PRED:
        raise lowering.unsupported(instruction, f"random bits are not defined on {bits.element_type}")
    return bits


@lowers("rng-get-and-update-state")
def rng_get_and_update_state(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The module's 128-bit generator state, low half first, which then moves on by `delta`.

    Every run starts from the state that XLA compiles into a program; a real program goes on from run to run.
    XLA: hlo_opcode.h.
    """
    delta = instruction.integer("delta")

    def kernel(_: list[Any], run: Run) -> Array:
        state = run.rng_state
        run.rng_state = (state + delta) % (1 << 128)
        return np.array([state % (1 << 64), state >> 64], np.uint64)

    return Calling(kernel)


@lowers("rng")
def rng(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Numbers of a distribution: uniform over [a, b), or normal with mean a and standard deviation b.

    No two XLA programs draw the same numbers here. These come from a generator with a fixed seed that starts
    anew with every run, so runs repeat; they may be compared with XLA's by their distribution only.
    XLA: operation_semantics.md#rnguniform, #rngnormal.
    """
    shape = instruction.array_shape
    element_type, dims = shape.element_type, shape.dims
    distribution = instruction.text("distribution")
    if distribution not in ("rng_uniform", "rng_normal"):
        raise lowering.unsupported(instruction, f"distribution {distribution}")
    if element_type.is_floating:
        return _floats(element_type, dims, distribution)
    if element_type.is_integer and distribution == "rng_uniform":
        return _uniform_integers(element_type, dims)
    raise lowering.unsupported(instruction, f"{distribution} is not defined on {element_type}")


def _floats(element_type: ElementType, dims: tuple[int, ...], distribution: str) -> Kernel:
    uniform = distribution == "rng_uniform"
    finish = adapt(_between if uniform else _around, [element_type] * 3, element_type)
    dtype = compute_dtype(element_type)

    def kernel(parameters: list[Any], run: Run) -> Any:
        draw = run.generator.random if uniform else run.generator.standard_normal
        return finish(parameters[0], parameters[1], draw(dims, dtype))

    return Calling(kernel)


def _between(low: Array, high: Array, fraction: Array) -> Any:
    return fraction * (high - low) + low


def _around(mean: Array, deviation: Array, normal: Array) -> Any:
    return normal * deviation + mean


def _uniform_integers(element_type: ElementType, dims: tuple[int, ...]) -> Kernel:
    dtype = np.dtype(np.int64 if element_type.is_signed else np.uint64)
    final = dtype_of(element_type)

    def kernel(limits: list[Any], run: Run) -> Array:
        low, high = int(limits[0]), int(limits[1])
        numbers = run.generator.integers(low, max(low + 1, high), dims, dtype)
        return np.asarray(numbers).astype(final)

    return Calling(kernel)
