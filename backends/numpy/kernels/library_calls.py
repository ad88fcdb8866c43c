"""Custom calls for operations that HLO once lacked, or that a GPU does at once."""

from __future__ import annotations

import numpy as np

from hlotool.analysis.scalar_form import scalar_form
from hlotool.backends.numpy.comparators import sort_order
from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.kernels.sort import top
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import array_shapes


@custom_call("TopK", "__gpu$TopK", widens=True)
def topk_call(instruction: Instruction, lowering: Lowering) -> Kernel:
    """First elements of the last dimension and their s32 indices, as many as the result holds.

    The called computation compares two elements: GT finds the largest, LT the smallest; without one the
    largest are found. Floats compare in total order, as in XLA's CPU runtime, whatever it says; kernels for
    GPUs leave the order of equal elements open.
    XLA: topk_rewriter.cc, service/gpu/transforms/topk_specializer.cc.
    """
    k = array_shapes(instruction.shape)[0].dims[-1]
    return top(instruction.operands[0].element_type, k, finds_largest(instruction, lowering))


def finds_largest(call: Instruction, lowering: Lowering) -> bool:
    """Whether a call of TopK finds the largest elements and not the smallest."""
    forms = [scalar_form(c) for c in call.called]
    if not forms:
        return True
    order = sort_order(forms[0]) if forms[0] is not None else None
    if order is None:
        raise lowering.unsupported(call, "TopK with a comparator that is not understood")
    return order.keys[0].descending


@custom_call("cu_lu_pivots_to_permutation", "hip_lu_pivots_to_permutation")
def lu_pivots_to_permutation(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The permutation that exchanging row i with row pivots[i], for one i after the other, makes.

    Pivots count from 0; one that is no row exchanges nothing. Source: jaxlib/gpu/linalg_kernels.cu.cc.
    """
    size = instruction.dims[-1]

    def kernel(pivots: Array) -> Array:
        batch = pivots.shape[:-1]
        rows = pivots.reshape((-1, pivots.shape[-1])).astype(np.int64)
        permutation = np.broadcast_to(np.arange(size, dtype=np.int32), (len(rows), size)).copy()
        each = np.arange(len(rows))
        for row in range(rows.shape[1]):
            pivot = rows[:, row]
            other = np.where((pivot >= 0) & (pivot < size), pivot, row)
            swapped = permutation[each, other]
            permutation[each, other] = permutation[:, row]
            permutation[:, row] = swapped
        return permutation.reshape((*batch, size))

    return kernel
