"""What is chosen more often: element types, sizes, and the words that guidance weighs."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from hlotool.fuzz.programs.limits import LEAST_PARTITIONED
from hlotool.ir.types import ELEMENT_TYPES, ElementType, TypeClass

#: Element types by how often programs hold them; s1 and u1 are left out, which XLA's CPU compiler lacks.
_TYPES = {
    "f32": 10, "s32": 8, "bf16": 4, "f16": 3, "f64": 3, "s64": 3, "u32": 3, "s8": 3, "u8": 3, "pred": 4,
    "s16": 2, "u16": 2, "u64": 2, "s4": 1.5, "u4": 1.5, "c64": 2, "c128": 1, "f8e4m3fn": 1, "f8e5m2": 1,
    "f8e4m3fnuz": 0.5, "f8e5m2fnuz": 0.5, "f8e4m3b11fnuz": 0.5, "f8e3m4": 0.5, "f8e4m3": 0.5,
    "f8e8m0fnu": 0.3, "f4e2m1fn": 0.5, "s2": 0.5, "u2": 0.5,
}  # fmt: skip

#: Sizes of dimensions: corners, odd numbers and powers of two, so that vector loops have remainders.
_SIZES = (1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9, 12, 16, 17)
_LARGE_MINOR = (31, 33, 64, 65, 100, 127, 128, 257, 513)

#: No array has more elements; the reference computes them one program after the other.
MOST_ELEMENTS = 2000

#: Of programs on large arrays: libraries and parallel loops divide these into parts, and the last part is
#: another than the others. The powers of two next to which the sizes are go from a part of a cache to what
#: 16 bits count; those at which a number of 16 bits ends, with a sign and without, are three times as likely.
MOST_OF_LARGE = 1 << 18
_POWERS = (11, 12, 13, 14, 15, 15, 15, 16, 16, 16)
#: What libraries have code for. Narrow floats are left out: of sums of thousands of them no digit is certain.
_OF_LIBRARIES = {"f32": 10, "f64": 1, "s32": 3, "s8": 1, "u8": 1, "s64": 1, "pred": 0.5}


@dataclass(frozen=True)
class Taste:
    """What a source prefers.

    Attributes:
        integers_only: no floats, where every difference counts.
        devices: that take part.
        partitioned: the program is on whole arrays, and XLA divides them among the devices; else all devices
            run it as replicas, and it says what they exchange.
        weights: how much more often than otherwise what a word stands for is chosen.
        large: one dimension of some arrays is long, and element types are those of libraries.
    """

    integers_only: bool = False
    devices: int = 1
    partitioned: bool = False
    weights: Mapping[str, float] = field(default_factory=dict)
    large: bool = False

    @property
    def most_elements(self) -> int:
        """No array has more."""
        return MOST_OF_LARGE if self.large else MOST_ELEMENTS

    @property
    def exchanges(self) -> bool:
        """Whether programs say what devices send each other."""
        return self.devices > 1 and not self.partitioned

    def one_of(self, rng: random.Random, base: Mapping[str, float]) -> str:
        """One of the words, as often as `base` and the weights say."""
        words = list(base)
        return rng.choices(words, [base[w] * self.weights.get(w, 1.0) for w in words])[0]

    def kind(self, rng: random.Random, families: Collection[TypeClass] = ()) -> ElementType:
        """An element type, of one of the families where some are given."""
        allowed = {
            name: weight
            for name, weight in (_OF_LIBRARIES if self.large else _TYPES).items()
            if (not families or ELEMENT_TYPES[name].family in families)
            and not (self.integers_only and ELEMENT_TYPES[name].is_inexact)
            and not (self.partitioned and ELEMENT_TYPES[name].bits < LEAST_PARTITIONED)
        }
        return ELEMENT_TYPES[self.one_of(rng, allowed)]

    def dims(
        self, rng: random.Random, low_rank: int = 0, high_rank: int = 3, *, may_be_empty: bool = True
    ) -> tuple[int, ...]:
        """Sizes of a quarter of MOST_ELEMENTS at most; a few are empty, or have a large minor dimension.

        Of a large program half of them have one long dimension, and are within `most_elements`.
        """
        rank = rng.choice([r for r in (0, 1, 1, 2, 2, 2, 3, 3, 4) if low_rank <= r <= high_rank])
        if self.large and high_rank and rng.random() < 0.5:
            return long_dims(rng, max(rank, 1))
        while True:
            dims = [rng.choice(_SIZES) for _ in range(rank)]
            if rank and rng.random() < 0.125:
                dims[-1] = rng.choice(_LARGE_MINOR)
            if may_be_empty and rank and rng.random() < 0.025:
                dims[rng.randrange(rank)] = 0
            size = 1
            for n in dims:
                size *= n
            if size <= MOST_ELEMENTS // 4:
                return tuple(dims)


def long_dims(rng: random.Random, rank: int) -> tuple[int, ...]:
    """Sizes one of which is a power of two, next to one, or a little above."""
    power = 1 << rng.choice(_POWERS)
    long = power + rng.choice([-1, 0, 1, rng.randint(2, power // 4), rng.randint(2, power // 4)])
    room = MOST_OF_LARGE // long
    dims = []
    for _ in range(rank - 1):
        dims.append(rng.choice([n for n in _SIZES if n <= room]))
        room //= dims[-1]
    dims.insert(rng.randrange(rank), long)
    return tuple(dims)
