"""Two lists of sizes that are the same as a whole: what in one stands for what in the other, by numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import gcd, prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlotool.scale.terms import Size


def without_common(ones: list[Size], others: list[Size]) -> tuple[list[Size], list[Size]]:
    """Summands that only one of two equal sums has, by size: 1 + x is x + 1, whatever x becomes."""
    common = Counter(ones) & Counter(others)
    rests: list[list[Size]] = []
    for parts in (ones, others):
        left = Counter(common)
        rest: list[Size] = []
        for part in parts:
            if left[part]:
                left[part] -= 1
            else:
                rest.append(part)
        rests.append(rest)
    a, b = rests
    by_value = sorted(a, key=value_of), sorted(b, key=value_of)
    return by_value if [*map(value_of, by_value[0])] == [*map(value_of, by_value[1])] else (a, b)


def value_of(size: Size) -> int:
    """Its number in the program as it is."""
    return size.value


def as_many(ones: Sequence[Size], others: Sequence[Size]) -> bool:
    """Whether arrays with these dimensions hold the same number of elements, and any at all."""
    count = prod(map(value_of, ones))
    return count != 0 and count == prod(map(value_of, others))


def runs(ones: Sequence[Size], others: Sequence[Size]) -> Iterable[tuple[list[Size], list[Size]]]:
    """The shortest runs of dimensions of two arrays that hold equal numbers of elements."""
    left, right = list(ones), list(others)
    while left or right:
        run, other = [left.pop(0)], [right.pop(0)]
        a, b = run[0].value, other[0].value
        while a != b:
            if a < b:
                run.append(left.pop(0))
                a *= run[-1].value
            else:
                other.append(right.pop(0))
                b *= other[-1].value
        yield run, other


def largest_common(
    ones: Sequence[Size], others: Sequence[Size], is_fixed: Callable[[Size], bool]
) -> tuple[int, int, int] | None:
    """The positions of two factors that have most in common, and how much it is; None where none have.

    What may change is matched with what may change first: devices are 8 by chance where heads are.
    """
    pairs = [
        (is_fixed(one) == is_fixed(other), gcd(one.value, other.value), position, place)
        for position, one in enumerate(ones)
        for place, other in enumerate(others)
    ]
    common = [pair for pair in pairs if pair[1] > 1]
    if not common:
        return None
    _, shared, position, place = max(common, key=lambda pair: pair[:2])
    return position, place, shared
