"""An execution as frames: every call of every computation with the values of its instructions.

Scalar computations (`to_apply` of reduce, sort, …) run on whole arrays and have no frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct

from hlotool.backends.base import TOKEN, Executable, Value
from hlotool.backends.field.values import is_marked
from hlotool.backends.registry import get_backend
from hlotool.errors import Unsupported
from hlotool.inputs.recorded_values import Sample, Store
from hlotool.ir.arrays import Array, unflatten
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ShapeIndex, leaves
from hlotool.ir.walk import async_start, branches, through_tuple

#: What is kept of a value: a sample per array, None per token.
Kept: TypeAlias = "Sample | tuple[Kept, ...] | None"

#: Compiles a program for one device, in the arithmetic of an execution.
Compile: TypeAlias = "Callable[[Module], Executable]"

#: Iteration of each loop around a value, the outermost first, counted from 0.
Iteration: TypeAlias = tuple[int, ...]

#: They give a value another type or other dimensions.
FORMS = opcodes_with(Trait.REGROUPS) | {"convert"}

#: Their value is that of their operand, or of the root of what they call.
_HANDED_ON = opcodes_with(Trait.FORWARDS) | {"copy", "copy-done"}
_RETURNING = opcodes_with(Trait.INLINED) | {"async-done"}
#: Of several operands they make as many results, each of its own operand.
_SIDE_BY_SIDE = frozenset({"all-reduce", "all-gather", "reduce-scatter", "collective-permute"})


class Parts(tuple[Array, ...]):
    """What each of several devices has of a value."""


class Spread(Struct, frozen=True):
    """What is kept of an array on several devices: a sample each."""

    samples: tuple[Sample, ...]


def compile_on_numpy(module: Module) -> Executable:
    """In declared types, as the reference computes."""
    return get_backend("numpy").compile(module)


@dataclass(slots=True, eq=False)
class Trace:
    """What was seen of one execution, shared by its frames.

    Attributes:
        stores: the values that were kept; one store per device.
        incomplete: there were more values than the budget allows to look at.
        count: values that were looked at, on one device.
        compile: makes programs that go on computing with these values.
        literals: samples of constants.
        places: frames by computation and iterations, once they were asked for (see `same_place`).
    """

    stores: tuple[Store, ...]
    incomplete: bool = False
    count: int = 0
    compile: Compile = field(default=compile_on_numpy, repr=False)
    literals: dict[Instruction, Kept | Spread] = field(default_factory=dict)
    places: dict[tuple[Computation, Iteration], Frame] = field(default_factory=dict, repr=False)

    @property
    def dropped(self) -> int:
        """How many different values found no room."""
        return sum(store.dropped for store in self.stores)

    def constant(self, instruction: Instruction) -> Array:
        """The value of a constant, in the arithmetic of the execution."""
        assert instruction.literal is not None
        if self.compile is compile_on_numpy:
            return np.asarray(instruction.literal.array)
        copy = Instruction(instruction.name, "constant", instruction.shape, literal=instruction.literal)
        entry = Computation("entry", [copy], copy)
        return np.asarray(self.compile(Module("alone", [entry], entry)).run([]))

    def close(self) -> None:
        """Give back what was stored outside of memory."""
        for store in self.stores:
            store.close()


@dataclass(slots=True, eq=False)
class Frame:
    """One execution of a computation.

    Attributes:
        computation: what was executed.
        trace: of the whole execution.
        values: what is kept of its instructions' results, but for constants and the parameters of callees.
        callees: the frames that each instruction called, in order; of a `while` condition and body in turn.
        bodies: the iterations of each `while`.
        caller: frame and instruction that called it; None for the entry.
        iteration: how many frames of the same computation its caller called before.
    """

    computation: Computation
    trace: Trace = field(repr=False)
    values: dict[Instruction, Any] = field(default_factory=dict, repr=False)
    callees: dict[Instruction, list[Frame]] = field(default_factory=dict, repr=False)
    bodies: dict[Instruction, list[Frame]] = field(default_factory=dict, repr=False)
    caller: tuple[Frame, Instruction] | None = field(default=None, repr=False)
    iteration: int = 0


class Node(Struct, frozen=True):
    """An array that was computed: part `index` of the result of an instruction in a frame."""

    frame: Frame
    instruction: Instruction
    index: ShapeIndex = ()

    @property
    def kept(self) -> Any:
        """What is kept of it: a Sample, a Spread, or None when it was not seen."""
        whole = _kept(self.frame, self.instruction)
        for i in self.index:
            if not isinstance(whole, tuple):
                return None
            whole = whole[i]
        return whole if isinstance(whole, Sample | Spread) else None

    @property
    def value(self) -> Array | Parts | None:
        """The array, or the part of each device; None where it was not seen or not kept."""
        kept, stores = self.kept, self.frame.trace.stores
        if isinstance(kept, Sample):
            return stores[0].value(kept)
        if isinstance(kept, Spread):
            found = [store.value(sample) for store, sample in zip(stores, kept.samples)]
            arrays = [array for array in found if array is not None]
            return Parts(arrays) if len(arrays) == len(found) else None
        return None

    @property
    def is_exact(self) -> bool:
        """Whether it is held in exact words."""
        value = self.value
        return is_marked(value[0] if isinstance(value, Parts) else value)

    @property
    def order(self) -> int:
        """Its number in the order of execution; -1 for arguments, constants and what was not seen."""
        kept = self.kept
        if isinstance(kept, Spread):
            kept = kept.samples[0]
        return kept.order if isinstance(kept, Sample) else -1


def _kept(frame: Frame, instruction: Instruction) -> Any:
    if instruction.literal is not None and instruction not in frame.values:
        literals, stores = frame.trace.literals, frame.trace.stores
        if instruction not in literals:
            value = frame.trace.constant(instruction)
            one = stores[0].sample(-1, value)
            others = [store.sample(-1, value) for store in stores[1:]]
            literals[instruction] = Spread((one, *others)) if others else one
        return literals[instruction]
    return frame.values.get(instruction)


def branch_frame(frame: Frame, conditional: Instruction) -> Frame | None:
    """The execution of the branch that was taken, where that is known.

    A branch that hands on its argument has left no trace of itself.
    """
    if conditional not in frame.callees:
        selector = resolve(frame, conditional.operands[0]).value
        if selector is None or isinstance(selector, Parts):
            return None
        taken = branches(conditional)[branch_taken(selector, conditional)]
        frame.callees[conditional] = [Frame(taken, frame.trace, caller=(frame, conditional))]
    return frame.callees[conditional][0]


def branch_taken(selector: Any, conditional: Instruction) -> int:
    """The number of the branch that `selector` chooses; XLA: operation_semantics.md#conditional."""
    chosen = np.asarray(selector)
    if chosen.dtype == np.bool_:
        return 0 if chosen else 1
    count = len(branches(conditional))
    return int(chosen) if 0 <= int(chosen) < count else count - 1


def resolve(frame: Frame, instruction: Instruction, index: ShapeIndex = ()) -> Node:
    """The instruction that computed a value, through everything that only hands values on.

    Calls, fusions, loops, branches, tuples, copies and barriers are looked through; what remains is an
    operation on arrays, a constant, or a parameter of the entry.
    """
    *_, last = chain(Node(frame, instruction, index))
    return last


def made(use: Node) -> Node:
    """The instruction that computed what is read."""
    return resolve(use.frame, use.instruction, use.index)


def is_made_there(node: Node) -> bool:
    """Whether an instruction computed its value, and did not only hand it on: `made` would return it."""
    return _step(node.frame, node.instruction, node.index) is None


def chain(use: Node) -> Iterator[Node]:
    """The instructions that hand a value on, from the reader's side, and at last the one that computed it."""
    step: Node | None = use
    while step is not None:
        yield step
        step = _step(step.frame, step.instruction, step.index)


def _step(frame: Frame, instruction: Instruction, index: ShapeIndex) -> Node | None:
    """Where the value came from; None when it was computed here."""
    opcode, operands = instruction.opcode, instruction.operands
    if (source := through_tuple(instruction, index)) is not None:
        return Node(frame, *source)
    if opcode in _HANDED_ON:
        return Node(frame, operands[0], (0, *index) if opcode == "copy-done" else index)
    if opcode == "copy-start" and index[:1] == (0,):
        return Node(frame, operands[0], index[1:])
    if opcode == "parameter" and frame.caller is not None:
        return _argument(frame, instruction.parameter_number or 0, index)
    if opcode == "conditional":
        callee = branch_frame(frame, instruction)
        return None if callee is None else Node(callee, callee.computation.root, index)
    if opcode == "async-done":
        instruction = async_start(instruction)
    if opcode in _RETURNING and instruction in frame.callees:
        callee = frame.callees[instruction][0]
        return Node(callee, callee.computation.root, index)
    if opcode == "while" and instruction in frame.callees:
        iterations = frame.bodies.get(instruction)
        if not iterations:
            return Node(frame, operands[0], index)
        return Node(iterations[-1], iterations[-1].computation.root, index)
    return None


def _argument(frame: Frame, number: int, index: ShapeIndex) -> Node:
    """What a callee got as its parameter `number`."""
    assert frame.caller is not None
    outer, caller = frame.caller
    if caller.opcode == "while":
        if frame.iteration == 0:
            return Node(outer, caller.operands[0], index)
        last = outer.bodies[caller][frame.iteration - 1]
        return Node(last, last.computation.root, index)
    if caller.opcode == "conditional":
        taken = branches(caller).index(frame.computation)
        if len(set(branches(caller))) != len(branches(caller)):
            taken = branch_taken(resolve(outer, caller.operands[0]).value, caller)
        return Node(outer, caller.operands[1 + taken], index)
    return Node(outer, caller.operands[number], index)


def value_in(frame: Frame, instruction: Instruction) -> Any:
    """The value of an instruction of a frame, of whatever shape; tokens where it has tokens.

    Raises:
        Unsupported: some part of it was not kept.
    """
    parts: list[Value] = []
    for index, shape in leaves(instruction.shape):
        value = resolve(frame, instruction, index).value if isinstance(shape, ArrayShape) else TOKEN
        if value is None:
            raise Unsupported("the values of all instructions do not fit into memory", instruction.name)
        parts.append(value)
    return unflatten(instruction.shape, parts)


def all_frames(entry: Frame) -> Iterator[Frame]:
    """A frame and those of all calls in it, in no particular order but for the iterations of one loop."""
    stack = [entry]
    while stack:
        frame = stack.pop()
        yield frame
        for conditional in [i for i in frame.values if i.opcode == "conditional"]:
            branch_frame(frame, conditional)
        stack += reversed([callee for callees in frame.callees.values() for callee in callees])


def frames_of(entry: Frame, computation: Computation) -> Iterator[Frame]:
    """All executions of a computation; see `all_frames` for their order."""
    return (frame for frame in all_frames(entry) if frame.computation is computation)


def calls_around(frame: Frame) -> list[tuple[Frame, Instruction]]:
    """The calls around a frame and the frames that they stand in, the outermost first."""
    found = []
    while frame.caller is not None:
        found.append(frame.caller)
        frame = frame.caller[0]
    return found[::-1]


def iteration_of(frame: Frame) -> Iteration:
    """Which iteration of the loops around it a frame is part of."""
    numbers = []
    while frame.caller is not None:
        if frame.caller[1].opcode == "while":
            numbers.append(frame.iteration)
        frame = frame.caller[0]
    return tuple(reversed(numbers))


def same_place(entry: Frame, node: Node, depth: int = 0, shift: int = 0) -> Node | None:
    """The same instruction in another execution of the program; None where that took another way.

    Args:
        entry: of the other execution, or of the same one.
        node: in question.
        depth: number of a loop around it, the outermost is 0.
        shift: so many iterations of that loop later.
    """
    places = entry.trace.places
    if not places:
        places.update(((f.computation, iteration_of(f)), f) for f in all_frames(entry))
    numbers = iteration_of(node.frame)
    wanted = tuple(n + shift if loop == depth else n for loop, n in enumerate(numbers))
    frame = places.get((node.frame.computation, wanted))
    return None if frame is None else Node(frame, node.instruction, node.index)


def operand_uses(node: Node) -> list[Node]:
    """What an operation reads, in order, tuples leaf by leaf; as it is read, not as it was computed."""
    found: list[Node] = []
    operands = node.instruction.operands
    if node.index and node.instruction.opcode in _SIDE_BY_SIDE:
        operands = operands[node.index[0] : node.index[0] + 1]
    for operand in operands:
        if isinstance(operand.shape, ArrayShape):
            found.append(Node(node.frame, operand))
        else:
            arrays = (index for index, part in leaves(operand.shape) if isinstance(part, ArrayShape))
            found += [Node(node.frame, operand, index) for index in arrays]
    return found


def operand_nodes(node: Node) -> list[Node]:
    """The arrays that an operation read, in order, as they were computed."""
    return [made(use) for use in operand_uses(node)]
