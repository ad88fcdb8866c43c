"""Arrays of other kinds than NumPy's, on which models of library calls run, too.

They understand NumPy's operators and functions by themselves (`__array_ufunc__`, `__array_function__`); what
the backend does by other means than these, it asks them for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from hlotool.ir.dtypes import Array


class ForeignArray(Protocol):
    """What such an array does by itself. It has one zero, which has no sign."""

    def multiply_matrices(self, other: Any) -> Any:
        """As `contraction.multiply_matrices`."""

    def convolved(self, other: Any, convolve: Callable[[Array, Array], Array]) -> Any:
        """What `convolve`, a function of f64 arrays that is linear in both, gives."""

    def erf(self) -> Any:
        """The error function."""


def foreign(array: Any) -> ForeignArray | None:
    """`array`, if it is not one of NumPy's."""
    if isinstance(array, np.ndarray | np.generic):
        return None
    own: ForeignArray = array
    return own
