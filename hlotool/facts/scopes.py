"""Layers of a program: the frontend's name scopes, and the values that leave them.

Sources: `jax.named_scope`, Flax and Haiku write the modules around an operation into the `op_name` of its
metadata, `jit(step)/jvp(Model)/Dense_0/dot_general`; transformations wrap names or stand between them. What
is called bears names relative to its caller (since jax 0.7).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.walk import users

#: Parts of a path that transformations put there: no layers.
_TRANSFORMS = re.compile(
    r"while|body|cond|closed_call|branch_\d+_fun|checkpoint|remat\d?|rematted_computation|pjit|shard_map"
    r"|custom_jvp_call(_jaxpr)?|custom_vjp_call(_jaxpr)?|core_call|xla_call|xla_pmap|named_call|.*->.*|"
)
#: The same numbers in other dimensions.
_MOVING = opcodes_with(Trait.SAME_ORDER) | {"transpose"}
_WRAPPED = re.compile(r"([\w-]+)\((.*)\)")


@dataclass(frozen=True, slots=True)
class Scope:
    """Where in the frontend's program something is computed.

    Attributes:
        path: names of the modules, the outermost first; empty outside of all.
        is_backward: in the derivative of it.
    """

    path: tuple[str, ...] = ()
    is_backward: bool = False

    def __str__(self) -> str:
        return "/".join(self.path) + (" (backward)" if self.is_backward else "")

    def around(self) -> Iterator[Scope]:
        """This one and those around it, the innermost first."""
        for length in range(len(self.path), 0, -1):
            yield Scope(self.path[:length], self.is_backward)

    def holds(self, other: Scope) -> bool:
        """Whether `other` is this one, or inside of it."""
        is_inside = other.path[: len(self.path)] == self.path
        return is_inside and other.is_backward == self.is_backward


def scope_of(op_name: str) -> Scope:
    """The scope that an `op_name` tells; its last part is the operation.

    >>> str(scope_of("jit(f)/transpose(jvp(Model))/Dense_0/jit(relu)/max"))
    'Model/Dense_0 (backward)'
    """
    path: list[str] = []
    is_backward = False
    # What XLA merges has the names of all, `a/add;b/add`.
    for part in _parts(op_name.partition(";")[0])[:-1]:
        while (wrapped := _WRAPPED.fullmatch(part)) is not None:
            is_backward |= wrapped[1] == "transpose"
            part = "" if wrapped[1] in ("jit", "pjit") else wrapped[2]
        path += [name for name in part.split("/") if not _TRANSFORMS.fullmatch(name)]
    return Scope(tuple(path), is_backward)


def _parts(op_name: str) -> list[str]:
    """The path, split where no parenthesis is open."""
    parts, depth = [""], 0
    for character in op_name:
        depth += (character == "(") - (character == ")")
        if character == "/" and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


class Scopes:
    """The scopes of a program in which every call has a computation of its own (`flatten_calls`).

    Args:
        module: the program.

    Attributes:
        scopes: of each instruction with a name.
        callers: the instruction that calls each computation but the entry.
        ends: the scopes that the value of an instruction leaves, the innermost first. Of several values that
            leave a scope for others than its own derivative, in one computation, it is the last one, and what
            that is moved from.
        unfinished: of what a layer without layers inside computes on the way: the layer, where something else
            than a constant is applied to it until it is the layer's result, such as a bias.
    """

    def __init__(self, module: Module) -> None:
        self.callers: dict[Computation, Instruction] = {}
        self.scopes: dict[Instruction, Scope] = {}
        self._home: dict[Instruction, Computation] = {}
        self._visit(module.entry, "")
        self.ends = self._ends()
        self.unfinished = dict(self._unfinished())

    def chain(self, instruction: Instruction) -> Sequence[Instruction]:
        """The calls that lead to an instruction, and itself."""
        caller = self.callers.get(self._home[instruction])
        return [*(self.chain(caller) if caller is not None else ()), instruction]

    def _visit(self, computation: Computation, around: str) -> None:
        """Note the scopes of a computation; `around` is the name of what calls it."""
        for instruction in computation.instructions:
            self._home[instruction] = computation
            own = instruction.metadata.op_name if instruction.metadata else ""
            if own and instruction.opcode != "parameter":
                own = _absolute(own, around)
                self.scopes[instruction] = scope_of(own)
            for callee in instruction.called:
                if callee not in self.callers:
                    self.callers[callee] = instruction
                    self._visit(callee, own or around)

    def _ends(self) -> Mapping[Instruction, Sequence[Scope]]:
        last: dict[tuple[Scope, Computation], tuple[bool, Instruction]] = {}
        for computation in dict.fromkeys(self._home.values()):
            read = users(computation)
            for instruction in computation.instructions:
                own = self.scopes.get(instruction, Scope())
                readers = [self.scopes.get(user, Scope()) for user in read[instruction]]
                if instruction is computation.root:
                    caller = self.callers.get(computation)
                    readers.append(Scope() if caller is None else self.scopes.get(caller, Scope()))
                for scope in own.around():
                    outside = [reader for reader in readers if not scope.holds(reader)]
                    is_result = any(reader.is_backward == scope.is_backward for reader in outside)
                    if outside and (is_result or not last.get((scope, computation), (False,))[0]):
                        last[scope, computation] = is_result, instruction
        found: dict[Instruction, list[Scope]] = {}
        for (scope, _), (_, instruction) in last.items():
            found.setdefault(instruction, []).append(scope)
            while instruction.opcode in _MOVING and scope.holds(
                self.scopes.get(instruction.operands[0], Scope())
            ):
                instruction = instruction.operands[0]
                found.setdefault(instruction, []).append(scope)
        return {one: sorted(scopes, key=lambda s: -len(s.path)) for one, scopes in found.items()}

    def _unfinished(self) -> Iterator[tuple[Instruction, Scope]]:
        outer = {scope for own in self.scopes.values() for scope in list(own.around())[1:]}
        for end, scopes in self.ends.items():
            if scopes[0] in outer or scopes[0] != self.scopes[end]:
                continue
            inside = _operations(end, scopes[0], self.scopes)
            for instruction in inside:
                if instruction is not end and _is_applied_to(instruction, inside):
                    yield instruction, scopes[0]


def _operations(end: Instruction, scope: Scope, scopes: Mapping[Instruction, Scope]) -> list[Instruction]:
    """What a layer computes its result from, and that itself, operands last."""
    found = {end: None}
    waiting = [end]
    while waiting:
        for operand in waiting.pop().operands:
            if operand not in found and scopes.get(operand) == scope:
                found[operand] = None
                waiting.append(operand)
    return list(found)


def _is_applied_to(instruction: Instruction, inside: Sequence[Instruction]) -> bool:
    """Whether what is computed from an instruction in a layer reads something else that is no constant."""
    known: dict[Instruction, bool] = {}

    def is_constant(one: Instruction) -> bool:
        if one not in known:
            known[one] = one.opcode in ("constant", "iota") or (
                bool(one.operands) and all(map(is_constant, one.operands))
            )
        return known[one]

    later = {instruction}
    grows = True
    while grows:
        more = {one for one in inside if one not in later and any(o in later for o in one.operands)}
        later |= more
        grows = bool(more)
    read = (operand for one in later - {instruction} for operand in one.operands)
    return any(operand not in later and not is_constant(operand) for operand in read)


def _absolute(name: str, around: str) -> str:
    """The whole name of what is called `name` in something that is called `around`."""
    if not around or _parts(name)[0] == _parts(around)[0]:
        return name
    return f"{around}/{name}"
