"""Values of the field as arrays that say so: who compares them need not know their shapes in the program.

As they are held (see `held`), a word is like any u64 and a pair of words like any c128. Marked, both have
element types of their own, whose field `compared` is the residue in which results are compared.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.held import is_complex, is_float, pair
from hlotool.backends.field.words import join, split
from hlotool.ir.dtypes import Array
from hlotool.ir.types import Shape, TupleShape

#: The name of the residue that counts.
_COMPARED: Final = "compared"

_Residues: TypeAlias = npt.NDArray[np.uint32]


def _word(half: int) -> np.dtype[np.void]:
    """A word in whose half 0 (modulo P) or 1 (modulo Q) results are compared; P is in the high one."""
    offsets = [4, 0] if half == 0 else [0, 4]
    return np.dtype({"names": [_COMPARED, "other"], "formats": ["<u4", "<u4"], "offsets": offsets})


_WORDS: Final = (_word(0), _word(1))
_PAIRS: Final = tuple(np.dtype([("real", word), ("imaginary", word)]) for word in _WORDS)


def marked(shape: Shape, value: Any, half: int = 0) -> Any:
    """A value of `shape`, as it is held, with its words marked; others are themselves.

    Args:
        shape: of the value in the program.
        value: as it is held.
        half: in which residue results are compared: 0 for that modulo P, 1 for Q.
    """
    if isinstance(shape, TupleShape) and isinstance(value, tuple):
        return tuple(marked(part, element, half) for part, element in zip(shape.elements, value))
    if is_float(shape):
        return _viewed(np.asarray(value, np.uint64), _WORDS[half])
    if is_complex(shape):
        return _viewed(np.asarray(value, np.complex128), _PAIRS[half])
    return value


def marked_residues(shape: Shape, value: Any, half: int = 0) -> Any:
    """A result of `shape` that is held in residues of `half` (see `held.residues`), as `marked` marks it.

    The other residues are 0: nothing can be computed with such words, but compared they are the same.
    """
    if isinstance(shape, TupleShape) and isinstance(value, tuple):
        parts = zip(shape.elements, value)
        return tuple(marked_residues(part, element, half) for part, element in parts)
    if is_float(shape):
        return marked(shape, _word_of(np.asarray(value, np.uint64), half), half)
    if is_complex(shape):
        return marked(
            shape, pair(*(_word_of(one, half) for one in split(np.asarray(value, np.uint64)))), half
        )
    return value


def _word_of(residue: npt.NDArray[np.uint64], half: int) -> npt.NDArray[np.uint64]:
    """The word that has this residue in one half, and 0 in the other."""
    zeros = np.zeros_like(residue)
    return join(residue, zeros) if half == 0 else join(zeros, residue)


def held(value: Any) -> Any:
    """A value with its marks taken off."""
    if isinstance(value, tuple):
        return tuple(map(held, value))
    if not is_marked(value):
        return value
    return _viewed(value, np.dtype(np.uint64 if value.dtype in _WORDS else np.complex128))


def is_marked(value: Any) -> bool:
    """Whether it is an array of marked words."""
    return isinstance(value, np.ndarray | np.generic) and value.dtype.names is not None


def compared(value: Array) -> _Residues:
    """The residues that count, of marked words; of complex numbers both, along a last dimension."""
    if value.dtype in _WORDS:
        return np.asarray(value[_COMPARED])
    return np.stack([value[part][_COMPARED] for part in ("real", "imaginary")], axis=-1)


def numbered(value: Array) -> Array:
    """One number for each element, equal for equal ones; what is not marked is itself."""
    if not is_marked(value):
        return value
    residues = compared(value).astype(np.uint64)
    return residues if value.dtype in _WORDS else join(residues[..., 0], residues[..., 1])


def _viewed(array: Any, dtype: np.dtype[Any]) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(dtype).reshape(np.shape(array))
