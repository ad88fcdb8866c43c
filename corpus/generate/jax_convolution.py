"""JAX: convolutions in the forms that HLO's window attribute allows, and their gradients."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
from jax import lax
from jax_programs import array
from programs import Call, program

NHWC = ("NHWC", "HWIO", "NHWC")


@program("convolution", "stride", "pad", "rhs_dilate", "lhs_dilate")
def conv_windows() -> Iterator[Call]:
    """Strided, dilated, asymmetrically padded and transposed convolutions in two label orders."""

    def conv_windows(x, w):
        strided = lax.conv_general_dilated(x, w, (2, 3), "SAME", dimension_numbers=NHWC)
        dilated = lax.conv_general_dilated(
            x, w, (1, 1), ((1, 2), (0, 3)), rhs_dilation=(2, 2), dimension_numbers=NHWC
        )
        cropped = lax.conv_general_dilated(x, w, (1, 1), ((-1, 2), (1, -1)), dimension_numbers=NHWC)
        channels_first = lax.conv_general_dilated(
            x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1), (1, 1), "VALID"
        )
        transposed = lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=NHWC)
        return strided, dilated, cropped, channels_first, transposed

    yield conv_windows, array(2, 7, 8, 3), array(3, 3, 3, 4, seed=1)


@program("convolution", "feature_group_count")
def conv_groups() -> Iterator[Call]:
    """Grouped and depthwise convolutions, and one without spatial dimensions."""

    def conv_groups(x, grouped, depthwise, dense):
        first = lax.conv_general_dilated(
            x, grouped, (1, 1), "SAME", dimension_numbers=NHWC, feature_group_count=2
        )
        second = lax.conv_general_dilated(
            x, depthwise, (1, 1), "VALID", dimension_numbers=NHWC, feature_group_count=4
        )
        third = lax.conv_general_dilated(x[:, 0, 0], dense, (), (), dimension_numbers=("NC", "IO", "NC"))
        return first, second, third

    yield conv_groups, array(2, 6, 6, 4), array(3, 3, 2, 6, seed=1), array(2, 2, 1, 8, seed=2), array(4, 5)


@program("convolution", "batch_group_count", "reverse")
def conv_gradients() -> Iterator[Call]:
    """Gradients of strided and grouped convolutions; the kernel gradient of the second uses batch groups."""

    def conv_gradients(x, plain, grouped):
        def loss(x, plain, grouped):
            y = lax.conv_general_dilated(x, plain, (2, 2), "SAME", dimension_numbers=NHWC)
            y = lax.conv_general_dilated(
                jnp.tanh(y), grouped, (1, 1), "SAME", dimension_numbers=NHWC, feature_group_count=4
            )
            return jnp.sum(y**2)

        return jax.grad(loss, argnums=(0, 1, 2))(x, plain, grouped)

    yield conv_gradients, array(2, 6, 6, 3), array(3, 3, 3, 4, seed=1), array(2, 2, 1, 8, seed=2)


@program("convolution", "1 and 3 dimensions", "f16")
def conv_dimensions() -> Iterator[Call]:
    """Convolutions over one and over three spatial dimensions, the second in f16."""

    def conv_dimensions(x1, w1, x3, w3):
        line = lax.conv_general_dilated(x1, w1, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))
        volume = lax.conv_general_dilated(x3, w3, (1, 2, 1), "VALID", dimension_numbers=None)
        return line, volume

    inputs = (array(2, 9, 3), array(4, 3, 5, seed=1))
    halves = (array(1, 2, 4, 5, 4, dtype="float16"), array(3, 2, 2, 2, 2, dtype="float16"))
    yield conv_dimensions, *inputs, *halves
