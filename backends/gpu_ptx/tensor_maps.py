"""Descriptions of tensors that bulk copies take tiles of (PTX ISA, "Tensors", "Swizzling modes").

What the driver's `cuTensorMapEncodeTiled` makes of one is opaque; the bytes here are ours. XLA's dump says
what it encodes in the last function of `MODULE.KERNEL.triton-to-llvm.txt` (`xla_dump_emitter_re`):

#tma_descriptor = #triton_xla.tma_descriptor<global_shape = [512, 4, 128], tile_shape = [64, 1, 64], …>
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from hlotool.backends.gpu_ptx.types import Values

#: Bytes of a map, as the driver encodes it.
MAP_BYTES = 128

_HEADER = "<QIII"
_DIMENSION = "<QI"
#: Bytes of the longest row of a tile that is swizzled, by the word of the dump. No word: no limit.
_ROWS = {"": 0, "none": 0, "32b": 32, "64b": 64, "128b": 128}


@dataclass(frozen=True)
class TensorMap:
    """A tensor in global memory and the tiles that it is copied in.

    Attributes:
        address: of its first element.
        size: bytes of an element.
        extents: of the tensor, the innermost first.
        box: of a tile.
        row: bytes within which the rows of a tile are swizzled; 0: they are not.
    """

    address: int
    size: int
    extents: tuple[int, ...]
    box: tuple[int, ...]
    row: int

    def encode(self) -> bytes:
        """The bytes that a kernel gets."""
        head = struct.pack(_HEADER, self.address, self.size, self.row, len(self.extents))
        body = b"".join(struct.pack(_DIMENSION, *pair) for pair in zip(self.extents, self.box))
        return (head + body).ljust(MAP_BYTES, b"\0")

    @staticmethod
    @lru_cache(maxsize=64)
    def decode(data: bytes) -> TensorMap:
        """The map that `encode` made these bytes of."""
        address, size, row, rank = struct.unpack_from(_HEADER, data)
        width = struct.calcsize(_DIMENSION)
        pairs = [
            struct.unpack_from(_DIMENSION, data, struct.calcsize(_HEADER) + width * n) for n in range(rank)
        ]
        return TensorMap(address, size, tuple(e for e, _ in pairs), tuple(b for _, b in pairs), row)

    @cached_property
    def places(self) -> Values:
        """Offsets in shared memory of the elements of a tile, the innermost dimension fastest, before
        swizzling.
        """
        return np.arange(int(np.prod(self.box)), dtype=np.int64) * self.size

    def swizzled(self, addresses: Values) -> Values:
        """Where what would lie at `addresses` of shared memory lies: 16-byte pieces change places."""
        bits = max(self.row // 16 - 1, 0)
        return addresses ^ ((addresses >> 7 & bits) << 4)

    def addresses(self, corner: Sequence[int]) -> tuple[Values, Values]:
        """Of each element of the tile at `corner`, the innermost coordinate first: its address in global
        memory, and whether it lies in the tensor.
        """
        offset, inside = np.zeros(1, np.int64), np.ones(1, np.bool_)
        stride = self.size
        for begin, extent, length in zip(corner, self.extents, self.box):
            along = begin + np.arange(length, dtype=np.int64)[:, None]
            offset = (offset + along * stride).ravel()
            inside = (inside & (along >= 0) & (along < extent)).ravel()
            stride *= extent
        return self.address + offset, inside


def tensor_maps(text: str) -> dict[int, TensorMap]:
    """The maps that a kernel's parameters are, by the number of the parameter; their addresses are 0.

    Args:
        text: of `MODULE.KERNEL.triton-to-llvm.txt`, or what `excerpt` leaves of it.

    Raises:
        ValueError: one is not known.
    """
    lines = excerpt(text).splitlines()
    named = {line.partition(" = ")[0]: line for line in lines[:-1]}
    groups = re.findall(
        r"\{([^{}]*)\}", lines[-1].partition("arg_attrs = [")[2].partition("function_type")[0]
    )
    found = {}
    for number, attributes in enumerate(groups):
        if name := re.search(r"tt\.tma_descriptor = (#\w+)", attributes):
            found[number] = _map(named[name[1]])
    return found


def excerpt(text: str) -> str:
    """The lines of a file that `tensor_maps` reads: aliases, and the last function with maps.

    Raises:
        ValueError: there is no such function.
    """
    lines = text.splitlines()
    last = max(
        (n for n, line in enumerate(lines) if "arg_attrs = [" in line and "tma_descriptor" in line),
        default=-1,
    )
    if last < 0:
        raise ValueError("the dump does not say what tensors the kernel copies")
    aliases = {line.partition(" = ")[0]: line for line in lines[:last] if line.startswith("#tma_descriptor")}
    return "\n".join([*aliases.values(), lines[last]])


def _map(alias: str) -> TensorMap:
    """The map of a line `#tma_descriptor = …`; raises ValueError."""
    fields = dict(re.findall(r'(\w+) = (\[[^\]]*\]|"[^"]*"|\d+)', alias.partition("<")[2]))
    shape, tile, strides, order = (
        [int(part) for part in re.findall(r"\d+", fields[key])]
        for key in ("global_shape", "tile_shape", "tile_strides", "layout")
    )
    mode = fields.get("swizzle_mode", "").strip('"')
    if mode not in _ROWS or set(strides) != {1}:
        raise ValueError(f"tensors of this kind are not copied: {alias}")
    size, row = int(fields["element_byte_size"]), _ROWS[mode]
    box = [tile[d] for d in order]
    if row:
        box[0] = min(box[0], row // size)
    return TensorMap(0, size, tuple(shape[d] for d in order), tuple(box), row)
