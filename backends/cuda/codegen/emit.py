"""One recursion writes a whole computation: the value of an instruction at an index.

`Emitter.value(instruction, index)` appends statements to the kernel and returns the name of a local variable.
Values and index expressions that were written before, in this scope or an outer one, are used again. Data
movement is nothing but other indices; the rules for it stand in `movement`, those for loops in `reductions`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from hlotool.backends.cuda.codegen.elements import NotGenerated, array_shape, computed, element_type, load
from hlotool.backends.cuda.codegen.elementwise import constant, expression, is_elementwise
from hlotool.backends.cuda.codegen.indices import Index, linear
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType, TupleShape

if TYPE_CHECKING:
    from hlotool.backends.numpy.scalar_form import ScalarForm

#: Writes an instruction at an index and returns the names of its results (one, but for variadic reductions).
Rule: TypeAlias = "Callable[[Emitter, Instruction, Index], tuple[str, ...]]"

RULES: dict[str, Rule] = {}

#: Larger kernels are not worth their compilation; instructions that are read at many indices get there.
_MAX_STATEMENTS = 4000


_COMMENT = re.compile(r"  /\* %[^*]* \*/")


def without_comments(source: str) -> str:
    """What is compiled: comments do not change a kernel, so that it is found again under other names."""
    return _COMMENT.sub("", source)


def writes(*opcodes: str) -> Callable[[Rule], Rule]:
    """Register the rule for `opcodes`."""

    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(opcodes, rule))
        return rule

    return register


class Emitter:
    """Statements of one kernel.

    Args:
        buffers: pointer names of the instructions whose values lie in memory.
        flat: indices are positions in memory: all arrays have the same elements in the same order.
    """

    def __init__(self, buffers: Mapping[Instruction, str], flat: bool = False) -> None:
        self.statements: list[str] = []
        self.flat = flat
        self._buffers = buffers
        self._scopes: list[dict[object, tuple[str, ...]]] = [{}]
        self._names = 0

    def value(self, instruction: Instruction, index: Sequence[str]) -> str:
        """The name of the value of an array at `index`.

        Raises:
            NotGenerated: something that it depends on cannot be written.
        """
        return self.values(instruction, index)[0]

    def values(self, instruction: Instruction, index: Sequence[str]) -> tuple[str, ...]:
        """The same for an instruction that may have several results."""
        parts = tuple(self.index(part) for part in index)
        key = (instruction, parts)
        known = self._known(key)
        if known is None:
            known = self._scopes[-1][key] = self._write(instruction, parts)
            self._comment(instruction, known[0])
        return known

    def index(self, text: str) -> str:
        """A name for an index expression."""
        if text.isidentifier() or text.isdecimal():
            return text
        known = self._known(text)
        if known is None:
            known = self._scopes[-1][text] = (self.define("i64", text),)
        return known[0]

    def define(self, ctype: str, text: str) -> str:
        """A new constant."""
        name = self.name("v")
        self.add(f"const {ctype} {name} = {text};")
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
        return f"{prefix}{self._names}"

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Statements in braces after `head`; what is defined there is forgotten behind them."""
        self.add(head + " {")
        self._scopes.append({})
        yield
        self._scopes.pop()
        self.add("}")

    def apply(self, form: ScalarForm, arguments: Sequence[str]) -> tuple[str, ...]:
        """The results of a scalar computation."""
        known = dict(zip(form.parameters, arguments))
        for operation in form.operations:
            if operation.opcode == "constant":
                text = constant(operation)
            else:
                text = expression(operation, [known[o] for o in operation.operands])
            known[operation] = self.define(computed(element_type(operation)), text)
        return tuple(known[output] for output in form.outputs)

    def _comment(self, instruction: Instruction, name: str) -> None:
        """Say of a statement that defines the value of an instruction which one it is."""
        if self.statements and f" {name} = " in self.statements[-1]:
            self.statements[-1] += f"  /* %{instruction.name} = {instruction.opcode} */"

    def _known(self, key: object) -> tuple[str, ...] | None:
        return next((scope[key] for scope in reversed(self._scopes) if key in scope), None)

    def _write(self, instruction: Instruction, index: Index) -> tuple[str, ...]:
        if len(self.statements) > _MAX_STATEMENTS:
            raise NotGenerated("the kernel becomes too large", instruction)
        if (pointer := self._buffers.get(instruction)) is not None:
            return (self._load(instruction, pointer, index),)
        if instruction.opcode == "constant":
            return (self.define(computed(element_type(instruction)), constant(instruction)),)
        if is_elementwise(instruction):
            return (self._elementwise(instruction, index),)
        rule = RULES.get(instruction.opcode)
        if rule is None:
            raise NotGenerated("kernels do not know this operation", instruction)
        if not isinstance(instruction.shape, TupleShape):
            array_shape(instruction)
        return rule(self, instruction, index)

    def _load(self, instruction: Instruction, pointer: str, index: Index) -> str:
        shape = array_shape(instruction)
        position = index[0] if self.flat and shape.rank and index else linear(index, shape.dims)
        kind = shape.element_type
        return self.define(computed(kind), load(pointer, self.index(position), kind))

    def _elementwise(self, instruction: Instruction, index: Index) -> str:
        shape = array_shape(instruction)
        values = []
        for operand in instruction.operands:
            is_scalar = array_shape(operand).rank == 0
            if not is_scalar and array_shape(operand).dims != shape.dims:
                raise NotGenerated("operands of unequal dimensions", instruction)
            values.append(self.value(operand, () if is_scalar else index))
        return self.define(computed(shape.element_type), expression(instruction, values))
