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


@dataclass(frozen=True)
class Taste:
    """What a source prefers.

    Attributes:
        integers_only: no floats, where every difference counts.
        devices: that take part.
        partitioned: the program is on whole arrays, and XLA divides them among the devices; else all devices
            run it as replicas, and it says what they exchange.
        weights: how much more often than otherwise what a word stands for is chosen.
    """

    integers_only: bool = False
    devices: int = 1
    partitioned: bool = False
    weights: Mapping[str, float] = field(default_factory=dict)

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
            for name, weight in _TYPES.items()
            if (not families or ELEMENT_TYPES[name].family in families)
            and not (self.integers_only and ELEMENT_TYPES[name].is_inexact)
            and not (self.partitioned and ELEMENT_TYPES[name].bits < LEAST_PARTITIONED)
        }
        return ELEMENT_TYPES[self.one_of(rng, allowed)]

    def dims(self, rng: random.Random, low_rank: int = 0, high_rank: int = 3) -> tuple[int, ...]:
        """Sizes of a quarter of MOST_ELEMENTS at most; a few are empty, or have a large minor dimension."""
        rank = rng.choice([r for r in (0, 1, 1, 2, 2, 2, 3, 3, 4) if low_rank <= r <= high_rank])
        while True:
            dims = [rng.choice(_SIZES) for _ in range(rank)]
            if rank and rng.random() < 0.125:
                dims[-1] = rng.choice(_LARGE_MINOR)
            if rank and rng.random() < 0.025:
                dims[rng.randrange(rank)] = 0
            size = 1
            for n in dims:
                size *= n
            if size <= MOST_ELEMENTS // 4:
                return tuple(dims)
