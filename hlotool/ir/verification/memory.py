"""Rules about memory: layouts of arrays past layout assignment, and mutable buffers.

XLA's compilers turn the rules on layouts on from layout assignment on (HloVerifierOpts: layout_sensitive,
and instruction_can_change_layout of layout assignment). An array whose layout is not written is row-major.

Of a mutable buffer `b(f32[4])` each value has one writer, and only custom calls, tuples and loops carry it.

XLA: hlo_verifier.cc (VerifyBuffers; custom-call targets Pin, Unpin and CreateBuffer), layout_assignment.cc
(InstructionCanChangeLayout).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeAlias

from msgspec.structs import replace

from hlotool.ir.attributes import EntryLayout, OperandAlias, ParameterAlias
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import Class
from hlotool.ir.shapes.base import compatible
from hlotool.ir.types import (
    ArrayShape,
    BufferShape,
    Layout,
    Shape,
    ShapeIndex,
    TupleShape,
    leaves,
    subshape,
)
from hlotool.ir.verification.findings import Findings
from hlotool.ir.walk import CallSite, Users, branches

#: A layout without what does not count.
Reduced: TypeAlias = Callable[[Layout], Layout]

#: Opcodes besides the elementwise ones whose result lies in memory as their operands of the same rank do.
_KEEPS_LAYOUT = frozenset(
    {
        "add-dependency", "all-gather", "all-gather-done", "all-gather-start", "all-reduce",
        "all-reduce-done", "all-reduce-start", "all-to-all", "bitcast-convert", "cholesky",
        "collective-broadcast", "collective-permute", "concatenate", "dynamic-slice",
        "dynamic-update-slice", "fft", "opt-barrier", "pad", "ragged-all-to-all", "reduce-scatter",
        "reduce-window", "reverse", "scatter", "select-and-scatter", "set-dimension-size", "slice", "sort",
        "topk", "triangular-solve", "while",
    }
)  # fmt: skip
#: Elementwise by name; XLA leaves their layouts open.
_MAY_CHANGE = frozenset(("mulhi",))


def check_layouts(findings: Findings) -> None:
    """All rules about layouts, of a program that breaks no other rule."""
    for computation in findings.module.computations:
        for instruction in computation.instructions:
            _check_kept(findings, instruction)
            _check_memory(findings, instruction)
            _check_handed_on(findings, instruction)
            _check_aliases(findings, instruction)
            if instruction.opcode == "bitcast":
                _check_size(findings, instruction)
    _check_entry(findings)


#: Memory spaces of a layout: of the device, fast ones of the device, and of the host.
_DEVICE, _FAST, _HOST = 0, 1, 5


# What counts of a layout


def _whole(layout: Layout) -> Layout:
    return layout


def _order(layout: Layout) -> Layout:
    return Layout(layout.minor_to_major)


def _without_memory(layout: Layout) -> Layout:
    return replace(layout, memory_space=_DEVICE)


def _order_and_width(layout: Layout) -> Layout:
    return Layout(layout.minor_to_major, element_bits=layout.element_bits)


def _same(a: Shape, b: Shape, reduced: Reduced = _whole) -> bool:
    """Equal shapes, of whose layouts only a part counts."""
    if isinstance(a, TupleShape) and isinstance(b, TupleShape):
        return len(a.elements) == len(b.elements) and all(
            _same(x, y, reduced) for x, y in zip(a.elements, b.elements)
        )
    if isinstance(a, ArrayShape) and isinstance(b, ArrayShape):
        return _with(a, reduced) == _with(b, reduced)
    return a == b


def _with(shape: ArrayShape, reduced: Reduced) -> ArrayShape:
    return replace(shape, layout=reduced(shape.layout_or_default))


# Single instructions


def _check_kept(findings: Findings, instruction: Instruction) -> None:
    """Most operations cannot transpose in passing: layouts of operands of the same rank are the result's."""
    shape = instruction.shape
    if not isinstance(shape, ArrayShape) or not _keeps_layout(instruction):
        return
    for operand in dict.fromkeys(instruction.operands):
        given = operand.shape
        if isinstance(given, ArrayShape) and given.rank == shape.rank:
            reduced = _order if _may_change_width(instruction, given) else _order_and_width
            findings.check(
                reduced(given.layout_or_default) == reduced(shape.layout_or_default),
                "layout-changed",
                f"{instruction.opcode} cannot change the layout {given.layout_or_default} of {operand.name} "
                f"into {shape.layout_or_default}",
                instruction,
            )


def _check_memory(findings: Findings, instruction: Instruction) -> None:
    """Only copies and slices move data between host and device, each in its direction."""
    if instruction.opcode not in ("copy", "dynamic-slice", "dynamic-update-slice"):
        return
    shape, operand = instruction.array_shape, instruction.operands[0].array_shape
    spaces = operand.layout_or_default.memory_space, shape.layout_or_default.memory_space
    if instruction.opcode == "copy":
        if spaces[0] != spaces[1] and _HOST in spaces:
            _check_transfer(findings, instruction, operand, shape)
        return
    wrong = (_DEVICE, _HOST) if instruction.opcode == "dynamic-slice" else (_HOST, _DEVICE)
    # Layouts in tiles are those of a TPU, whose compiler lets slices leave fast memory in the end.
    leaves_fast = spaces[0] == _FAST != spaces[1] and not operand.layout_or_default.tiles
    findings.check(
        spaces != wrong and not leaves_fast,
        "memory-space",
        f"{instruction.opcode} cannot move data from memory space {spaces[0]} to {spaces[1]}",
        instruction,
    )


def _check_transfer(findings: Findings, copy: Instruction, operand: ArrayShape, shape: ArrayShape) -> None:
    """A copy between host and device keeps the type; one to the device keeps the layout, too."""
    if shape.layout_or_default.memory_space == _HOST:
        is_right = shape.element_type is operand.element_type
    else:
        is_right = _same(shape, operand, _without_memory)
    message = f"a copy between host and device cannot turn {operand} into {shape}"
    findings.check(is_right, "layout-mismatch", message, copy)


def _keeps_layout(instruction: Instruction) -> bool:
    if instruction.opcode == "custom-call":
        return instruction.custom_call_target == "LayoutConstraint"
    is_elementwise = instruction.row.opcode_class is Class.ELEMENTWISE
    return instruction.opcode in _KEEPS_LAYOUT or (is_elementwise and instruction.opcode not in _MAY_CHANGE)


def _may_change_width(instruction: Instruction, operand: ArrayShape) -> bool:
    """Whether elements of result and operand may take different numbers of bits."""
    if instruction.opcode == "select":
        return operand.element_type.value == "pred"
    return instruction.opcode in ("convert", "compare", "is-finite", "scatter")


def _check_size(findings: Findings, bitcast: Instruction) -> None:
    """A bitcast reinterprets bytes: there are as many before and after. XLA: ShapeUtil::ByteSizeOf."""
    sizes = [s.byte_size for s in (bitcast.operands[0].shape, bitcast.shape) if isinstance(s, ArrayShape)]
    findings.check(
        len(set(sizes)) == 1, "bitcast-size", f"a bitcast of {sizes[0]} bytes into {sizes[-1]}", bitcast
    )


# What is handed on as it is


def _check_handed_on(findings: Findings, instruction: Instruction) -> None:
    for what, given, expected, reduced in _pairs(instruction):
        findings.check(
            _same(given, expected, reduced),
            "layout-mismatch",
            f"{what} is {given}, not {expected}",
            instruction,
        )


def _pairs(instruction: Instruction) -> Iterator[tuple[str, Shape, Shape, Reduced]]:
    """Shapes that are the same to the layout: what it is, as it stands, as it must be, what counts."""
    shape, operands = instruction.shape, instruction.operands
    match instruction.opcode:
        case "get-tuple-element":
            yield "the result", shape, subshape(operands[0].shape, (instruction.integer("index"),)), _whole
        case "opt-barrier" | "async-update":
            yield "the result", shape, operands[0].shape, _whole
        case "tuple":
            yield "the result", shape, TupleShape(tuple(o.shape for o in operands)), _whole
        case "copy-start":
            yield "the destination", subshape(shape, (0,)), operands[0].shape, _order
            yield "the source", subshape(shape, (1,)), operands[0].shape, _order
        case "copy-done":
            yield "the result", shape, subshape(operands[0].shape, (0,)), _order
        case "async-start":
            yield "the operands", subshape(shape, (0,)), TupleShape(tuple(o.shape for o in operands)), _whole
        case "async-done":
            yield "the result", shape, subshape(operands[0].shape, (1,)), _whole
        case "call" | "fusion" | "while" | "conditional":
            for callee, arguments in _callees(instruction):
                yield "the result", shape, callee.root.shape, _whole
                for parameter, argument in zip(callee.parameters, arguments):
                    yield f"{parameter.name} of {callee.name}", parameter.shape, argument.shape, _whole
            if instruction.opcode == "while":
                condition = instruction.computation("condition")
                (state,) = condition.parameters
                yield f"{state.name} of {condition.name}", state.shape, operands[0].shape, _whole


def _callees(instruction: Instruction) -> list[tuple[Computation, tuple[Instruction, ...]]]:
    """Computations whose result the instruction has, with their arguments."""
    operands = instruction.operands
    if instruction.opcode == "conditional":
        return [(branch, (operand,)) for branch, operand in zip(branches(instruction), operands[1:])]
    name = {"call": "to_apply", "fusion": "calls", "while": "body"}[instruction.opcode]
    return [(instruction.computation(name), operands)]


def _check_aliases(findings: Findings, instruction: Instruction) -> None:
    """A buffer that is operand and result at once has one layout; a scalar of a custom call may move."""
    for alias in instruction.listed("output_to_operand_aliasing", OperandAlias, ()):
        result = subshape(instruction.shape, alias.output_index)
        operand = subshape(instruction.operands[alias.operand].shape, alias.operand_index)
        is_scalar = instruction.opcode == "custom-call" and getattr(operand, "size", 0) == 1
        findings.check(
            _same(result, operand, _without_memory if is_scalar else _whole),
            "layout-mismatch",
            f"{result} cannot share memory with the operand's {operand}",
            instruction,
        )


# The header


def _check_entry(findings: Findings) -> None:
    """The entry's shapes are those that the header promises, and aliased buffers are alike."""
    module = findings.module
    promised = module.attribute("entry_computation_layout", EntryLayout, None)
    if promised is None:
        return
    entry = module.entry
    for parameter, shape in zip(entry.parameters, promised.parameters):
        findings.check(
            _same(parameter.shape, shape, _order_and_width),
            "entry-layout",
            f"entry_computation_layout says that {parameter.name} is {shape}, it is {parameter.shape}",
            parameter,
        )
    findings.check(
        _same(entry.root.shape, promised.result, _order_and_width),
        "entry-layout",
        f"entry_computation_layout says the result is {promised.result}, the root is {entry.root.shape}",
        entry.root,
    )
    for alias in module.listed("input_output_alias", ParameterAlias, ()):
        if alias.kind == "must-alias":
            _check_shared(findings, promised, alias)


def _check_shared(findings: Findings, promised: EntryLayout, alias: ParameterAlias) -> None:
    result = subshape(promised.result, alias.output_index)
    parameter = subshape(promised.parameters[alias.parameter], alias.parameter_index)
    findings.check(
        _same(result, parameter),
        "entry-layout",
        f"the result {result} cannot share memory with parameter {alias.parameter}, which is {parameter}",
        findings.module.entry.root,
    )


_CARRIERS = frozenset({"get-tuple-element", "tuple"})
_WRITERS = frozenset({"custom-call", "fusion", "call", "async-start", "while", "conditional"})


def check_buffers(
    findings: Findings, computation: Computation, users: Users, sites: dict[Computation, list[CallSite]]
) -> None:
    """All rules on buffers in one computation."""
    in_loop = any(site.instruction.opcode == "while" for site in sites.get(computation, ()))
    writers = _Writers(computation.root if in_loop else None, users)
    for instruction in computation.instructions:
        if not any(map(_buffers, (instruction.shape, *(o.shape for o in instruction.operands)))):
            continue
        if instruction.opcode == "custom-call":
            _check_custom_call(findings, instruction)
        elif instruction.opcode == "parameter":
            entry = computation is findings.module.entry
            findings.check(not entry, "buffer", "entry parameters cannot be buffers", instruction)
        elif instruction.opcode not in (*_CARRIERS, "while"):
            findings.add("buffer", f"{instruction.opcode} cannot read or write buffers", instruction)
        if instruction.opcode not in _CARRIERS:
            _check_writers(findings, instruction, writers)


def _buffers(shape: Shape) -> list[ShapeIndex]:
    """Where the buffers of a value lie."""
    return [index for index, leaf in leaves(shape) if isinstance(leaf, BufferShape)]


class _Writers:
    """Counts who may write to a buffer; what a loop returns is written to by the next iteration."""

    def __init__(self, loop_root: Instruction | None, users: Users) -> None:
        self.loop_root = loop_root
        self.users = users

    def count(self, instruction: Instruction, index: ShapeIndex) -> int:
        """Writers of the part of `instruction` at `index`."""
        return sum(self._in_user(instruction, index, user) for user in self.users.get(instruction, ()))

    def _in_user(self, instruction: Instruction, index: ShapeIndex, user: Instruction) -> int:
        if user.opcode in _WRITERS:
            return 1
        if user.opcode == "get-tuple-element" and index and user.attributes.get("index") == index[0]:
            return self.count(user, index[1:])
        if user.opcode == "tuple":
            if user is self.loop_root:
                return 1
            return self.count(user, (user.operands.index(instruction), *index))
        return 0


def _check_writers(findings: Findings, instruction: Instruction, writers: _Writers) -> None:
    for index in _buffers(instruction.shape):
        findings.check(
            writers.count(instruction, index) <= 1,
            "buffer",
            f"the buffer at {list(index)} has more than one writer",
            instruction,
        )


def _check_custom_call(findings: Findings, call: Instruction) -> None:
    """Each buffer goes in once and comes out once, as `output_to_operand_aliasing` says."""
    target = call.custom_call_target
    aliases = call.listed("output_to_operand_aliasing", OperandAlias, ())
    if target == "CreateBuffer":
        created = not call.operands and isinstance(call.shape, BufferShape)
        findings.check(created, "buffer", "CreateBuffer takes nothing and gives a buffer", call)
        return
    if target in ("Pin", "Unpin"):
        _check_pin(findings, call, target == "Pin", len(aliases))
        return
    results = Counter(alias.output_index for alias in aliases)
    operands = Counter((alias.operand, alias.operand_index) for alias in aliases)
    given = [results[index] for index in _buffers(call.shape)]
    taken = [operands[i, index] for i, o in enumerate(call.operands) for index in _buffers(o.shape)]
    findings.check(
        all(times == 1 for times in (*given, *taken)),
        "buffer",
        "output_to_operand_aliasing must name each buffer of operands and result once",
        call,
    )


def _check_pin(findings: Findings, call: Instruction, pins: bool, aliases: int) -> None:
    """Pin turns an array into a buffer in place, Unpin back."""
    name = "Pin" if pins else "Unpin"
    shapes = [o.shape for o in call.operands] + [call.shape]
    array, buffer = (shapes[0], shapes[-1]) if pins else (shapes[-1], shapes[0])
    findings.check(
        len(shapes) == 2
        and isinstance(array, ArrayShape)
        and isinstance(buffer, BufferShape)
        and compatible(array, buffer.array),
        "buffer",
        f"{name} joins one array and a buffer of its shape, not {shapes[0]} and {call.shape}",
        call,
    )
    findings.check(aliases == 1, "buffer", f"{name} must alias its operand", call)
