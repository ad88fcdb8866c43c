"""How arrays hold values of the field: a float as one word, a complex number as two, anything else as
itself.

Arrays of words say that they are some: who compares them need not know their shapes in the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.words import join, split
from hlotool.facts.retyping import retyped_shape
from hlotool.ir.arrays import Array
from hlotool.ir.attributes import AttributeValue
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape, leaves

Words: TypeAlias = npt.NDArray[np.uint64]


def held_in(element_type: ElementType) -> ElementType:
    """The type whose arrays hold the field's values of `element_type`."""
    if element_type.is_complex:
        return ElementType.C128
    return ElementType.U64 if element_type.is_floating else element_type


def held_instruction(
    instruction: Instruction, attributes: Mapping[str, AttributeValue] | None = None
) -> Instruction:
    """The same instruction on arrays of what holds its values, with some attributes replaced.

    Its operands are parameters: only their shapes count.
    """
    operands = tuple(
        Instruction(o.name, "parameter", retyped_shape(o.shape, held_in), parameter_number=n, line=o.line)
        for n, o in enumerate(instruction.operands)
    )
    return replace(
        instruction,
        shape=retyped_shape(instruction.shape, held_in),
        operands=operands,
        attributes={**instruction.attributes, **(attributes or {})},
    )


def is_inexact(shape: Shape) -> bool:
    """Whether a value of `shape` has floats or complex numbers in it."""
    return any(isinstance(s, ArrayShape) and s.element_type.is_inexact for _, s in leaves(shape))


def is_float(shape: Shape) -> bool:
    """Whether `shape` is that of an array of real floats."""
    return isinstance(shape, ArrayShape) and shape.element_type.is_floating


def is_complex(shape: Shape) -> bool:
    """Whether `shape` is that of an array of complex numbers."""
    return isinstance(shape, ArrayShape) and shape.element_type.is_complex


def parts(z: Any) -> tuple[Words, Words]:
    """The words of the real and of the imaginary parts of complex numbers."""
    array = np.asarray(z, np.complex128)
    pairs = np.ascontiguousarray(array).reshape(-1).view(np.uint64).reshape((*array.shape, 2))
    return pairs[..., 0].copy(), pairs[..., 1].copy()


def pair(real: Any, imaginary: Any) -> Array:
    """Complex numbers of the words of their parts, which broadcast."""
    real, imaginary = np.broadcast_arrays(np.asarray(real, np.uint64), np.asarray(imaginary, np.uint64))
    pairs = np.empty((*real.shape, 2), np.uint64)
    pairs[..., 0], pairs[..., 1] = real, imaginary
    return pairs.view(np.complex128).reshape(real.shape)


def residues(shape: Shape, value: Any, half: int = 0) -> Any:
    """A result as it is compared: one residue of every word, of complex numbers both parts' in one u64.

    Args:
        shape: of the result.
        value: as it is held.
        half: 0 for the residues modulo P, 1 for those modulo Q.
    """
    if isinstance(shape, TupleShape):
        return tuple(residues(part, element, half) for part, element in zip(shape.elements, value))
    if is_float(shape):
        return split(np.asarray(value, np.uint64))[half]
    if is_complex(shape):
        real, imaginary = parts(value)
        return join(split(real)[half], split(imaginary)[half])
    return value


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
