"""Values of a program as NumPy arrays: dtypes, literals, flat lists of leaves, arrays in files.

NumPy has no bf16, f8, f6, f4 or sub-byte integers; ml_dtypes brings them. A byte holds one sub-byte element.
s1 and u1 have no ml_dtypes type: they live in int8 and uint8, values -1..0 and 0..1.

Literals are the values of `constant` instructions, captured arguments and results. A runtime value is an
array per array shape, a tuple per tuple shape, and anything (None when made here) per token.

Large arrays may lie in files instead of memory: the system reads a page of them when it is asked for, and
may forget it. The files have no names: their room is given back when the last array that shows one is gone,
or the process ends, however it ends. Such arrays are read-only, so that no program that runs on them writes
there. `Keep` decides who holds a value.
"""

from __future__ import annotations

import mmap
import shutil
import tempfile
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from hlotool.errors import InputDataError
from hlotool.ir.attributes import Deferrable
from hlotool.ir.types import ArrayShape, ElementType, Shape, ShapeIndex, TupleShape
from hlotool.system.resources import allow_mapping
from hlotool.system.user_input import size_text

Array = npt.NDArray[Any]

_SCALAR_TYPES: dict[ElementType, Any] = {
    ElementType.PRED: np.bool_,
    ElementType.S1: np.int8,
    ElementType.S2: ml_dtypes.int2,
    ElementType.S4: ml_dtypes.int4,
    ElementType.S8: np.int8,
    ElementType.S16: np.int16,
    ElementType.S32: np.int32,
    ElementType.S64: np.int64,
    ElementType.U1: np.uint8,
    ElementType.U2: ml_dtypes.uint2,
    ElementType.U4: ml_dtypes.uint4,
    ElementType.U8: np.uint8,
    ElementType.U16: np.uint16,
    ElementType.U32: np.uint32,
    ElementType.U64: np.uint64,
    ElementType.F4E2M1FN: ml_dtypes.float4_e2m1fn,
    ElementType.F6E2M3FN: ml_dtypes.float6_e2m3fn,
    ElementType.F6E3M2FN: ml_dtypes.float6_e3m2fn,
    ElementType.F8E3M4: ml_dtypes.float8_e3m4,
    ElementType.F8E4M3: ml_dtypes.float8_e4m3,
    ElementType.F8E4M3FN: ml_dtypes.float8_e4m3fn,
    ElementType.F8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    ElementType.F8E4M3B11FNUZ: ml_dtypes.float8_e4m3b11fnuz,
    ElementType.F8E5M2: ml_dtypes.float8_e5m2,
    ElementType.F8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    ElementType.F8E8M0FNU: ml_dtypes.float8_e8m0fnu,
    ElementType.F16: np.float16,
    ElementType.BF16: ml_dtypes.bfloat16,
    ElementType.F32: np.float32,
    ElementType.F64: np.float64,
    ElementType.C64: np.complex64,
    ElementType.C128: np.complex128,
}

DTYPES: dict[ElementType, np.dtype[Any]] = {t: np.dtype(s) for t, s in _SCALAR_TYPES.items()}

_ELEMENT_TYPES: dict[np.dtype[Any], ElementType] = {
    dtype: t for t, dtype in DTYPES.items() if t not in (ElementType.S1, ElementType.U1)
}

#: Width of the significand field of the types whose NaNs carry a payload.
NAN_PAYLOAD_BITS = {
    ElementType.F8E5M2: 2,
    ElementType.F8E4M3: 3,
    ElementType.F8E3M4: 4,
    ElementType.BF16: 7,
    ElementType.F16: 10,
    ElementType.F32: 23,
    ElementType.F64: 52,
}


def dtype_of(element_type: ElementType) -> np.dtype[Any]:
    """The NumPy dtype that holds `element_type`."""
    return DTYPES[element_type]


def element_type_of(dtype: npt.DTypeLike) -> ElementType | None:
    """The element type of a dtype, or None when HLO has none (object, str, longdouble, …)."""
    return _ELEMENT_TYPES.get(np.dtype(dtype).newbyteorder("="))


def integer_limits(element_type: ElementType) -> tuple[int, int]:
    """Smallest and largest value of an integer type (pred: 0 and 1)."""
    if element_type is ElementType.PRED:
        return 0, 1
    bits = element_type.bits
    if element_type.is_signed:
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return 0, (1 << bits) - 1


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Deferrable):
    """A value with its shape.

    Attributes:
        shape: element types, dimensions, layout as given.
        value: a C-contiguous array of the logical dimensions (the layout is not applied to it), a tuple of
            literals, or None for tokens and for elided values.
        elided: the text said `{...}`: there is a value, but not here.
    """

    shape: Shape
    value: LiteralValue
    elided: bool = False

    @classmethod
    def unread(cls, shape: Shape, decode: Callable[[str], Self], text: str) -> Self:
        """A literal whose value `decode` reads from `text` when it is first asked for; it is not elided.

        The text has not been checked: where it is wrong, what `decode` raises is raised there.
        """
        made = cls.deferred(decode, text)
        object.__setattr__(made, "shape", shape)
        object.__setattr__(made, "elided", False)
        return made

    @property
    def array(self) -> Array:
        """The array of an array literal."""
        if not isinstance(self.shape, ArrayShape) or self.value is None or isinstance(self.value, tuple):
            raise TypeError(f"literal of shape {self.shape} holds no array")
        return self.value

    @property
    def elements(self) -> tuple[Literal, ...]:
        """The parts of a tuple literal."""
        if not isinstance(self.shape, TupleShape) or not isinstance(self.value, tuple):
            raise TypeError(f"literal of shape {self.shape} is not a tuple")
        return self.value

    @property
    def has_elided(self) -> bool:
        """Whether some part of the value is missing."""
        if isinstance(self.shape, TupleShape) and isinstance(self.value, tuple):
            return any(e.has_elided for e in self.value)
        return self.elided

    @property
    def key(self) -> Hashable:
        """Equal for equal bits of equal types and dimensions; elided values are taken for equal."""
        if isinstance(self.value, tuple):
            return tuple(part.key for part in self.value)
        if self.value is None:
            return "elided" if self.elided else None
        return str(self.value.dtype), self.value.shape, self.value.tobytes()


LiteralValue: TypeAlias = Array | tuple[Literal, ...] | None


#: Smaller arrays stay in memory: a file of its own for each would take longer than it saves.
LEAST: Final = 1 << 20
#: Written at once: what has to be made contiguous for that takes no more memory.
_PIECE: Final = 1 << 24
#: File systems that are memory themselves.
_IN_MEMORY: Final = frozenset({"tmpfs", "ramfs"})
_MOUNTS: Final = Path("/proc/mounts")


class NoRoomOnDisk(InputDataError):
    """An array could not be written to a temporary file: the disk is full, or a limit of the system's."""


class OnDisk:
    """Puts arrays on disk.

    Attributes:
        size: bytes that were put there so far.
    """

    def __init__(self) -> None:
        self.size = 0

    def keep(self, value: Any) -> Any:
        """The same value, an array or tuples of values, with its large arrays in files.

        What is there already stays; what is no plain array stays as it is.

        Raises:
            NoRoomOnDisk: there is no room for it, or nowhere to put it.
        """
        if isinstance(value, tuple):
            return tuple(map(self.keep, value))
        if not isinstance(value, np.ndarray) or value.nbytes < LEAST or _is_kept(value):
            return value
        kept = _written(value)
        self.size += value.nbytes
        return kept


def room_on_disk() -> int:
    """Bytes that temporary files may take; 0 where they would lie in memory, or nowhere."""
    try:
        folder = Path(tempfile.gettempdir()).resolve()
        return 0 if _lies_in_memory(folder) else shutil.disk_usage(folder).free
    except OSError:
        return 0


def _is_kept(array: Array) -> bool:
    """Whether an array shows a file already."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, mmap.mmap)


def _written(array: Array) -> Array:
    """The array, read from a file without a name."""
    try:
        with tempfile.TemporaryFile(prefix="hlotool-", buffering=0) as file:
            _write(file.write, array)
            allow_mapping(array.nbytes)
            mapped = mmap.mmap(file.fileno(), array.nbytes, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise NoRoomOnDisk(
            f"no room for an array of {size_text(array.nbytes)} in {tempfile.gettempdir()}: {reason}"
        ) from error
    shown: Array = np.ndarray(array.shape, array.dtype, mapped)
    return shown


def _write(write: Callable[[Any], int | None], array: Array) -> None:
    """All bytes in row-major order, piece by piece."""
    rows = array if array.ndim else array.reshape(1)
    flat = rows.reshape(-1) if rows.flags.c_contiguous else rows.flat
    step = max(1, _PIECE // array.itemsize)
    for start in range(0, array.size, step):
        piece = np.ascontiguousarray(flat[start : start + step]).view(np.uint8)
        data = piece.data
        while len(data):
            data = data[write(data) or 0 :]


def _lies_in_memory(folder: Path) -> bool:
    """Whether a folder is on a file system that is memory; False where the system does not say."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    kinds = {Path(place): kind for _, place, kind, *_ in (line.split() for line in lines)}
    here = next((one for one in (folder, *folder.parents) if one in kinds), None)
    return here is not None and kinds[here] in _IN_MEMORY


#: An array, a tuple of values, or None for a token.
Value: TypeAlias = "Array | tuple[Value, ...] | None"


def flatten(shape: Shape, value: Any, prefix: ShapeIndex = ()) -> Iterator[tuple[ShapeIndex, Shape, Any]]:
    """All non-tuple parts of `value` with their shape indices and shapes, depth first.

    Raises:
        TypeError: the value's tuples are not those of the shape.
    """
    if not isinstance(shape, TupleShape):
        yield prefix, shape, value
        return
    if not isinstance(value, tuple | list) or len(value) != len(shape.elements):
        raise TypeError(f"expected a tuple of {len(shape.elements)} for {shape}, got {type(value).__name__}")
    for i, (part, element) in enumerate(zip(shape.elements, value)):
        yield from flatten(part, element, (*prefix, i))


def unflatten(shape: Shape, leaves: Sequence[Any]) -> Value:
    """The nested value whose leaves, depth first, are `leaves`.

    Raises:
        ValueError: too few or too many leaves.
    """
    remaining = iter(leaves)
    value: Value = _build(shape, remaining)
    if any(True for _ in remaining):
        raise ValueError(f"more than the leaves of {shape}")
    return value


def _build(shape: Shape, leaves: Iterator[Any]) -> Any:
    if isinstance(shape, TupleShape):
        return tuple(_build(element, leaves) for element in shape.elements)
    try:
        return next(leaves)
    except StopIteration:
        raise ValueError(f"a leaf for {shape} is missing") from None


def from_literal(literal: Literal) -> Value:
    """The runtime value of a literal: what a snapshot holds of an argument or a result.

    Raises:
        ValueError: part of the value is elided.
    """
    if literal.has_elided:
        raise ValueError(f"the value of {literal.shape} is elided")
    value = literal.value
    return tuple(from_literal(element) for element in value) if isinstance(value, tuple) else value
