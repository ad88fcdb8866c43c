"""An execution as frames: every call of every computation with the values of its instructions.

A probe sees a flat stream in which the instructions of a callee come before the instruction that called it;
here the stream is folded back into the tree of calls. Scalar computations (`to_apply` of reduce, sort, …) run
on whole arrays and have no frames.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hlotool.backends.base import Value
from hlotool.backends.numpy import NumpyBackend, NumpyExecutable
from hlotool.backends.numpy.lowering import literal_value
from hlotool.errors import Unsupported
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ArrayShape, ShapeIndex, leaves
from hlotool.ir.walk import Context, branches, contexts
from hlotool.values.flatten import unflatten

#: Bytes of values that a trace may hold.
LIMIT = 1 << 31


@dataclass(slots=True, eq=False)
class Frame:
    """One execution of a computation.

    Attributes:
        computation: what was executed.
        values: results of its instructions, but for parameters and constants.
        callees: the frames that each instruction called, in order; of a `while` condition and body in turn.
        bodies: the iterations of each `while`.
        caller: frame and instruction that called it; None for the entry.
        iteration: how many frames of the same computation its caller called before.
        arguments: of the entry.
    """

    computation: Computation
    values: dict[Instruction, Value] = field(default_factory=dict, repr=False)
    callees: dict[Instruction, list[Frame]] = field(default_factory=dict, repr=False)
    bodies: dict[Instruction, list[Frame]] = field(default_factory=dict, repr=False)
    caller: tuple[Frame, Instruction] | None = field(default=None, repr=False)
    iteration: int = 0
    arguments: Sequence[Value] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Node:
    """An array that was computed: part `index` of the result of an instruction in a frame."""

    frame: Frame
    instruction: Instruction
    index: ShapeIndex = ()

    @property
    def value(self) -> Any:
        """The array (or a tuple, where the index stops at one)."""
        whole = _value(self.frame, self.instruction)
        for i in self.index:
            whole = whole[i]
        return whole

    @property
    def array(self) -> Any:
        """The value as an array."""
        return np.asarray(self.value)


def _value(frame: Frame, instruction: Instruction) -> Any:
    if instruction.opcode == "parameter":
        return frame.arguments[instruction.parameter_number or 0]
    if instruction.literal is not None:
        return literal_value(instruction.literal)
    return frame.values[instruction]


def trace(module: Module, arguments: Sequence[Value], limit: int = LIMIT) -> Frame:
    """Execute `module` on the reference and keep what every instruction returned.

    Raises:
        Unsupported: it cannot be executed, or the values take more than `limit` bytes.
    """
    executable = NumpyBackend().compile(module)
    if not isinstance(executable, NumpyExecutable):
        raise Unsupported("a program with regions for each device has no single trace")
    recorder = _Recorder(module, limit)
    executable.run(arguments, recorder)
    return recorder.frame(arguments)


@dataclass(slots=True, eq=False)
class _Event:
    instruction: Instruction
    value: Value
    frames: list[Frame]


class _Recorder:
    """The probe."""

    def __init__(self, module: Module, limit: int) -> None:
        kinds = contexts(module)
        self._module = module
        self._home = {
            i: c for c in module.computations if kinds[c] - {Context.EMBEDDED} for i in c.instructions
        }
        self._callees = {i: frozenset(i.called) for i in self._home if any(True for _ in i.called)}
        self._pending: list[_Event] = []
        self._left = limit

    def __call__(self, instruction: Instruction, value: Value) -> None:
        if instruction not in self._home:
            return
        self._left -= getattr(value, "nbytes", 0)
        if self._left < 0:
            raise Unsupported("the values of all instructions do not fit into memory", instruction.name)
        frames: list[Frame] = []
        if callees := self._callees.get(instruction):
            frames = self._fold(callees)
        self._pending.append(_Event(instruction, value, frames))

    def _fold(self, callees: frozenset[Computation]) -> list[Frame]:
        """Take the events of `callees` at the end of the stream and make frames of them."""
        start = len(self._pending)
        while start and self._home[self._pending[start - 1].instruction] in callees:
            start -= 1
        events = self._pending[start:]
        del self._pending[start:]
        frames: list[Frame] = []
        for event in events:
            home = self._home[event.instruction]
            # A computation that is at work on the same instruction again was called again.
            if not frames or frames[-1].computation is not home or event.instruction in frames[-1].values:
                frames.append(Frame(home))
            _record(frames[-1], event)
        return frames

    def frame(self, arguments: Sequence[Value]) -> Frame:
        """The frame of the entry."""
        entry = Frame(self._module.entry, arguments=tuple(arguments))
        for event in self._pending:
            _record(entry, event)
        return entry


def _record(frame: Frame, event: _Event) -> None:
    instruction = event.instruction
    frame.values[instruction] = event.value
    frames = event.frames
    if not frames and instruction.opcode in ("call", "fusion"):
        # A callee that hands on its parameters leaves no events.
        frames = [Frame(c) for c in instruction.called]
    if not frames:
        return
    frame.callees[instruction] = frames
    count: Counter[Computation] = Counter()
    for callee in frames:
        callee.caller = (frame, instruction)
        callee.iteration = count[callee.computation]
        count[callee.computation] += 1
    if instruction.opcode == "while":
        body = instruction.attributes["body"]
        frame.bodies[instruction] = [f for f in frames if f.computation is body]


def branch_frame(frame: Frame, conditional: Instruction) -> Frame:
    """The execution of the branch that was taken. One that hands on its argument has left no events."""
    if conditional not in frame.callees:
        selector = resolve(frame, conditional.operands[0]).value
        taken = branches(conditional)[branch_taken(selector, conditional)]
        frame.callees[conditional] = [Frame(taken, caller=(frame, conditional))]
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
    *_, last = chain(frame, instruction, index)
    return last


def chain(frame: Frame, instruction: Instruction, index: ShapeIndex = ()) -> Iterator[Node]:
    """The instructions that hand a value on, from the reader's side, and at last the one that computed it."""
    step: tuple[Frame, Instruction, ShapeIndex] | None = (frame, instruction, index)
    while step is not None:
        yield Node(*step)
        step = _step(*step)


def _step(
    frame: Frame, instruction: Instruction, index: ShapeIndex
) -> tuple[Frame, Instruction, ShapeIndex] | None:
    """Where the value came from; None when it was computed here."""
    opcode, operands = instruction.opcode, instruction.operands
    if opcode == "get-tuple-element":
        return frame, operands[0], (_number(instruction, "index"), *index)
    if opcode == "tuple" and index:
        return frame, operands[index[0]], index[1:]
    if opcode in ("copy", "opt-barrier"):
        return frame, operands[0], index
    if opcode == "parameter" and frame.caller is not None:
        return _argument(frame, instruction.parameter_number or 0, index)
    if opcode == "conditional":
        callee = branch_frame(frame, instruction)
        return callee, callee.computation.root, index
    if opcode in ("call", "fusion") and instruction in frame.callees:
        callee = frame.callees[instruction][0]
        return callee, callee.computation.root, index
    if opcode == "while":
        iterations = frame.bodies.get(instruction)
        if not iterations:
            return frame, operands[0], index
        return iterations[-1], iterations[-1].computation.root, index
    return None


def _argument(frame: Frame, number: int, index: ShapeIndex) -> tuple[Frame, Instruction, ShapeIndex]:
    """What a callee got as its parameter `number`."""
    assert frame.caller is not None
    outer, caller = frame.caller
    if caller.opcode == "while":
        if frame.iteration == 0:
            return outer, caller.operands[0], index
        last = outer.bodies[caller][frame.iteration - 1]
        return last, last.computation.root, index
    if caller.opcode == "conditional":
        taken = branches(caller).index(frame.computation)
        if len(set(branches(caller))) != len(branches(caller)):
            taken = branch_taken(resolve(outer, caller.operands[0]).value, caller)
        return outer, caller.operands[1 + taken], index
    return outer, caller.operands[number], index


def _number(instruction: Instruction, name: str) -> int:
    value = instruction.attributes[name]
    assert isinstance(value, int)
    return value


def value_in(frame: Frame, instruction: Instruction) -> Any:
    """The value of an instruction of a frame, of whatever shape."""
    if instruction in frame.values:
        return frame.values[instruction]
    parts = [resolve(frame, instruction, index).value for index, _ in leaves(instruction.shape)]
    return unflatten(instruction.shape, parts)


def frames_of(entry: Frame, computation: Computation) -> Iterator[Frame]:
    """All executions of a computation, in no particular order but for the iterations of one loop."""
    stack = [entry]
    while stack:
        frame = stack.pop()
        if frame.computation is computation:
            yield frame
        for conditional in (i for i in frame.values if i.opcode == "conditional"):
            branch_frame(frame, conditional)
        stack += reversed([callee for callees in frame.callees.values() for callee in callees])


def operand_uses(node: Node) -> list[Node]:
    """What an operation reads, in order, tuples leaf by leaf; as it is read, not as it was computed."""
    found: list[Node] = []
    for operand in node.instruction.operands:
        if isinstance(operand.shape, ArrayShape):
            found.append(Node(node.frame, operand))
        else:
            found += [Node(node.frame, operand, index) for index, _ in leaves(operand.shape)]
    return found


def operand_nodes(node: Node) -> list[Node]:
    """The arrays that an operation read, in order, as they were computed."""
    return [resolve(use.frame, use.instruction, use.index) for use in operand_uses(node)]


def place(node: Node) -> list[str]:
    """The calls around a node in words, the outermost first."""
    words: list[str] = []
    frame = node.frame
    while frame.caller is not None:
        frame_of_caller, caller = frame.caller
        text = f"{caller.opcode} %{caller.name}"
        if caller.opcode == "while":
            part = "body" if frame.computation is caller.attributes["body"] else "condition"
            text = f"{part} of {text}, iteration {frame.iteration}"
        words.append(text)
        frame = frame_of_caller
    return words[::-1]
