"""Sizes tied to constants, trip counts and duplicates: which integers may be sizes, what may be cut.

Integers: one that both programs have means the same in both, whatever sizes become. One that a compiler put
into one of them (an offset of a shard, a limit of an expanded gather) may be a size that it counted with,
or the last index of a dimension: nothing says what it would be of another size, so the sizes that it may be
stay. Where programs are for several devices, one less than a size counts, too.

Constants with elements of their own: one that both programs have is cut on both sides to the same elements.
One whose elements are all equal needs no partner. Any other was computed by a compiler from something of
the full size: what it would be of another one is unknown, and its dimensions stay; so do those of a table
that a reshape may have mixed.

Loops over stacks: a layer stack is a `while` whose body takes, in every iteration, one slice of arrays with
a leading dimension as long as the loop. The length then stands in integer constants of condition and body:
as a bound, as an offset of negative indices, less one as the last index of a loop that runs backwards.
Programs in which a stack is walked by a loop on one side only (on the other it was unrolled) keep the
length.

Duplicates: a compiler computes what stands twice in a program once. Of the two one finds its partner in the
other program; the sizes of the other would have none, and stay, while those of its duplicate change.
Constraints between sizes, and the relations of constants that hold places along dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from hlotool.facts.recognition import integer_constant
from hlotool.facts.trip_counts import trip_count
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.walk import reachable
from hlotool.rewrite.scale.cut_points import NEAR, relate_stated
from hlotool.rewrite.scale.per_device import Spread
from hlotool.rewrite.scale.places import Found, PlaceConstant, Places, TableConstant
from hlotool.rewrite.scale.shard_starts import relate_lasts, relate_shards
from hlotool.rewrite.scale.sizes import Number, Relations, place
from hlotool.rewrite.scale.terms import Size

#: Shorter loops stay as they are: their lengths are numbers like any others, and cost little.
SHORTEST = 9


class SizeConstant(Struct, frozen=True):
    """A constant whose value is a size plus an offset.

    Attributes:
        size: of a dimension.
        offset: what is added to it.
    """

    size: Size
    offset: int

    @property
    def sizes(self) -> tuple[Size, ...]:
        """What it is made of."""
        return (self.size,)

    def value(self, number: Number) -> int:
        """Its value when sizes are other numbers."""
        return number(self.size) + self.offset


class _Stack(Struct, frozen=True):
    """A loop over slices of arrays.

    Attributes:
        loop: the `while`.
        length: its iterations.
        size: of the dimension that it walks along.
    """

    loop: Instruction
    length: int
    size: Size


def relate_loops(known: Relations, modules: Sequence[Module]) -> dict[Instruction, SizeConstant]:
    """Find loops over stacks in all programs, and the constants that hold their lengths."""
    stacks = [list(_stacks(known, module)) for module in modules]
    # Loops of one length that are over different dimensions could not be told apart by their constants.
    by_length: dict[int, Size] = {}
    for stack in (stack for found in stacks for stack in found):
        known.sizes.unify(by_length.setdefault(stack.length, stack.size), stack.size)
    sides = [{known.sizes.root(stack.size) for stack in found} for found in stacks]
    for size in set().union(*sides):
        if any(size not in found for found in sides):
            known.sizes.freeze(size, "walked by a loop in one of the programs only")
    constants: dict[Instruction, SizeConstant] = {}
    for stack in (stack for found in stacks for stack in found):
        held = dict(_constants(stack))
        if stack.length not in {constant.size.value + constant.offset for constant in held.values()}:
            where = place(stack.loop)
            known.sizes.freeze(stack.size, f"{where}: its bound is no constant of condition or body")
        constants.update(held)
    return constants


def _stacks(known: Relations, module: Module) -> Iterator[_Stack]:
    for instruction in module.instructions():
        if instruction.opcode != "while":
            continue
        length = trip_count(instruction)
        if length is None or length < SHORTEST:
            continue
        walked = list(_walked(known, instruction.computation("body"), length))
        for size in walked[1:]:
            known.sizes.unify(walked[0], size)
        if walked:
            yield _Stack(instruction, length, walked[0])


def _walked(known: Relations, body: Computation, length: int) -> Iterator[Size]:
    """Dimensions as long as the loop of which the body takes, or writes, one element at a place that
    moves."""
    for computation in reachable(body):
        for instruction in computation.instructions:
            if instruction.opcode not in ("dynamic-slice", "dynamic-update-slice"):
                continue
            is_slice = instruction.opcode == "dynamic-slice"
            part = instruction.dims if is_slice else instruction.operands[1].dims
            places = instruction.operands[1:] if is_slice else instruction.operands[2:]
            for whole, size, where in zip(known.of(instruction.operands[0]), part, places):
                if whole.value == length and size == 1 and integer_constant(where) is None:
                    yield whole


def _constants(stack: _Stack) -> Iterator[tuple[Instruction, SizeConstant]]:
    computations = (
        *reachable(stack.loop.computation("condition")),
        *reachable(stack.loop.computation("body")),
    )
    for computation in computations:
        for instruction in computation.instructions:
            if instruction.opcode != "constant":
                continue
            offset = (integer_constant(instruction) or 0) - stack.length
            if offset in (0, -1) and not instruction.dims:
                yield instruction, SizeConstant(stack.size, offset)


def relate_places(
    known: Relations, modules: Sequence[Module], loops: Mapping[Instruction, SizeConstant]
) -> dict[Instruction, PlaceConstant | TableConstant]:
    """Find the constants that follow sizes as places of shards, as positions that are stated, or are added to
    negative indices.

    Args:
        known: sizes and relations; sizes of shards become related to those that they are cut from.
        modules: the programs.
        loops: constants that follow the length of a loop.
    """
    found: dict[Instruction, PlaceConstant] = {}
    from_the_end: set[Instruction] = set()
    doubtful: set[Instruction] = set()
    programs = [Places(known, Spread(module)) for module in modules]
    lasts = {table: held for places in programs for table, held in relate_shards(places).items()}
    relate_lasts(programs, lasts)
    relate_stated(programs)
    for places in programs:
        relate_indices(places)
        agreed, unsure = places.agreed()
        found |= agreed
        from_the_end |= places.from_the_end
        doubtful |= unsure
    for constant, held in list(found.items()):
        if constant in loops:
            _reconcile(known, constant, loops[constant], held)
            del found[constant]
        elif constant in doubtful and constant not in from_the_end:
            known.sizes.freeze(held.size, f"{place(constant)}: a place, and more than that")
    tables = {constant: table for places in programs for constant, table in places.tables.items()}
    return {**_on_both_sides(known, modules, {*loops}, found, from_the_end, doubtful), **tables}


def _reconcile(known: Relations, constant: Instruction, loop: SizeConstant, held: PlaceConstant) -> None:
    """A length of a loop that is a place, too."""
    if held.factors.item() == 1 and held.offsets.item() == loop.offset:
        known.sizes.unify(loop.size, held.size)
    else:
        known.sizes.freeze_all((loop.size, held.size), f"{place(constant)}: a length of a loop, and a place")


def _on_both_sides(
    known: Relations,
    modules: Sequence[Module],
    loops: set[Instruction],
    found: dict[Instruction, PlaceConstant],
    from_the_end: set[Instruction],
    doubtful: set[Instruction],
) -> dict[Instruction, PlaceConstant]:
    """Without what is added to negative indices where a program may have it in another form.

    A number that both programs have means the same in both if it changes nowhere, or everywhere. One that
    only one of them has may be hidden in a number that is a little larger or smaller.
    """
    ends = from_the_end & found.keys()
    left: set[Size] = set()
    for module in modules:
        others, mine = set[int](), set[Size]()
        for instruction in module.instructions():
            if instruction.opcode != "constant" or instruction in loops:
                continue
            if instruction in ends and instruction not in doubtful:
                mine.add(known.sizes.root(found[instruction].size))
            elif instruction not in found or instruction in doubtful:
                others.add(abs(integer_constant(instruction) or 0))
        for constant in ends:
            size, value = known.sizes.root(found[constant].size), integer_constant(constant) or 0
            near = range(value - NEAR, value + NEAR + 1) if size not in mine else (value,)
            if not others.isdisjoint(near):
                left.add(size)
    return {
        constant: held
        for constant, held in found.items()
        if constant not in ends or known.sizes.root(held.size) not in left
    }


# Indices from the end: a negative one has the size of the dimension added to it.
#
# What NumPy calls `x[-1]` is, in HLO, `select(i < 0, i + size, i)`, of which a compiler makes one constant
# where something is added to `i` before. The size follows the dimension that the index is for.


def relate_indices(places: Places) -> None:
    """Find the sizes that are added to negative indices in one program."""
    for instruction in places.spread.calls.home:
        for index, size in _indices(places, instruction):
            _from_the_end(places, index, size)


def _indices(places: Places, instruction: Instruction) -> Iterator[tuple[Instruction, Size]]:
    """What says where a window begins, and the size of the dimension that it is in."""
    operands = instruction.operands
    if instruction.opcode in ("dynamic-slice", "dynamic-update-slice"):
        first = 1 if instruction.opcode == "dynamic-slice" else 2
        if len(operands) == first + len(places.known.of(operands[0])):
            yield from zip(operands[first:], places.known.of(operands[0]))
    elif instruction.opcode in ("gather", "scatter"):
        is_gather = instruction.opcode == "gather"
        name = "start_index_map" if is_gather else "scatter_dims_to_operand_dims"
        sizes = [places.known.of(operands[0])[d] for d in instruction.integers(name)]
        indices = places.stripped(operands[1 if is_gather else len(operands) // 2])
        columns = [] if indices is None else [indices]
        if indices is not None and indices.opcode == "concatenate":
            columns = [*indices.operands]
        if len(columns) == len(sizes):
            yield from zip(columns, sizes)


def _from_the_end(places: Places, index: Instruction, size: Size) -> None:
    chosen = places.stripped(index)
    if chosen is not None and chosen.opcode == "clamp":
        chosen = places.stripped(chosen.operands[1])
    if chosen is None or chosen.opcode != "select":
        return
    wrapped, plain = places.stripped(chosen.operands[1]), places.stripped(chosen.operands[2])
    if wrapped is None or plain is None or wrapped.opcode != "add":
        return
    for number, operand in enumerate(wrapped.operands):
        added, start = places.stripped(operand), places.stripped(wrapped.operands[1 - number])
        value = None if added is None else integer_constant(added)
        if value is None or start is None:
            continue
        offset = 0 if start is plain else _offset(places, plain, start)
        if offset is not None and value - offset == size.value > 1:
            found = Found(ends={(wrapped, number)})
            if places.made(operand, size, (1,) * places.spread.count, offset, found):
                places.from_the_end |= found.held.keys() - (places.found.held.keys() - places.from_the_end)
                places.found.add(found)


def _offset(places: Places, plain: Instruction, start: Instruction) -> int | None:
    """What is added to `start` to give `plain`."""
    if plain.opcode != "add":
        return None
    for number, operand in enumerate(plain.operands):
        added = places.stripped(operand)
        if added is not None and places.stripped(plain.operands[1 - number]) is start:
            return integer_constant(added)
    return None
