"""Mutable buffers `b(f32[4])`: each value has one writer, and only custom calls, tuples and loops carry them.

XLA: hlo_verifier.cc VerifyBuffers; custom-call targets Pin, Unpin and CreateBuffer.
"""

from __future__ import annotations

from collections import Counter

from hlotool.ir.attributes import OperandAlias
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.shapes.compatibility import compatible
from hlotool.ir.types import ArrayShape, BufferShape, Shape, ShapeIndex, leaves
from hlotool.ir.verification.findings import Findings
from hlotool.ir.walk import CallSite, Users

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
