"""What a reduction reduces, and how work on it is shared out: what fusion forms is what a kernel can do.

`RowFusion` puts reductions into a fusion with what is computed along their rows because one generated kernel
(`backends/cuda/codegen`) does it all. Both read here when that is so.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

#: So few elements, terms of a product or elements of a window are combined by one thread, wherever the result
#: is read: threads that share them, at least a warp of 32, would have one each.
SERIAL = 32
#: So many rows keep a GPU busy with a block or a warp for each. Fewer are cut into chunks, each for a block,
#: if they are longer than this; shorter ones are done before a second pass has begun.
_ENOUGH_ROWS, _LONGEST_ROW = 512, 1 << 16


@dataclass(frozen=True, slots=True)
class Geometry:
    """What the reductions of one kernel have in common.

    Attributes:
        dims: of the inputs.
        reduced: dimensions that go away, in ascending order.
    """

    dims: tuple[int, ...]
    reduced: tuple[int, ...]

    @property
    def kept(self) -> tuple[int, ...]:
        """The other dimensions."""
        return tuple(d for d in range(len(self.dims)) if d not in self.reduced)

    @property
    def results(self) -> int:
        """Number of elements of a result."""
        return prod(self.dims[d] for d in self.kept)

    @property
    def length(self) -> int:
        """Number of elements that one result combines."""
        return prod(self.dims[d] for d in self.reduced)

    @property
    def is_serial(self) -> bool:
        """Whether one thread combines all elements of a result."""
        return self.length <= SERIAL

    @property
    def has_few_long_rows(self) -> bool:
        """Whether more blocks are needed than there are results."""
        return self.results < _ENOUGH_ROWS and self.length > _LONGEST_ROW

    @property
    def is_by_row(self) -> bool:
        """Whether neighbours in memory go into the same result."""
        longer = [d for d in range(len(self.dims)) if self.dims[d] > 1]
        return not longer or longer[-1] in self.reduced

    @property
    def has_whole_rows(self) -> bool:
        """Whether all that goes into the same result lies together."""
        kept, reduced = ([d for d in which if self.dims[d] != 1] for which in (self.kept, self.reduced))
        return not kept or not reduced or max(kept) < min(reduced)
