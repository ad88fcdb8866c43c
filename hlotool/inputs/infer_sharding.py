"""How a result is spread over devices, found from the values themselves.

Text dumps of partitioned programs give the shardings of the parameters but not of the result. The shapes say
into how many parts each dimension is cut; which device holds which part is looked for among the orders that
the axes of a mesh allow. Copies have to be equal, and each part has to be where it comes closest to the
expected result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations, islice, product
from math import prod

import numpy as np

from hlotool.facts.sharding import Placement, placement, region
from hlotool.ir.arrays import Array
from hlotool.ir.attributes import Ints, Mesh, MeshAxis, NamedSharding, ShardedDimension, Sharding

#: Orders that are tried, the simplest first: a mesh of many axes has factorially many, and each is scored.
_CANDIDATES = 2000

#: Elements of a part that are compared, with each of the tiles: a wrong place shows in far fewer.
_SAMPLE = 1 << 14


def infer_sharding(parts: Sequence[Array], expected: Array, meshes: Sequence[Mesh]) -> Sharding:
    """The sharding of the global array whose parts the devices hold.

    Args:
        parts: per device.
        expected: the global array as another program computes it; it only has to be closer to the right
            arrangement than to any other.
        meshes: of the program; without any that fits, the devices in their order.

    Raises:
        ValueError: the parts cannot make up an array of the expected dimensions.
    """
    count = len(parts)
    fitting = [mesh for mesh in meshes if prod(size for _, size in mesh.axes) == count]
    fitting.append(Mesh((("devices", count),)))
    best: tuple[tuple[int, float], Sharding] | None = None
    for counts in part_counts(parts[0].shape, expected.shape, count):
        scores = _Scores(parts, expected, counts)
        candidates = chain(
            (sharding for mesh in fitting for sharding in arrangements(mesh, counts)),
            (sharding for mesh in fitting for sharding in reversed_arrangements(mesh, counts)),
        )
        for sharding in islice(candidates, _CANDIDATES):
            score = scores.of(placement(sharding, len(counts), count))
            if best is None or score < best[0]:
                best = score, sharding
            if score == scores.perfect:
                return sharding
    if best is None:
        raise ValueError(
            f"parts of {list(parts[0].shape)} on {count} devices do not make {list(expected.shape)}"
        )
    return best[1]


def part_counts(part: Ints, whole: Ints, device_count: int) -> Iterator[Ints]:
    """Into how many parts each dimension may be cut; the last parts may be padded, even empty."""
    if len(part) != len(whole):
        return
    divisors = [n for n in range(1, device_count + 1) if device_count % n == 0]
    options = [[n for n in divisors if -(-size // n) == extent] for extent, size in zip(part, whole)]
    yield from (counts for counts in product(*options) if device_count % prod(counts) == 0)


def arrangements(mesh: Mesh, counts: Ints) -> Iterator[Sharding]:
    """All ways to cut dimensions into `counts` parts along (parts of) mesh axes, natural orders first."""
    axes = [axis for name, size in mesh.axes for axis in _prime_axes(name, size)]
    for dims in _choices(axes, counts):
        if not any(dims):
            yield Sharding("replicated")
            continue
        sharded = tuple(ShardedDimension(_merged(mesh, dim)) for dim in dims)
        yield Sharding("tiled", named=NamedSharding(mesh, sharded))


def reversed_arrangements(mesh: Mesh, counts: Ints) -> Iterator[Sharding]:
    """The `arrangements` in opposite order along some dimensions, as GSPMD leaves them after `reverse`."""
    device_count = prod(size for _, size in mesh.axes)
    cut = [axis for axis, count in enumerate(counts) if count > 1]
    flips = [flip for size in range(1, len(cut) + 1) for flip in combinations(cut, size)]
    for sharding in arrangements(mesh, counts):
        devices = placement(sharding, len(counts), device_count).devices
        for flip in flips:
            order = tuple(int(device) for device in np.flip(devices, flip).flat)
            dims = (*counts, device_count // prod(counts))
            yield Sharding("tiled", dims, order, last_tile_dim_replicate=True)


def _prime_axes(name: str, size: int) -> Iterator[MeshAxis]:
    """An axis as parts of prime size, major first."""
    before, rest, factor = 1, size, 2
    while rest > 1:
        while rest % factor:
            factor += 1
        yield MeshAxis(name, before, factor)
        before, rest = before * factor, rest // factor


def _choices(axes: Sequence[MeshAxis], counts: Ints) -> Iterator[tuple[tuple[MeshAxis, ...], ...]]:
    """Axes for each dimension whose sizes multiply to its count; no axis twice."""
    if not counts:
        yield ()
        return
    for chosen in _sequences(axes, counts[0]):
        rest = [axis for axis in axes if axis not in chosen]
        for others in _choices(rest, counts[1:]):
            yield (chosen, *others)


def _sequences(axes: Sequence[MeshAxis], count: int) -> Iterator[tuple[MeshAxis, ...]]:
    if count == 1:
        yield ()
    for axis in axes if count > 1 else ():
        size = axis.size or 1
        if count % size == 0:
            rest = [other for other in axes if other is not axis]
            yield from ((axis, *others) for others in _sequences(rest, count // size))


def _merged(mesh: Mesh, axes: Sequence[MeshAxis]) -> tuple[MeshAxis, ...]:
    """Neighbouring parts of one axis as one part, the whole axis without its sizes."""
    merged: list[MeshAxis] = []
    for axis in axes:
        last = merged[-1] if merged else None
        if last and last.name == axis.name and ((last.pre_size or 1) * (last.size or 1)) == axis.pre_size:
            merged[-1] = MeshAxis(axis.name, last.pre_size, (last.size or 1) * (axis.size or 1))
        else:
            merged.append(axis)
    sizes = dict(mesh.axes)
    return tuple(MeshAxis(axis.name) if axis.size == sizes[axis.name] else axis for axis in merged)


class _Scores:
    """How well arrangements suit the values: lower is better."""

    def __init__(self, parts: Sequence[Array], expected: Array, counts: Ints) -> None:
        whole = Placement(counts, np.arange(len(parts)))
        tiles = [region(expected, whole.tile_slices(index, expected.shape)) for index in np.ndindex(*counts)]
        self._counts = counts
        self._errors = np.array([[_error(part, tile) for tile in tiles] for part in parts])
        contents = [part.tobytes() for part in parts]
        self._kinds = np.array([contents.index(content) for content in contents])

    @property
    def perfect(self) -> tuple[int, float]:
        """All copies equal and every part where it suits best."""
        return 0, float(self._errors.min(axis=1).sum())

    def of(self, placed: Placement) -> tuple[int, float]:
        """Copies that contradict their first, and the sum of errors."""
        rows = placed.devices.reshape(prod(self._counts), -1)
        kinds = self._kinds[rows]
        contradictions = int((kinds != kinds[:, :1]).sum())
        tile_of = np.empty(rows.size, int)
        tile_of[rows] = np.arange(len(rows))[:, None]
        return contradictions, float(self._errors[np.arange(rows.size), tile_of].sum())


def _error(part: Array, tile: Array) -> float:
    """Mean distance of a part from a tile, which may be shorter; at most 1 from any one element."""
    inside = region(part, (slice(0, size) for size in tile.shape))
    step = max(1, tile.size // _SAMPLE)
    actual, wanted = (_wide(side.ravel()[::step]) for side in (inside, tile))
    if not wanted.size:
        return 0.0
    with np.errstate(all="ignore"):
        distance = np.abs(actual - wanted) / np.maximum(np.abs(actual), np.abs(wanted))
    same = (actual == wanted) | ((actual != actual) & (wanted != wanted))
    distance = np.where(same, 0.0, np.where(np.isfinite(distance), np.minimum(distance, 1.0), 1.0))
    return float(distance.mean())


def _wide(values: Array) -> Array:
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)
