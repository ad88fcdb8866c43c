"""The sizes of two programs, or of more stages of one, and which of them may change together.

Every instruction's rule relates the sizes around it. The programs are tied where they must be alike, at the
signature of the entry, and where `alignment` finds instructions of one in the other. What one program alone
speaks of stays as it is: it is unknown what it is in the other. Constants that hold places are related
in all programs of a comparison at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from hlotool.facts.alignment.align import align
from hlotool.facts.flow import CallGraph, ValueNumbers
from hlotool.facts.recognition import integer_constant, uniform
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, array_shapes
from hlotool.rewrite.scale import (  # noqa: F401 - importing a file registers its rules
    computing_rules,
    moving_rules,
)
from hlotool.rewrite.scale.constraints import SizeConstant, relate_loops, relate_places
from hlotool.rewrite.scale.mean_divisors import CountConstant, relate_means
from hlotool.rewrite.scale.places import PlaceConstant, TableConstant
from hlotool.rewrite.scale.sizes import RULES, Relations, place
from hlotool.rewrite.scale.terms import Form, Size

#: Programs with more instructions than this are tied by their signatures alone: finding partners takes time
#: that grows with both, and what it ties beyond the signature is little.
MOST_ALIGNED = 60_000


@dataclass
class Classes:
    """Sizes of several programs.

    Attributes:
        modules: the programs, of which the first is the reference.
        known: their sizes and relations.
        constants: whose values are functions of sizes.
        loops: sizes that loops walk along.
        sides: of every atom the numbers of the programs in which it occurs.
        uses: of every atom how many dimensions it is in.
    """

    modules: Sequence[Module]
    known: Relations
    constants: Mapping[Instruction, SizeConstant | PlaceConstant | TableConstant | CountConstant] = field(
        default_factory=dict
    )
    loops: list[Size] = field(default_factory=list)
    sides: dict[Size, set[int]] = field(default_factory=dict)
    uses: Counter[Size] = field(default_factory=Counter)

    @property
    def free(self) -> list[Size]:
        """Atoms that may change, the largest first."""
        found = [atom for atom in self.sides if not self.known.sizes.root(atom).why]
        return sorted(found, key=lambda atom: -atom.value)

    def sums_of(self, value: int) -> list[Size]:
        """Dimensions of so many elements that are cut somewhere, each size once."""
        return [root for root in self._sums() if root.value == value]

    def wholes(self) -> dict[Size, Size]:
        """The largest dimension that an atom is a part of, of those that are cut somewhere."""
        found: dict[Size, Size] = {}
        for root in sorted(self._sums(), key=lambda root: root.value):
            found |= dict.fromkeys(map(self.known.sizes.root, root.parts), root)
        return found

    def _sums(self) -> list[Size]:
        dims = (size for module in self.modules for size in _all_sizes(self.known, module))
        roots = dict.fromkeys(map(self.known.sizes.root, dims))
        return [root for root in roots if root.form is Form.SUM]


def classes_of(modules: Sequence[Module]) -> Classes:
    """Relate all sizes in programs that compute the same, the reference first.

    Raises:
        ValueError: a computation calls itself.
    """
    known = Relations()
    for module in modules:
        for instruction in module.instructions():
            known.add(instruction)
    for module in modules:
        _relate(known, module)
    first, *others = modules
    for other in others:
        _tie(known, first, other)
    known.sizes.settle()
    loops = relate_loops(known, modules)
    places = relate_places(known, modules, loops)
    freeze_literals(known, modules)
    if len(modules) > 1:
        freeze_counted(known, modules, {*loops, *places})
    found = Classes(modules, known, {**loops, **places, **relate_means(known, modules)})
    found.loops.extend(constant.size for constant in loops.values())
    _count(found)
    alone = _alone(found)
    if alone:
        for module in modules:
            unify_twins(known, module, alone)
        _count(found)
        if _match_numbers(found):
            _count(found)
    for atom in _alone(found):
        known.sizes.freeze(atom, "in one of the programs only")
    return found


def _alone(classes: Classes) -> set[Size]:
    """Atoms that may change and are in one of the programs only."""
    return {atom for atom in classes.free if len(classes.sides[atom]) < len(classes.modules)}


def _match_numbers(classes: Classes) -> bool:
    """Unify a size in one of the programs only with the one other size that is the same number, if any is."""
    groups: dict[int, list[Size]] = {}
    for atom in classes.free:
        groups.setdefault(atom.value, []).append(atom)
    alone, matched = _alone(classes), False
    for atoms in groups.values():
        if len(atoms) == 2 and any(atom in alone for atom in atoms):
            classes.known.sizes.unify(atoms[0], atoms[1])
            matched = True
    return matched


def _relate(known: Relations, module: Module) -> None:
    for instruction in module.instructions():
        rule = RULES.get(instruction.opcode)
        if any(shape.is_dynamic for shape in array_shapes(instruction.shape)):
            known.freeze_around(instruction, f"{place(instruction)}: a dynamic dimension")
        if rule is None:
            known.freeze_around(instruction, f"{place(instruction)}: no rule says what becomes of its sizes")
            continue
        restated = rule(known, instruction)
        if restated is not None:
            known.restated[instruction] = restated


def _tie(known: Relations, one: Module, other: Module) -> None:
    ends = [*zip(one.entry.parameters, other.entry.parameters), (one.entry.root, other.entry.root)]
    for a, b in ends:
        _tie_pair(known, a, b, is_end=True)
    count = max(sum(len(c.instructions) for c in module.computations) for module in (one, other))
    if count <= MOST_ALIGNED:
        for a, b in align(one, other).pairs:
            _tie_pair(known, a, b)


def _tie_pair(known: Relations, one: Instruction, other: Instruction, is_end: bool = False) -> None:
    """What is alike has the same sizes, leaf by leaf."""
    for index, dims in known.dims[one].items():
        others = known.dims[other].get(index, ())
        if [size.value for size in dims] == [size.value for size in others]:
            known.sizes.unify_all(dims, others)
        elif is_end and len(dims) == len(others):
            for whole, part in zip(dims, others):
                known.divide(whole, part, "shards that cannot be derived")


def _count(classes: Classes) -> None:
    """In which programs, and how often, every atom occurs."""
    sizes = classes.known.sizes
    classes.sides.clear()
    classes.uses.clear()
    for number, module in enumerate(classes.modules):
        seen = Counter(map(sizes.root, _all_sizes(classes.known, module)))
        for root, count in seen.items():
            for atom in sizes.atoms(root):
                classes.sides.setdefault(atom, set()).add(number)
                classes.uses[atom] += count


def _all_sizes(known: Relations, module: Module) -> Iterator[Size]:
    for instruction in module.instructions():
        for dims in known.dims[instruction].values():
            yield from dims


# Integers that may be sizes, in one of the programs only: offsets of shards, limits of expanded gathers.
#
# An integer that both programs have means the same in both, whatever sizes become. One that a compiler put
# into one of them may be a size that it counted with, or the last index of a dimension: nothing says what it
# would be of another size, so the sizes that it may be stay. Where programs are for several devices, one
# less than a size counts, too.

#: Smaller numbers are everywhere, and sizes like them change little.
_LEAST: Final = 16


def freeze_counted(known: Relations, modules: Sequence[Module], understood: set[Instruction]) -> None:
    """Freeze sizes that integer constants of one program only are equal to, or one less than.

    Args:
        known: sizes and relations.
        modules: the programs.
        understood: constants that follow sizes.
    """
    held: list[dict[int, Instruction]] = []
    for module in modules:
        held.append({})
        for instruction in module.instructions():
            if instruction.opcode == "constant" and instruction not in understood:
                value = integer_constant(instruction)
                if value is not None and abs(value) >= _LEAST - 1:
                    held[-1].setdefault(abs(value), instruction)
    everywhere = set.intersection(*map(set, held))
    lonely = {value: found for side in held for value, found in side.items() if value not in everywhere}
    if not lonely:
        return
    # The last index as a limit says no more than the operation that it is for. A partitioner counts with it.
    is_spread = any(module.num_partitions * module.replica_count > 1 for module in modules)
    for module in modules:
        for instruction in module.instructions():
            for dims in known.dims[instruction].values():
                for size in dims:
                    found = lonely.get(size.value) or (lonely.get(size.value - 1) if is_spread else None)
                    if found is not None and size.value >= _LEAST and not known.sizes.root(size).why:
                        known.sizes.freeze(size, f"{place(found)}: may be this size, in one program only")


# Constants with elements of their own: which of them may be cut.
#
# A constant that both programs have is cut on both sides to the same elements. One whose elements are all
# equal needs no partner. Any other was computed by a compiler from something of the full size: nothing says
# what it would be of another one, and its dimensions stay; so do those of a table that a reshape may have
# mixed.


def freeze_literals(known: Relations, modules: Sequence[Module]) -> None:
    """Freeze the dimensions of constants that only one of the programs has."""
    tables = [dict(_tables(known, module)) for module in modules]
    shared = set.intersection(*(set(table.values()) for table in tables)) if len(modules) > 1 else set()
    # Sizes that are frozen meanwhile are made of what they were.
    mixed = known.sizes.mixed_atoms()
    for table in tables:
        for instruction, contents in table.items():
            if len(modules) > 1 and contents not in shared:
                known.freeze(instruction, f"{place(instruction)}: a table in one of the programs only")
            elif any(not mixed.isdisjoint(known.sizes.atoms(size)) for size in known.of(instruction)):
                known.freeze(instruction, f"{place(instruction)}: a table whose elements a reshape mixes")


def _tables(known: Relations, module: Module) -> Iterator[tuple[Instruction, Hashable]]:
    """Constants that are more than one value, with what does not depend on how they are arranged."""
    for instruction in module.instructions():
        literal = instruction.literal
        if literal is None or not isinstance(instruction.shape, ArrayShape) or instruction.shape.size < 2:
            continue
        if all(known.sizes.root(size).why for size in known.of(instruction)):
            continue
        if literal.elided or uniform(instruction) is None:
            yield instruction, (instruction.shape.size, None if literal.elided else _contents(literal.array))


def _contents(array: Array) -> bytes:
    """The elements in order of size, whatever width they are stored in; NaN last."""
    numbers = array.astype(np.complex128 if np.iscomplexobj(array) else np.float64).reshape(-1)
    return np.sort(numbers).tobytes()


# Values that one program computes twice and the other once: both have the sizes of the one that is left.
#
# A compiler computes what stands twice in a program once. Of the two one finds its partner in the other
# program; the sizes of the other would have none, and stay, while those of its twin change.


def unify_twins(known: Relations, module: Module, alone: set[Size]) -> None:
    """Unify the sizes of equal values of which some have no partner.

    Args:
        known: sizes and relations.
        module: one program.
        alone: atoms that are in no other program.
    """
    calls = CallGraph(module)
    # Only what is made of such sizes, and arrays of the same dimensions, is looked at.
    shapes = {
        instruction.dims
        for instruction in calls.home
        if isinstance(instruction.shape, ArrayShape) and _has(known, instruction, alone)
    }
    numbers, first = ValueNumbers(calls), dict[int, Instruction]()
    for instruction in calls.home:
        if isinstance(instruction.shape, ArrayShape) and instruction.dims in shapes:
            twin = first.setdefault(numbers.of(instruction), instruction)
            if twin.dims == instruction.dims:
                known.sizes.unify_all(known.of(twin), known.of(instruction))


def _has(known: Relations, instruction: Instruction, alone: set[Size]) -> bool:
    return any(atom in alone for size in known.of(instruction) for atom in known.sizes.atoms(size))
