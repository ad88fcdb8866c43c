"""One recursion writes a whole computation: the value of an instruction at an index.

`Emitter.value(instruction, index)` appends statements to the kernel and returns the name of a local variable.
Values and index expressions that were written before, in this scope or an outer one, are used again. Data
movement is nothing but other indices; the rules for it stand in `movement`, those for loops in `reductions`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from hlotool.backends.cuda.codegen.elements import (
    NotGenerated,
    array_shape,
    computed,
    element_type,
    load,
    store,
    stored,
)
from hlotool.backends.cuda.codegen.elementwise import constant as scalar
from hlotool.backends.cuda.codegen.elementwise import expression, is_elementwise
from hlotool.backends.cuda.codegen.indices import Digit, Expr, Index, Variable, linear, variable
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import by_name
from hlotool.ir.types import ElementType, TupleShape

if TYPE_CHECKING:
    from hlotool.facts.scalar_form import ScalarForm

#: Writes an instruction at an index and returns the names of its results (one, but for variadic reductions).
Rule: TypeAlias = "Callable[[Emitter, Instruction, Index], tuple[str, ...]]"

RULES: dict[str, Rule] = {}

#: Larger kernels are not worth their compilation; instructions that are read at many indices get there.
_MAX_STATEMENTS = 8192

#: Chains of more operations are not written by recursion.
_DEEP = 64


_COMMENT = re.compile(r"  /\* %[^*]* \*/")


def without_comments(source: str) -> str:
    """What is compiled: comments do not change a kernel, so that it is found again under other names."""
    return _COMMENT.sub("", source)


def writes(*opcodes: str) -> Callable[[Rule], Rule]:
    """Register the rule for `opcodes`, or for what generated code has beside them."""
    return by_name(RULES, opcodes)


_NAMES = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring elements that a thread computes at once: at `first`, `first + 1`, …, one for each `lane`.

    Attributes:
        variable: the index along which they are neighbours, `column`.
        width: how many there are on a GPU; `first` is a multiple of it.
    """

    variable: Variable
    width: int

    @property
    def first(self) -> Expr:
        """The index of lane 0."""
        return Expr(((Variable("first", self.variable.low, self.variable.high), 1),))

    def base(self, position: Expr) -> Expr | None:
        """The position of lane 0 where the lanes of `position` are neighbours in memory."""
        if position.factor(self.variable) != 1:
            return None
        rest = position - Expr(((self.variable, 1),))
        return None if self.variable in rest.variables() else rest + self.first


class Emitter:
    """Statements of one kernel.

    Attributes:
        statements: what is executed for each element.
        head: what is the same for all lanes of a run, and is executed before.
        positions: indices and positions in memory that were written.
        edges: indices of the run at which something else begins.
        loads: pointers, positions and element types of what is loaded for every element.
        totals: values that do not depend on the lane, by name, and the only index at which they are known.
        used: those of them that were read.

    Args:
        buffers: pointer names of the instructions whose values lie in memory.
        run: the elements that the statements are repeated for.
        totals: to start with.
        tiles: where elements lie in shared memory, by pointer and position.
    """

    def __init__(
        self,
        buffers: Mapping[Instruction, str],
        run: Run | None = None,
        totals: Mapping[Instruction, tuple[str, Expr]] | None = None,
        tiles: Mapping[tuple[str, Expr], str] | None = None,
    ) -> None:
        self.statements: list[str] = []
        self.head: list[str] = []
        self.positions: list[Expr] = []
        self.edges: set[int] = set()
        self.loads: list[tuple[str, Expr, ElementType]] = []
        self._buffers = buffers
        self._run = run
        self._tiles = tiles or {}
        self.totals = dict(totals or {})
        self.used: set[Instruction] = set()
        self._scopes: list[dict[object, tuple[str, ...]]] = [{}]
        self._names = 0
        self._varying = {"lane", run.variable.name if run is not None else "column"}

    def value(self, instruction: Instruction, index: Sequence[Expr]) -> str:
        """The name of the value of an array at `index`.

        Raises:
            NotGenerated: something that it depends on cannot be written.
        """
        return self.values(instruction, index)[0]

    def values(self, instruction: Instruction, index: Sequence[Expr]) -> tuple[str, ...]:
        """The names of all results of an instruction that may have several; raises as `value` does."""
        key = instruction, parts = instruction, tuple(index)
        known = self._known(key)
        if known is None:
            self._write_chain(instruction, parts)
            made = self._write(instruction, parts)
            self._comment(instruction, made[0])
            is_shared = self._run is not None and not self._varying.intersection(made)
            known = self._scopes[0 if is_shared else -1][key] = made
        return known

    def index(self, part: Expr) -> str:
        """A name for an index."""
        if not part.terms:
            return str(part.offset)
        if len(part.terms) == 1 and not part.offset:
            (atom, factor), *_ = part.terms
            if factor == 1 and isinstance(atom, Variable):
                return atom.name
        self.positions.append(part)
        terms = [self._term(atom, factor) for atom, factor in part.terms]
        text = " + ".join(terms) + (f" + {part.offset}" if part.offset > 0 else "")
        text += f" - {-part.offset}" if part.offset < 0 else ""
        return self._named(text, "Index" if part.is_known else "i64")

    def begins(self, part: Expr, at: int) -> None:
        """Note that it matters whether an index is below or above."""
        if self._run is not None and part.terms == ((self._run.variable, 1),):
            self.edges.add(at - part.offset)

    def computed_index(self, text: str, size: int | None = None) -> Expr:
        """An index that is computed from data, from 0 to size - 1 or of any value."""
        return variable(self._named(text, "i64" if size is None else "Index"), size)

    def _term(self, atom: Variable | Digit, factor: int) -> str:
        if isinstance(atom, Variable):
            text = atom.name
        else:
            text = self.index(atom.of)
            text = text if atom.step == 1 else f"divide<{atom.step}>({text})"
            text = text if atom.size is None else f"modulo<{atom.size}>({text})"
            text = self._named(text, "Index" if atom.of.is_known else "i64")
        return text if factor == 1 else f"{text} * {factor}"

    def _named(self, text: str, ctype: str) -> str:
        if text.isidentifier() or text.isdecimal():
            return text
        known = self._known(text)
        if known is None:
            name = self.define(ctype, text)
            is_ahead = self._run is not None and name not in self._varying
            known = self._scopes[0 if is_ahead else -1][text] = (name,)
        return known[0]

    def define(self, ctype: str, text: str) -> str:
        """A new constant."""
        name = self.name("v")
        # Not const: NVIDIA's front end looks for the value of a const integer in those it is made of, and in
        # theirs, again and again: minutes for the 150 operations of a random generator.
        statement = f"{ctype} {name} = {text};"
        if (
            self._run is not None
            and len(self._scopes) == 1
            and not self._varying.intersection(_NAMES.findall(text))
        ):
            self._varying.discard(name)
            self.head.append(statement)
        else:
            self.add(statement)
        return name

    def variable(self, kind: ElementType, start: str | None = None) -> str:
        """A new variable of the type in which `kind` is computed."""
        name = self.name("x")
        self.add(f"{computed(kind)} {name};" if start is None else f"{computed(kind)} {name} = {start};")
        return name

    def add(self, statement: str) -> None:
        """Append a statement."""
        self.statements.append(statement)

    def name(self, prefix: str) -> str:
        """A name that nothing has yet."""
        self._names += 1
        name = f"{prefix}{self._names}"
        self._varying.add(name)
        return name

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Statements in braces after `head`; what is defined there is forgotten behind them."""
        self.add(head + " {")
        self._scopes.append({})
        yield
        self._scopes.pop()
        self.add("}")

    @contextmanager
    def loops(self, sizes: Sequence[int]) -> Iterator[list[Expr]]:
        """Loops inside of each other, the last one innermost; gives the counters."""
        counters = [self.name("j") for _ in sizes]
        heads = [f"for (Index {c} = 0; {c} < {size}; ++{c})" for c, size in zip(counters, sizes)]
        with self.block(" ".join(heads)):
            yield [variable(c, size) for c, size in zip(counters, sizes)]

    def where(self, tests: Sequence[str]) -> AbstractContextManager[None]:
        """A block for where all tests hold."""
        return self.block(f"if ({' && '.join(tests) or 'true'})")

    def apply(self, form: ScalarForm, arguments: Sequence[str]) -> tuple[str, ...]:
        """The results of a scalar computation."""
        known = dict(zip(form.parameters, arguments))
        for operation in form.operations:
            if operation.opcode == "constant":
                text = scalar(operation)
            else:
                text = expression(operation, [known[o] for o in operation.operands])
            known[operation] = self.define(computed(element_type(operation)), text)
        return tuple(known[output] for output in form.outputs)

    def _write_chain(self, instruction: Instruction, index: Index) -> None:
        """Write a long chain of elementwise operations from its far end, without recursion."""
        order: dict[tuple[Instruction, Index], None] = {}
        pending = [(instruction, index)]
        while pending:
            node, at = key = pending.pop()
            is_source = node in self._buffers or node in self.totals or not is_elementwise(node)
            if is_source or key in order or self._known(key) is not None:
                continue
            order[key] = None
            pending += [(o, at if array_shape(o).rank else ()) for o in node.operands]
        if len(order) > _DEEP:
            for node, at in reversed(list(order)[1:]):
                self.values(node, at)

    def _comment(self, instruction: Instruction, name: str) -> None:
        """Say of a statement that defines the value of an instruction which one it is."""
        for statements in (self.statements, self.head):
            if statements and f" {name} = " in statements[-1]:
                statements[-1] += f"  /* %{instruction.name} = {instruction.opcode} */"

    def _known(self, key: object) -> tuple[str, ...] | None:
        return next((scope[key] for scope in reversed(self._scopes) if key in scope), None)

    def _write(self, instruction: Instruction, index: Index) -> tuple[str, ...]:
        if len(self.statements) + len(self.head) > _MAX_STATEMENTS:
            raise NotGenerated("the kernel becomes too large", instruction)
        if (total := self.totals.get(instruction)) is not None:
            if linear(index, array_shape(instruction).dims) != total[1]:
                raise NotGenerated("read at an index where it is not known", instruction)
            self.used.add(instruction)
            return (self.define(computed(element_type(instruction)), total[0]),)
        if (pointer := self._buffers.get(instruction)) is not None:
            shape = array_shape(instruction)
            return (self.load(pointer, linear(index, shape.dims), shape.element_type),)
        if instruction.opcode == "constant":
            return (self.define(computed(element_type(instruction)), scalar(instruction)),)
        if is_elementwise(instruction):
            return (self._elementwise(instruction, index),)
        rule = RULES.get(instruction.opcode)
        if rule is None:
            raise NotGenerated("kernels do not know this operation", instruction)
        if not isinstance(instruction.shape, TupleShape):
            array_shape(instruction)
        return rule(self, instruction, index)

    def load(self, pointer: str, position: Expr, kind: ElementType) -> str:
        """The name of an element in memory."""
        self.positions.append(position)
        is_always = len(self._scopes) == 1
        if is_always:
            self.loads.append((pointer, position, kind))
        if (tile := self._tiles.get((pointer, position))) is not None:
            return self.define(computed(kind), tile)
        base = self._run.base(position) if self._run is not None and is_always else None
        if base is None:
            return self.define(computed(kind), load(pointer, self.index(position), kind))
        return self.define(computed(kind), load(self._lanes(pointer, kind, base), "lane", kind))

    def _lanes(self, pointer: str, kind: ElementType, base: Expr) -> str:
        """What neighbouring elements are called: a vector, or two where their place is no multiple of one."""
        assert self._run is not None
        key, place = ("lanes", pointer, base), self.index(base)
        known = self._known(key)
        if known is None:
            name, width = self.name("w"), self._run.width
            if width > 1 and (base - self._run.first).is_multiple(width):
                self.head.append(f"const Lanes<{stored(kind)}, {width}> {name}({pointer}, {place});")
            elif self._has_vectors(pointer, kind):
                self.head.append(f"const Shifted<{stored(kind)}, {width}> {name}({pointer}, {place});")
            else:
                self.head.append(f"const {stored(kind)}* const {name} = {pointer} + {place};")
            known = self._scopes[0][key] = (name,)
        return known[0]

    def _has_vectors(self, pointer: str, kind: ElementType) -> bool:
        """Whether memory can be read by aligned vectors, the last of its elements, too."""
        width = 1 if self._run is None else self._run.width
        bits = max(8, kind.bits)
        sizes = (array_shape(i).size for i, name in self._buffers.items() if name == pointer)
        return width > 1 and width * bits >= 32 and bits <= 32 and next(sizes, 1) % width == 0

    def store(self, pointer: str, position: Expr, value: str, kind: ElementType) -> None:
        """Write a value to a place in memory."""
        self.positions.append(position)
        base = self._run.base(position) if self._run is not None else None
        if base is None or self._run is None:
            self.add(store(pointer, self.index(position), value, kind))
            return
        name, place = self.name("w"), self.index(base)
        if self._run.width > 1 and (base - self._run.first).is_multiple(self._run.width):
            self.head.append(f"Stores<{stored(kind)}, {self._run.width}> {name}({pointer}, {place});")
        else:
            self.head.append(f"{stored(kind)}* const {name} = {pointer} + {place};")
        self.add(store(name, "lane", value, kind))

    def _elementwise(self, instruction: Instruction, index: Index) -> str:
        shape = array_shape(instruction)
        values = []
        for operand in instruction.operands:
            is_scalar = array_shape(operand).rank == 0
            if not is_scalar and array_shape(operand).dims != shape.dims:
                raise NotGenerated("operands of unequal dimensions", instruction)
            values.append(self.value(operand, () if is_scalar else index))
        return self.define(computed(shape.element_type), expression(instruction, values))
