"""Which sizes a program gets: small enough to run, and as different as they were.

Sizes that were different stay different, in the same order, as far as they become smaller: they get
primes, so that a transposed or a mixed-up dimension is still one. Those that were equal and have nothing
to do with each other get different primes, too. No size becomes 1, and none becomes larger. Where such sizes
are too large something has to give: primes, then the order, then that they are different.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, islice
from typing import Final

from hlotool.scale.classes import Classes
from hlotool.scale.terms import Form, Size

#: Sizes up to this stay: heads of a group, experts that are chosen, channels of an image are what they are.
SMALLEST: Final = 8
#: Sizes up to this stay even where a program would not fit otherwise.
_LEAST_OF_ALL: Final = 4
#: Where the primes begin that sizes become, one after the other: the first that fits is taken.
STARTS: Final = (61, 31, 17, 11, 7, 5, 3)
#: No size becomes smaller than this.
FEWEST: Final = 2
#: Of `last_resorts`: the first number, and how many sizes, in order, share each.
_SHARING: Final = (*((STARTS[-1], width) for width in (2, 4, 8, 16)), (FEWEST, 16))
#: What becomes of a loop over a stack: a first, a last and one between, as every iteration is like the
#: others, and many of them only amplify rounding.
ITERATIONS: Final = 3
#: So many primes are shared by sizes that were equal.
_SHARED: Final = 3


def choices(classes: Classes) -> Iterator[Mapping[Size, int]]:
    """New sizes of the atoms that may change, the largest programs first; each satisfies all relations.

    Programs with very many sizes run out of small primes. Theirs become numbers one after the other in the
    end, still in order; and those that stay otherwise become smaller, too.
    """
    for start in STARTS:
        yield from filter(None, [chosen_from(classes, _primes(start), _SHARED, SMALLEST)])
    yield from filter(None, [chosen_from(classes, count(STARTS[-1]), 1, _LEAST_OF_ALL)])


def last_resorts(classes: Classes) -> Iterator[Mapping[Size, int]]:
    """New sizes where the smallest of `choices` are too large, as where one of many is squared and cubed.

    First they are out of order, though still different: what most arrays have becomes smallest.
    Then neighbours in their order share a number, and less and less can be told apart.
    """
    numbers: Iterator[int] = count(STARTS[-1])
    yield from filter(None, [chosen_from(classes, numbers, 1, _LEAST_OF_ALL, is_in_order=False)])
    for least, width in _SHARING:
        numbers = (least + position // width for position in count())
        yield from filter(None, [chosen_from(classes, numbers, 1, _LEAST_OF_ALL)])


def chosen_from(
    classes: Classes, numbers: Iterator[int], shared: int, smallest: int, is_in_order: bool = True
) -> dict[Size, int]:
    """New sizes of atoms.

    Args:
        classes: what may change.
        numbers: that sizes become, in order.
        shared: so many of them are for sizes that are the same number.
        smallest: sizes up to this stay.
        is_in_order: larger sizes stay larger; otherwise those become smallest that arrays have most often.
    """
    groups: dict[int, list[Size]] = {}
    walked = _walked(classes)
    for atom in reversed(classes.free):
        if atom.value > smallest and atom not in walked:
            groups.setdefault(atom.value, []).append(atom)
    chosen = {atom: walked[atom] for atom in classes.free if atom in walked and atom.value > walked[atom]}

    def rank(value: int) -> tuple[int, int]:
        """What gets the first numbers."""
        return 0 if is_in_order else -sum(map(classes.uses.__getitem__, groups[value])), value

    for value, atoms in sorted(groups.items(), key=lambda group: rank(group[0])):
        ours = list(islice(numbers, min(shared, len(atoms))))
        for position, atom in enumerate(sorted(atoms, key=classes.uses.__getitem__, reverse=True)):
            number = ours[min(position, len(ours) - 1)]
            if number < value:
                chosen[atom] = number
    return _in_order(classes, chosen)


def _walked(classes: Classes) -> dict[Size, int]:
    """What becomes of the atoms of sizes that loops walk along: a factor need not be as many as all."""
    found: dict[Size, int] = {}
    for size in map(classes.known.sizes.root, classes.loops):
        for atom in classes.known.sizes.atoms(size):
            factors = size.value // atom.value if size.form is Form.PRODUCT else 1
            found[atom] = max(found.get(atom, 0), FEWEST, -(-ITERATIONS // factors))
    return found


def _in_order(classes: Classes, chosen: dict[Size, int]) -> dict[Size, int]:
    """Without the changes that would make a part larger than its whole."""
    sizes = classes.known.sizes
    orders = {(sizes.root(part), sizes.root(whole)): None for part, whole in sizes.orders}
    while True:
        known: dict[Size, int] = {}
        wrong = [
            (part, whole)
            for part, whole in orders
            if sizes.evaluate(part, chosen, known) > sizes.evaluate(whole, chosen, known)
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
    """Sizes as somebody wants them, by the sizes that they are; and those that nothing free has.

    Of a dimension that is cut at some place the parts become smaller, the largest one first.
    """
    chosen = {atom: wanted[atom.value] for atom in classes.free if atom.value in wanted}
    missing = [value for value in wanted if value not in {atom.value for atom in chosen}]
    for value in list(missing):
        cuts = [_shrunk(classes, whole, wanted[value], chosen) for whole in classes.sums_of(value)]
        if cuts and all(cut is not None for cut in cuts):
            missing.remove(value)
            for cut in cuts:
                chosen |= cut or {}
    return _in_order(classes, chosen), missing


def _shrunk(classes: Classes, whole: Size, wanted: int, chosen: Mapping[Size, int]) -> dict[Size, int] | None:
    """New sizes of the parts of a sum that is to be so many; None where they cannot be so few."""
    sizes = classes.known.sizes
    parts = [part for part in sizes.atoms(whole) if not part.why and part not in chosen]
    made: dict[Size, int] = {}
    for part in sorted(parts, key=lambda part: -part.value):
        rest = sizes.evaluate(whole, {**chosen, **made}) - wanted
        if rest > 0 and part.value > FEWEST:
            made[part] = max(FEWEST, part.value - rest)
    return made if sizes.evaluate(whole, {**chosen, **made}) == wanted else None
