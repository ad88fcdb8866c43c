"""Which sizes a program gets: small enough to run, and as different as they were.

Sizes that were different stay different, in the same order, as far as they become smaller: they get
primes, so that a transposed or a mixed-up dimension is still one. Those that were equal and have nothing
to do with each other get different primes, too. No size becomes 1, and none becomes larger.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from hlotool.scale.classes import Classes
from hlotool.scale.sizes import Size

#: Sizes up to this stay: heads of a group, experts that are chosen, channels of an image are what they are.
SMALLEST: Final = 8
#: Where the primes begin that sizes become, one after the other: the first that fits is taken.
STARTS: Final = (61, 31, 17, 11, 7, 5, 3)
#: What becomes of a loop over a stack: a first, a last and one between, as every iteration is like the
#: others, and many of them only amplify rounding.
ITERATIONS: Final = 3
#: So many primes are shared by sizes that were equal.
_SHARED: Final = 3


def choices(classes: Classes) -> Iterator[Mapping[Size, int]]:
    """New sizes of the atoms that may change, the largest programs first; each satisfies all relations."""
    for start in STARTS:
        chosen = chosen_from(classes, start)
        if chosen:
            yield chosen


def chosen_from(classes: Classes, start: int) -> dict[Size, int]:
    """New sizes of atoms, with primes from `start` on."""
    groups: dict[int, list[Size]] = {}
    walked = {atom for size in classes.loops for atom in classes.known.sizes.atoms(size)}
    for atom in reversed(classes.free):
        if atom.value > SMALLEST and atom not in walked:
            groups.setdefault(atom.value, []).append(atom)
    primes = _primes(start)
    chosen = {atom: ITERATIONS for atom in classes.free if atom in walked and atom.value > ITERATIONS}
    for value, atoms in sorted(groups.items()):
        numbers = list(islice(primes, min(_SHARED, len(atoms))))
        for position, atom in enumerate(sorted(atoms, key=classes.uses.__getitem__, reverse=True)):
            number = numbers[min(position, len(numbers) - 1)]
            if number < value:
                chosen[atom] = number
    return _in_order(classes, chosen)


def _in_order(classes: Classes, chosen: dict[Size, int]) -> dict[Size, int]:
    """Without the changes that would make a part larger than its whole."""
    sizes = classes.known.sizes
    while True:
        wrong = [
            (part, whole)
            for part, whole in sizes.orders
            if sizes.evaluate(part, chosen) > sizes.evaluate(whole, chosen)
        ]
        if not wrong:
            return chosen
        for part, whole in wrong:
            for atom in (*sizes.atoms(part), *sizes.atoms(whole)):
                chosen.pop(atom, None)


def _primes(start: int) -> Iterator[int]:
    found: list[int] = []
    number = 2
    while True:
        if all(number % prime for prime in found):
            found.append(number)
            if number >= start:
                yield number
        number += 1


def given(classes: Classes, wanted: Mapping[int, int]) -> tuple[dict[Size, int], Sequence[int]]:
    """Sizes as somebody wants them, by the sizes that they are; and those that nothing free has."""
    chosen = {atom: wanted[atom.value] for atom in classes.free if atom.value in wanted}
    missing = [value for value in wanted if value not in {atom.value for atom in chosen}]
    return _in_order(classes, chosen), missing
