"""Changing one computation without breaking it: users, order, root and control dependencies stay consistent.

    with editing(computation) as edit:
        zero = edit.add(Instruction("zero", "constant", shape, literal=literal), before=product)
        edit.replace(product, zero)

Its neighbours: `edit_clone` copies modules and computations, `edit_calls` inlines and outlines, `edit_dead`
removes what is not needed, `edit_signature` changes parameters of the entry, `edit_extract` cuts out modules.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from hlotool.errors import Unsupported
from hlotool.ir.attributes import AttributeValue
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.shapes.base import compatible
from hlotool.ir.walk import has_side_effect, predecessors, sort_topologically, users

#: The largest computation and the largest module that edits may make. Ten lines of calls of calls would make
#: others that fill any memory; programs that people run have a tenth of this.
MOST_INSTRUCTIONS = 400_000
MOST_COMPUTATIONS = 40_000

_NUMBER = re.compile(r"\.\d+$")


class Names:
    """Hands out unused names.

    Args:
        taken: names in use.
    """

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def fresh(self, wanted: str) -> str:
        """`wanted` when it is free, else its stem with another number: `add.5` becomes `add.6`."""
        name, stem = wanted, _NUMBER.sub("", wanted)
        while name in self._taken:
            number = self._next.get(stem, 0) + 1
            self._next[stem] = number
            name = f"{stem}.{number}"
        self._taken.add(name)
        return name


def computation_names(module: Module) -> Names:
    """Names of the module's computations."""
    return Names(c.name for c in module.computations)


def unique_names(module: Module) -> dict[Instruction, str]:
    """New names of the instructions whose own name is taken by one of an earlier computation.

    In text and here names are unique within their computation; protos want them unique in the module.
    """
    first: dict[str, Instruction] = {}
    again = [i for i in module.instructions() if first.setdefault(i.name, i) is not i]
    names = Names(first)
    return {instruction: names.fresh(instruction.name) for instruction in again}


def add_computation(module: Module, computation: Computation, names: Names | None = None) -> Computation:
    """Add `computation` right after what it calls, renamed when its name is taken.

    Raises:
        ValueError: it calls a computation that is not in the module.
        Unsupported: the module would have more than MOST_COMPUTATIONS.
    """
    if len(module.computations) >= MOST_COMPUTATIONS:
        raise Unsupported(f"the program would grow to more than {MOST_COMPUTATIONS:,} computations")
    computation.name = (names or computation_names(module)).fresh(computation.name)
    callees = {callee for i in computation.instructions for callee in i.called}
    position = 1 + max(map(module.computations.index, callees), default=-1)
    module.computations.insert(position, computation)
    return computation


@contextmanager
def editing(computation: Computation) -> Iterator[Editor]:
    """Edit `computation`; its list of instructions is up to date when the block ends."""
    editor = Editor(computation)
    yield editor
    editor.finish()


class Editor:
    """Edits one computation, each step in constant time and the time its users take.

    Operands, users, control dependencies and the root change at once, `computation.instructions` with
    `finish`. Where a change puts a use before its definition, the definition moves up; everything else keeps
    its place, so a schedule stays one.

    Args:
        computation: to be edited; it must not be changed elsewhere meanwhile.
    """

    def __init__(self, computation: Computation) -> None:
        self.computation = computation
        self.names = Names(i.name for i in computation.instructions)
        #: Whether anything was changed.
        self.changed = False
        self._users = {i: dict.fromkeys(readers) for i, readers in users(computation).items()}
        self._successors: dict[Instruction, dict[Instruction, None]] = {}
        self._added: set[Instruction] = set()
        self._next: dict[Instruction | None, Instruction | None] = {}
        self._previous: dict[Instruction | None, Instruction | None] = {}
        self._link_all()

    def _link_all(self) -> None:
        last: Instruction | None = None
        for instruction in self.computation.instructions:
            self._next[last], self._previous[instruction] = instruction, last
            for needed in instruction.control_predecessors:
                self._successors.setdefault(needed, {})[instruction] = None
            last = instruction
        self._next[last], self._previous[None] = None, last

    # Looking

    def __iter__(self) -> Iterator[Instruction]:
        """The instructions in their present order, as they were when the iteration began."""
        found, instruction = [], self._next[None]
        while instruction is not None:
            found.append(instruction)
            instruction = self._next[instruction]
        return (i for i in found if i in self._users)

    def __contains__(self, instruction: object) -> bool:
        return instruction in self._users

    def users(self, instruction: Instruction) -> list[Instruction]:
        """Who reads its result, each once."""
        return list(self._users[instruction])

    def successors(self, instruction: Instruction) -> list[Instruction]:
        """What a control dependency makes run after it."""
        return list(self._successors.get(instruction, ()))

    def is_read(self, instruction: Instruction) -> bool:
        """Whether an instruction or the caller reads its result."""
        return bool(self._users[instruction]) or instruction is self.computation.root

    # Changing

    def add(self, instruction: Instruction, before: Instruction | None = None) -> Instruction:
        """Add an instruction made elsewhere, renamed when its name is taken.

        Args:
            instruction: its operands must be in the computation.
            before: where it goes; at the end when None.

        Raises:
            Unsupported: the computation would have more than MOST_INSTRUCTIONS.
        """
        if len(self._users) >= MOST_INSTRUCTIONS:
            name = self.computation.name
            raise Unsupported(
                f"computation {name} would grow to more than {MOST_INSTRUCTIONS:,} instructions"
            )
        self._require(instruction.operands)
        instruction.name = self.names.fresh(instruction.name)
        previous = self._previous[before]
        self._next[previous], self._previous[instruction] = instruction, previous
        self._next[instruction], self._previous[before] = before, instruction
        self._users[instruction] = {}
        self._added.add(instruction)
        for operand in instruction.operands:
            self._users[operand][instruction] = None
        for needed in instruction.control_predecessors:
            self._successors.setdefault(needed, {})[instruction] = None
        self.changed = True
        return instruction

    def set_operands(self, instruction: Instruction, operands: Iterable[Instruction]) -> None:
        """Make it read `operands`."""
        following = tuple(operands)
        self._require(following)
        for operand in instruction.operands:
            self._users[operand].pop(instruction, None)
        instruction.operands = following
        for operand in following:
            self._users[operand][instruction] = None
        self.changed = True

    def _replace_operands(self, user: Instruction, old: Instruction, new: Instruction) -> None:
        """Every `old` among the operands of `user` becomes `new`; some have thousands of operands."""
        self._require([new])
        operands = list(user.operands)
        for _ in range(operands.count(old)):
            operands[operands.index(old)] = new
        user.operands = tuple(operands)
        del self._users[old][user]
        self._users[new][user] = None
        self.changed = True

    def set_root(self, instruction: Instruction) -> None:
        """Return another instruction, of a compatible shape."""
        self._require([instruction])
        _require_compatible(self.computation.root, instruction)
        self.computation.root = instruction
        self.changed = True

    def replace_uses(self, old: Instruction, new: Instruction, but: Collection[Instruction] = ()) -> None:
        """Let everything that reads `old` read `new`, except for `new` itself and those in `but`.

        Raises:
            ValueError: the shapes are not compatible.
        """
        _require_compatible(old, new)
        for user in self.users(old):
            if user is not new and user not in but:
                self._replace_operands(user, old, new)
        if self.computation.root is old:
            self.set_root(new)

    def replace(self, old: Instruction, new: Instruction) -> None:
        """Put `new` in the place of `old`, which goes with all that only it needed, unless `new` reads it.

        An instruction that this editor added takes over the control dependencies of `old`, and its metadata,
        frontend attributes and sharding where it has none of its own.

        Raises:
            ValueError: the shapes are not compatible.
        """
        if new in self._added:
            _inherit(new, old)
            self.set_control_predecessors(new, (*new.control_predecessors, *old.control_predecessors))
            for following in self.successors(old):
                self.set_control_predecessors(following, (*following.control_predecessors, new))
        self.replace_uses(old, new)
        self.remove_unused(old)

    def remove_unused(self, instruction: Instruction) -> None:
        """Remove an instruction and what only it needed, as far as it is unread and has no effects."""
        waiting = [instruction]
        while waiting:
            candidate = waiting.pop()
            if candidate in self and self.is_removable(candidate):
                self.remove(candidate)
                waiting += candidate.operands

    def is_removable(self, instruction: Instruction) -> bool:
        """Whether the program does the same without it: not read, returned, acting, or a parameter."""
        return (
            not self.is_read(instruction)
            and instruction.opcode != "parameter"
            and not has_side_effect(instruction)
        )

    def set_control_predecessors(self, instruction: Instruction, needed: Iterable[Instruction]) -> None:
        """Make it run after `needed`."""
        for other in instruction.control_predecessors:
            self._successors.get(other, {}).pop(instruction, None)
        following = tuple(dict.fromkeys(n for n in needed if n is not instruction))
        instruction.control_predecessors = following
        for other in following:
            self._successors.setdefault(other, {})[instruction] = None
        self.changed = True

    def remove(self, instruction: Instruction) -> None:
        """Remove an unread instruction; what had to run after it now runs after what it had to follow.

        Raises:
            ValueError: it is read, returned, or a parameter (`edit_signature` removes those).
        """
        if self.is_read(instruction):
            raise ValueError(f"{instruction.name} is still used")
        if instruction.opcode == "parameter":
            raise ValueError(f"{instruction.name} is a parameter")
        self.discard(instruction)

    def discard(self, instruction: Instruction) -> None:
        """`remove` for callers that take care of the parameters' numbers themselves."""
        for following in self.successors(instruction):
            kept = (p for p in following.control_predecessors if p is not instruction)
            self.set_control_predecessors(following, (*kept, *instruction.control_predecessors))
        self.set_control_predecessors(instruction, ())
        for operand in instruction.operands:
            self._users[operand].pop(instruction, None)
        following_one, previous = self._next.pop(instruction), self._previous.pop(instruction)
        self._next[previous], self._previous[following_one] = following_one, previous
        del self._users[instruction]
        self._added.discard(instruction)
        self.changed = True

    def finish(self) -> bool:
        """Bring `computation.instructions` up to date.

        Returns:
            Whether anything was changed.

        Raises:
            ValueError: an instruction depends on itself.
        """
        if self.changed:
            self.computation.instructions = list(self)
            if not is_ordered(self.computation):
                sort_topologically(self.computation)
        return self.changed

    def _require(self, instructions: Iterable[Instruction]) -> None:
        for instruction in instructions:
            if instruction not in self._users:
                raise ValueError(f"{instruction.name} is not in {self.computation.name}")


def is_ordered(computation: Computation) -> bool:
    """Whether every instruction stands after what it needs."""
    seen: set[Instruction] = set()
    for instruction in computation.instructions:
        if any(needed not in seen for needed in predecessors(instruction)):
            return False
        seen.add(instruction)
    return True


def with_attributes(
    attributes: Mapping[str, AttributeValue], **changes: AttributeValue | None
) -> dict[str, AttributeValue]:
    """A copy with some values set, or removed where the change is None."""
    merged = {**attributes, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def copied(instruction: Instruction, operands: Iterable[Instruction] | None = None) -> Instruction:
    """A copy that reads `operands` instead, calls the same computations and has no control predecessors."""
    own = instruction.operands if operands is None else tuple(operands)
    return replace(instruction, operands=own, control_predecessors=())


def _require_compatible(old: Instruction, new: Instruction) -> None:
    if not compatible(old.shape, new.shape):
        raise ValueError(f"{new.name} of shape {new.shape} cannot stand for {old.name} of shape {old.shape}")


def _inherit(new: Instruction, old: Instruction) -> None:
    """Take over what says where an instruction comes from and where it runs."""
    if new.metadata is None:
        new.metadata = old.metadata
    kept = {k: old.attributes[k] for k in ("frontend_attributes", "sharding") if k in old.attributes}
    if not kept.keys() <= new.attributes.keys():
        new.attributes = {**kept, **new.attributes}
