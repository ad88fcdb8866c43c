"""Programs that a released jaxlib compiles wrongly, each after a public report or found by `hlotool fuzz`."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from programs import Call, Fault, program


@program(
    "dynamic-slice",
    fault=Fault(
        level="pass",
        pass_name="algsimp",
        report="https://github.com/openxla/xla/pull/48024",
        wrong="the start index of the inner slice is clamped by the size of the outer one",
        right_on="0.12.0.1",
    ),
)
def nested_dynamic_slice() -> Iterator[Call]:
    """A dynamic slice of a dynamic slice whose start index is out of range, and so is clamped."""

    def nested_dynamic_slice(x, start, inner_start):
        rows = lax.dynamic_slice(x, (start,), (4,))
        return lax.dynamic_slice(rows, (inner_start,), (2,)) * 2.0

    yield nested_dynamic_slice, np.arange(10, dtype=np.float32), np.int32(8), np.int32(0)


@program(
    "dynamic-update-slice",
    "fusion",
    fault=Fault(
        level="codegen",
        opcodes=("dynamic-update-slice",),
        report="https://github.com/openxla/xla/issues/49176",
        wrong="the fusion updates its operand in place and reads elements that it has overwritten",
    ),
)
def shifted_update_in_place() -> Iterator[Call]:
    """Rows moved down by one within an array, then reshaped."""

    def shifted_update_in_place(x):
        base = x + np.int32(1)
        return lax.dynamic_update_slice(base, base[:3], (1, 0, 0)).reshape((1, 4, 1))

    yield shifted_update_in_place, np.arange(4, dtype=np.int32).reshape(4, 1, 1)


@program(
    "dot",
    "reduce",
    "fusion",
    fault=Fault(
        level="runtime-library",
        opcodes=("dot", "multiply", "reduce"),
        report="https://github.com/jax-ml/jax/issues/39103",
        wrong="the library that runs the fusion loses the last row of 32,769",
        right_on="0.12.0.1",
    ),
)
def norms_of_many_rows() -> Iterator[Call]:
    """A small matrix times each of 32,769 rows, and the squared norms of the results."""

    def norms_of_many_rows(x):
        matrix = jnp.eye(3, dtype=x.dtype)
        return jax.vmap(lambda row: jnp.sum((matrix @ row) ** 2))(x)

    x = np.zeros((32769, 3), np.float32)
    x[:, 0] = np.arange(len(x)) % 7 + 1
    yield norms_of_many_rows, x


@program(
    "atan2",
    "xor",
    fault=Fault(
        level="codegen",
        opcodes=("atan2",),
        report="https://github.com/openxla/xla/pull/46594",
        wrong="atan2(0, 0), which is 0, becomes NaN when the kernel's compiler folds xor(a, a) to 0",
        right_on="0.12.0.1",
    ),
)
def atan2_of_zeros() -> Iterator[Call]:
    """The angle of (0, 0), where the zeros are the exclusive or of a comparison with itself."""

    def atan2_of_zeros(x, y):
        zero = ((x < y) ^ (x < y)).astype(jnp.float32)
        return jnp.arctan2(zero, zero) + x

    yield atan2_of_zeros, np.linspace(0, 1, 6, dtype=np.float32), np.full(6, 0.5, np.float32)


@program(
    "while",
    fault=Fault(
        level="pass",
        pass_name="simplify-while-loops",
        report="https://github.com/openxla/xla/pull/48454",
        wrong="a loop from -1 to 1 in steps of 3, which runs once, is taken for one that never runs",
        right_on="0.12.0.1",
    ),
)
def loop_of_one_wide_step() -> Iterator[Call]:
    """A loop whose step is wider than the way from its negative start to its end."""

    def loop_of_one_wide_step(x):
        _, counted = lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 3, c[1] + 1), (np.int32(-1), x))
        return counted

    yield loop_of_one_wide_step, np.zeros(3, np.int32)


@program(
    "count-leading-zeros",
    fault=Fault(
        level="pass",
        pass_name="constant_folding",
        report="",
        wrong="the leading zeros of a negative constant, of which there are none, become -32",
        right_on="0.12.0.1",
    ),
)
def leading_zeros_of_constants() -> Iterator[Call]:
    """The leading zeros of constants, some of them negative."""

    def leading_zeros_of_constants(x):
        return x + lax.clz(~jnp.array([2, 0, -5], jnp.int32))

    yield leading_zeros_of_constants, np.zeros(3, np.int32)


@program(
    "bitcast-convert",
    "s4",
    fault=Fault(
        level="pass",
        pass_name="constant_folding",
        report="",
        wrong="the eight nibbles of a constant become every second one, and zeros",
        right_on="0.12.0.1",
    ),
)
def nibbles_of_a_constant() -> Iterator[Call]:
    """A constant of 32 bits as eight numbers of four bits."""

    def nibbles_of_a_constant(x):
        nibbles = lax.bitcast_convert_type(jnp.array([0x12345678], jnp.int32), jnp.int4)
        return x + nibbles.astype(jnp.int32)

    yield nibbles_of_a_constant, np.zeros((1, 8), np.int32)


@program(
    "popcnt",
    "s4",
    fault=Fault(
        level="pass",
        pass_name="float-normalization-s4",
        report="",
        wrong="the bits of a negative number of four bits are counted in eight",
    ),
)
def bits_of_narrow_numbers() -> Iterator[Call]:
    """How many bits are set in numbers of four bits, some of them negative."""

    def bits_of_narrow_numbers(x):
        return lax.population_count(x.astype(jnp.int4)).astype(jnp.int32)

    yield bits_of_narrow_numbers, np.array([-2, -1, 3], np.int32)


@program(
    "abs",
    "multiply",
    fault=Fault(
        level="pass",
        pass_name="algsimp",
        report="https://github.com/tensorflow/tensorflow/issues/118178",
        wrong="the absolute value of a square of integers is taken for the square, which has wrapped",
        right_on="0.12.0.1",
    ),
)
def size_of_a_square() -> Iterator[Call]:
    """The absolute values of squares of integers, some of them too large for the type."""

    def size_of_a_square(x):
        return jnp.abs(x * x)

    yield size_of_a_square, np.array([46341, -3, 65535], np.int32)


@program(
    "convolution",
    fault=Fault(
        level="pass",
        pass_name="constant_folding",
        report="",
        wrong="a convolution of constants stops at the largest integer where it has to wrap",
    ),
)
def convolution_of_constants() -> Iterator[Call]:
    """A convolution of constants of 32 bits, whose products have 33."""

    def convolution_of_constants(x):
        image = jnp.array([[[3, 1, -3]]], jnp.int32)
        weights = jnp.array([[[2**30, 1]]], jnp.int32)
        return x + lax.conv_general_dilated(image, weights, (1,), "VALID")

    yield convolution_of_constants, np.zeros((1, 1, 2), np.int32)


@program(
    "multiply",
    "reduce",
    "u8",
    fault=Fault(
        level="runtime-library",
        opcodes=("multiply", "reduce"),
        report="",
        wrong="the library that runs the fusion stops at 255 where a product of bytes has to wrap",
    ),
)
def largest_squares_of_bytes() -> Iterator[Call]:
    """The larger one of two squares of numbers of eight bits, 4,096 times."""

    def largest_squares_of_bytes(x):
        return jnp.max(x * x, axis=0)

    yield largest_squares_of_bytes, np.arange(8192).reshape(2, 4096).astype(np.uint8)


@program(
    "dynamic-update-slice",
    "s8",
    fault=Fault(
        level="codegen",
        opcodes=("dynamic-update-slice",),
        report="",
        wrong="the last start that fits, 272, is cut to the 8 bits of the start, and the update begins at 16",
        right_on="0.12.0.1",
    ),
)
def update_at_a_byte() -> Iterator[Call]:
    """An update of an array that is longer than the type of its start can count."""

    def update_at_a_byte(x, y):
        return lax.dynamic_update_slice(x, y, (np.int8(87),))

    yield update_at_a_byte, np.zeros(300, np.int32), np.arange(1, 29, dtype=np.int32)


@program(
    "pad",
    "reduce-window",
    fault=Fault(
        level="pass",
        pass_name="algsimp",
        report="https://github.com/openxla/xla/issues/48715",
        wrong="a padding that cuts off is added to that of windows, which then cover what was cut off",
        right_on="0.12.0.1",
    ),
)
def windows_on_what_was_cut_off() -> Iterator[Call]:
    """Sums in windows that reach beyond an array, of which a negative padding has cut the last row off."""

    def windows_on_what_was_cut_off(x):
        cut = lax.pad(x, np.int32(0), [(3, -1, 1), (0, 0, 0)])
        return lax.reduce_window(cut, np.int32(0), lax.add, (1, 2), (1, 1), [(2, 1), (0, 0)])

    yield windows_on_what_was_cut_off, np.array([[1, 2]], np.int32)


@program(
    "abs",
    "compare",
    fault=Fault(
        level="pass",
        pass_name="algsimp",
        report="https://github.com/openxla/xla/pull/46628",
        wrong="the absolute value of the smallest integer, which is itself, is taken for no negative number",
        right_on="0.12.0.1",
    ),
)
def size_below_zero() -> Iterator[Call]:
    """Whether absolute values are negative, which that of the smallest integer is."""

    def size_below_zero(x):
        return lax.abs(x) < 0

    yield size_below_zero, np.array([-128, -1, 0, 5], np.int8)


@program(
    "iota",
    "divide",
    fault=Fault(
        level="pass",
        pass_name="algsimp",
        report="https://github.com/openxla/xla/pull/46628",
        wrong="an iota that has wrapped is divided by a power of two with a logical shift",
        right_on="0.12.0.1",
    ),
)
def quotients_of_wrapped_indices() -> Iterator[Call]:
    """Quotients of an iota that is too long for its type, so that it has negative numbers."""

    def quotients_of_wrapped_indices(x):
        return lax.div(lax.iota(np.int8, 257), np.int8(4)) + x

    yield quotients_of_wrapped_indices, np.array(0, np.int8)


@program(
    "reduce",
    "convert",
    "fusion",
    fault=Fault(
        level="runtime-library",
        opcodes=("reduce", "convert"),
        report="",
        wrong="the library that runs the fusion rounds to the nearest byte, not towards zero",
    ),
)
def whole_bytes_of_sums() -> Iterator[Call]:
    """Sums of 4,096 columns as whole numbers of eight bits, towards zero."""

    def whole_bytes_of_sums(x):
        return jnp.sum(x, axis=0).astype(jnp.int8)

    halves = np.arange(8192, dtype=np.float32).reshape(2, 4096) % np.float32(25)
    yield whole_bytes_of_sums, halves * np.float32(0.4)


@program(
    "clamp",
    "maximum",
    fault=Fault(
        level="pass",
        pass_name="algsimp",
        report="",
        wrong="a clamp is taken for no less than its lower limit, which it is where the upper limit is below",
    ),
)
def limits_that_cross() -> Iterator[Call]:
    """What is between two limits, the upper of which may be below the lower, and no less than the lower."""

    def limits_that_cross(x, low, high):
        return lax.max(lax.clamp(low, x, high), low)

    low, high = np.array([0, 0, 1], np.float32), np.array([2, -2, -7], np.float32)
    yield limits_that_cross, np.array([0, 5, 1], np.float32), low, high


@program(
    "reduce-window",
    fault=Fault(
        level="runtime-library",
        opcodes=("reduce-window",),
        report="https://github.com/openxla/xla/issues/48714",
        wrong="the library leaves out that a dimension is spread where windows and strides are 1 in it",
    ),
)
def windows_beside_spread_elements() -> Iterator[Call]:
    """Sums of pairs of columns of a matrix whose rows are moved apart."""

    def windows_beside_spread_elements(x):
        apart = {"base_dilation": (2, 1)}
        return lax.reduce_window(x, np.float32(0), lax.add, (1, 2), (1, 2), "VALID", **apart)

    yield windows_beside_spread_elements, np.arange(9600, dtype=np.float32).reshape(600, 16) % np.float32(7)


@program(
    "dynamic-update-slice",
    fault=Fault(
        level="codegen",
        opcodes=("dynamic-update-slice",),
        report="",
        wrong="constants of two bits are written with the bits of their sign, into the elements after them",
    ),
)
def update_of_two_bits() -> Iterator[Call]:
    """Two elements of three, of two bits each, are replaced by a negative constant."""

    def update_of_two_bits(x):
        return lax.dynamic_update_slice(x, jnp.asarray([-1, -1], jnp.int2), (0,))

    yield update_of_two_bits, np.array([1, 1, 0], jnp.int2)
