"""Arrays in the memory of a GPU. Bytes are worked out by hand from XLA's layouts."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotool.backends.gpu_ptx.images import array_in, image_of
from hlotool.errors import Unsupported
from hlotool.ir.arrays import dtype_of
from hlotool.ir.types import ArrayShape, ElementType, Layout


def test_the_layout_orders_the_elements() -> None:
    shape = ArrayShape(ElementType.U8, (2, 3), layout=Layout((0, 1)))
    assert image_of(np.array([[1, 2, 3], [4, 5, 6]], np.uint8), shape) == bytes([1, 4, 2, 5, 3, 6])


@pytest.mark.parametrize(
    ("bits", "expected"),
    [(4, bytes([0x21, 0x0F])), (0, bytes([1, 2, 0xFF]))],
)
def test_integers_of_four_bits_are_packed_where_the_layout_says_so(bits: int, expected: bytes) -> None:
    shape = ArrayShape(ElementType.S4, (3,), layout=Layout((0,), element_bits=bits))
    image = image_of(np.array([1, 2, -1], ml_dtypes.int4), shape)
    assert image[:1] == expected[:1]
    assert len(image) == len(expected)
    assert array_in(image, shape).tolist() == [1, 2, -1]


@given(
    kind=st.sampled_from(
        [
            ElementType.PRED,
            ElementType.S4,
            ElementType.U2,
            ElementType.BF16,
            ElementType.F8E4M3FN,
            ElementType.C64,
        ]
    ),
    order=st.permutations(range(3)),
    packed=st.booleans(),
    data=st.data(),
)
def test_what_is_written_is_read(
    kind: ElementType, order: list[int], packed: bool, data: st.DataObject
) -> None:
    dims = (2, 3, 5)
    bits = kind.bits if packed and kind.is_integer and kind.bits < 8 else 0
    shape = ArrayShape(kind, dims, layout=Layout(tuple(order), element_bits=bits))
    least = -(1 << kind.bits - 1) if kind.is_integer and kind.is_signed else 0
    most = 1 if kind is ElementType.PRED or kind.bits == 2 else 7
    array = np.array(
        data.draw(st.lists(st.integers(least if kind.bits < 8 else 0, most), min_size=30, max_size=30))
    )
    array = array.reshape(dims).astype(dtype_of(kind))
    image = image_of(array, shape)
    assert len(image) == -(-30 * (bits or max(8, kind.bits)) // 8)
    assert np.array_equal(array_in(image, shape), array)


@pytest.mark.parametrize(
    "shape",
    [
        ArrayShape(ElementType.F32, (4,), (True,)),
        ArrayShape(ElementType.F32, (8, 128), layout=Layout((1, 0), tiles=((8, 128),))),
    ],
)
def test_what_has_no_image(shape: ArrayShape) -> None:
    with pytest.raises(Unsupported):
        image_of(np.zeros(shape.dims, np.float32), shape)
