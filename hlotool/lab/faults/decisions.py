"""Wrong decisions: loops, branches, and what shows only where inputs reach a corner of one."""

from __future__ import annotations

from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape
from hlotool.ir.walk import branches
from hlotool.lab.faults.edit import Edit, FaultKind, Place
from hlotool.lab.faults.parts import INTEGERS, array_of, both, ints, is_integer, is_opcode

_INCLUSIVE = {"LT": "LE", "LE": "LT", "GT": "GE", "GE": "GT"}


def _bound(edit: Edit, target: Instruction) -> None:
    edit.set_attributes(direction=_INCLUSIVE[str(target.attributes["direction"])])


def _is_loop_condition(place: Place) -> bool:
    operand = place.instruction.operands[0].shape
    is_counter = isinstance(operand, ArrayShape) and operand.element_type in INTEGERS
    return "while" in place.callers and is_counter and place.instruction.attributes["direction"] in _INCLUSIVE


def _carried(edit: Edit, target: Instruction) -> None:
    """One value of the next step is that of this one."""
    number, old = edit.choose(_updated(target))
    edit.set_operand(number, old)


def _updated(target: Instruction) -> list[tuple[int, Instruction]]:
    """Elements of a body's result with what they were, floats and arrays: counters end the loop."""
    found = []
    for number, new in enumerate(target.operands):
        shape = new.shape
        if not isinstance(shape, ArrayShape) or (shape.rank == 0 and not shape.element_type.is_floating):
            continue
        for before in _elements_of_parameter(target, number):
            if before is not new and before.shape == shape:
                found.append((number, before))
    return found


def _elements_of_parameter(target: Instruction, number: int) -> list[Instruction]:
    """Reads of element `number` of a parameter, among what leads to the target."""
    seen: dict[Instruction, None] = {}
    pending = list(target.operands)
    while pending:
        one = pending.pop()
        if one not in seen:
            seen[one] = None
            pending.extend(one.operands)
    return [
        i
        for i in seen
        if i.opcode == "get-tuple-element"
        and i.operands[0].opcode == "parameter"
        and i.attributes["index"] == number
    ]


def _is_body_result(place: Place) -> bool:
    return (
        "while" in place.callers
        and place.instruction is place.computation.root
        and bool(_updated(place.instruction))
    )


def _swap(edit: Edit, target: Instruction) -> None:
    first, second = edit.choose(_alike(target))
    operands = list(target.operands)
    operands[first], operands[second] = operands[second], operands[first]
    edit.set_operands(operands)


def _alike(target: Instruction) -> list[tuple[int, int]]:
    """Pairs of different elements of the same shape; no scalar integers, which may count."""
    parts = [
        (number, o)
        for number, o in enumerate(target.operands)
        if isinstance(o.shape, ArrayShape) and (o.shape.rank or o.shape.element_type.is_floating)
    ]
    return [
        (i, j)
        for n, (i, a) in enumerate(parts)
        for j, b in parts[n + 1 :]
        if a is not b and a.shape == b.shape
    ]


LOOPS = (
    FaultKind(
        "loop bound off by one",
        "a trip count that is one too high or too low",
        both(is_opcode("compare"), _is_loop_condition),
        _bound,
    ),
    FaultKind(
        "lost carried value",
        "a loop body whose update of a carried value is hoisted as invariant",
        both(is_opcode("tuple"), _is_body_result),
        _carried,
    ),
    FaultKind(
        "swapped tuple elements",
        "two buffers of the same size assigned to each other's result",
        lambda p: p.instruction.opcode == "tuple" and bool(_alike(p.instruction)),
        _swap,
        "swap",
    ),
)


_OPPOSITE = {"LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT", "EQ": "NE", "NE": "EQ"}
_MIRRORED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}


def _negated(edit: Edit, target: Instruction) -> None:
    edit.set_attributes(direction=_OPPOSITE[str(target.attributes["direction"])])


def _mirrored(edit: Edit, target: Instruction) -> None:
    edit.set_attributes(direction=_MIRRORED[str(target.attributes["direction"])])


def _is_mirrorable(place: Place) -> bool:
    return place.instruction.attributes["direction"] in _MIRRORED


def _outside_loop_condition(place: Place) -> bool:
    """A loop that starts where it should end may never end."""
    return not ("while" in place.callers and place.computation.root is place.instruction)


def _select(edit: Edit, target: Instruction) -> None:
    condition, chosen, otherwise = target.operands
    edit.set_operands((condition, otherwise, chosen))


def _masked(edit: Edit, target: Instruction) -> None:
    """Everything is taken from one side."""
    edit.replace(target.operands[int(edit.rng.integers(1, 3))])


def _different_sides(place: Place) -> bool:
    return place.instruction.operands[1] is not place.instruction.operands[2]


def _branch(edit: Edit, target: Instruction) -> None:
    """The branches change places; their operands must have the same shape."""
    first, second = branches(target)[:2]
    if "branch_computations" in target.attributes:
        edit.set_attributes(branch_computations=(second, first, *branches(target)[2:]))
    else:
        edit.set_attributes(true_computation=second, false_computation=first)


def _exchangeable(place: Place) -> bool:
    operands = place.instruction.operands
    return len(branches(place.instruction)) > 1 and operands[1].shape == operands[2].shape


BRANCHES = (
    FaultKind(
        "negated comparison",
        "a predicate inverted and its users not",
        both(is_opcode("compare"), _outside_loop_condition),
        _negated,
    ),
    FaultKind(
        "mirrored comparison",
        "operands of a comparison commuted, its direction not",
        both(is_opcode("compare"), _is_mirrorable, _outside_loop_condition),
        _mirrored,
    ),
    FaultKind(
        "swapped sides of a select",
        "a select whose predicate was inverted",
        both(is_opcode("select"), _different_sides),
        _select,
    ),
    FaultKind(
        "select without its mask",
        "a mask taken for all true or all false",
        both(is_opcode("select"), _different_sides),
        _masked,
    ),
    FaultKind(
        "wrong branch",
        "a conditional whose predicate was turned into an index",
        lambda p: p.instruction.opcode == "conditional" and _exchangeable(p),
        _branch,
    ),
)


_AT_TIES = {"LT": "LE", "LE": "LT", "GT": "GE", "GE": "GT"}


# Values as they are generated by default rarely go there: what these faults ask of the inputs is that they
# reach the outcome of a decision.


def _tie(edit: Edit, target: Instruction) -> None:
    edit.set_attributes(direction=_AT_TIES[str(target.attributes["direction"])])


def _is_ordering(place: Place) -> bool:
    """Not that of a loop, whose bound has a fault of its own."""
    return "while" not in place.callers and place.instruction.attributes["direction"] in _AT_TIES


def _last_of_equals(edit: Edit, target: Instruction) -> None:
    """Turned around before a stable sort, equal keys come out in the opposite order."""
    dimensions = ints(target, "dimensions")
    turned = [edit.op("reverse", o, shape=o.shape, dimensions=dimensions) for o in target.operands]
    edit.set_operands(turned)


def _is_stable(place: Place) -> bool:
    instruction = place.instruction
    (dimension,) = ints(instruction, "dimensions")
    return (
        len(instruction.operands) > 1
        and bool(instruction.attributes.get("is_stable"))
        and array_of(instruction.operands[0]).dims[dimension] > 1
    )


def _floored_remainder(edit: Edit, target: Instruction) -> None:
    edit.after()
    divisor = target.operands[1]
    moved = edit.op("add", target, divisor, shape=target.shape)
    edit.replace(edit.where(_rounds(edit, target, target), moved, target))


def _floored_quotient(edit: Edit, target: Instruction) -> None:
    edit.after()
    shape = array_of(target)
    rest = edit.op("remainder", *target.operands, shape=shape)
    below = edit.op("subtract", target, edit.filled(1, shape), shape=shape)
    edit.replace(edit.where(_rounds(edit, target, rest), below, target))


def _rounds(edit: Edit, target: Instruction, rest: Instruction) -> Instruction:
    """Where rounding down is not rounding to zero: there is a rest of another sign than the divisor."""
    zero = edit.filled(0, array_of(target))
    some = edit.op("compare", rest, zero, direction="NE")
    signs = [edit.op("compare", value, zero, direction="LT") for value in (rest, target.operands[1])]
    return edit.op("and", some, edit.op("xor", *signs))


def _is_signed(place: Place) -> bool:
    return place.array is not None and place.array.element_type.is_signed


def _wrapping_gather(edit: Edit, target: Instruction) -> None:
    """Index vectors beyond the end go round instead of stopping at the end."""
    old = target.operands[1]
    shape = array_of(old)
    places = edit.filled(_places(target), shape)
    beyond = edit.op("add", old, places, shape=shape)
    edit.set_operand(1, edit.op("remainder", beyond, places, shape=shape))


def _places(target: Instruction) -> int:
    """Positions that the first mapped dimension has for a window."""
    dimension = ints(target, "start_index_map")[0]
    return array_of(target.operands[0]).dims[dimension] - ints(target, "slice_sizes")[dimension] + 1


def _maps_one_dimension(place: Place) -> bool:
    target = place.instruction
    return (
        len(ints(target, "start_index_map")) == 1
        and array_of(target.operands[1]).element_type in INTEGERS
        and 0 < _places(target) < 60
        and array_of(target.operands[1]).size > 0
    )


DECISIONS = (
    FaultKind(
        "tie decided the other way",
        "a strict comparison taken for one that allows equality",
        both(is_opcode("compare"), _is_ordering),
        _tie,
    ),
    FaultKind(
        "equal keys in the other order",
        "a sort that is declared stable and is not",
        both(is_opcode("sort"), _is_stable),
        _last_of_equals,
    ),
    FaultKind(
        "remainder of the other sign",
        "a remainder that takes the sign of the divisor",
        both(is_integer, is_opcode("remainder"), _is_signed),
        _floored_remainder,
    ),
    FaultKind(
        "quotient rounded down",
        "an integer division turned into a shift",
        both(is_integer, is_opcode("divide"), _is_signed),
        _floored_quotient,
    ),
    FaultKind(
        "gather index wraps",
        "a large or negative index of a gather taken modulo the size",
        both(is_opcode("gather"), _maps_one_dimension),
        _wrapping_gather,
    ),
)
