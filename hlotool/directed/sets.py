"""What a set of inputs is."""

from __future__ import annotations

from dataclasses import dataclass

from hlotool.backends.base import Value

#: The name of the set that a replay always takes.
PLAIN = "plain"
#: What is odd about a set with such indices, which XLA clamps or skips.
OUT_OF_RANGE = "indices out of range"
#: What is odd about a set with numbers that a function is not made for: the logarithm of -1 is NaN, a shift
#: by more bits than there are is 0.
OUT_OF_DOMAIN = "numbers out of a domain"


@dataclass(frozen=True, slots=True, eq=False)
class InputSet:
    """Arguments for one run.

    Attributes:
        name: short, such as `ties`; unique among the sets of a program.
        values: one per entry parameter.
        odd: what is legal about them, and yet such that a framework may never pass it: `NaN`, `indices out of
            range`; empty for ordinary values.
        aims: the outcomes that it was made for, in words.
        is_hard: rounding is at its worst on such numbers (all alike, sorted, far apart, large): between
            programs on one backend that is the same for both, between backends nobody measured it.
    """

    name: str
    values: tuple[Value, ...]
    odd: tuple[str, ...] = ()
    aims: tuple[str, ...] = ()
    is_hard: bool = False

    @property
    def suits_other_backends(self) -> bool:
        """Whether all backends must agree on it: of odd values only indices out of range have one meaning."""
        return set(self.odd) <= {OUT_OF_RANGE} and not self.is_hard

    @property
    def is_plain(self) -> bool:
        """Whether it is the set that every replay takes."""
        return self.name == PLAIN


def in_words(one: InputSet) -> str:
    """A set as reports name it: what it was made for, and what is odd about it."""
    odd = f", with {' and '.join(one.odd)}" if one.odd else ""
    aims = f" ({', '.join(one.aims)})" if one.aims else ""
    return f"set `{one.name}`{aims}{odd}"
