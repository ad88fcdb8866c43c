"""Names resolved: from syntax records to the instructions and computations of the IR.

Every reader of text ends here, whether it parsed a token at a time or cut the text into pieces it knew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from hlotool.errors import HlotoolError
from hlotool.ir.attributes import AttributeValue, EmbeddedLiteral, RawText
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import ELEMENT_TYPES, Shape, TupleShape
from hlotool.parser.text.attributes import BoundAttributes, bind
from hlotool.parser.text.single_opcodes import (
    EXPLICIT_SHAPE,
    instruction_error,
    opcode_of,
    operand_count_error,
    same_array,
    wrapped_instruction,
)
from hlotool.parser.text.syntax import (
    AnonymousComputation,
    AttributeSyntax,
    CalleeName,
    CallSyntax,
    ComputationSyntax,
    Draft,
    InstructionSyntax,
    Name,
    OperandSyntax,
    Scope,
    Span,
    TextError,
    TypedLiteral,
    TypedLiteralTuple,
    element_name,
)
from hlotool.parser.tokens import normalized
from hlotool.system.user_input import did_you_mean

if TYPE_CHECKING:
    from hlotool.ir.arrays import Literal

#: What `Builder.reset` goes back to.
Mark: TypeAlias = tuple[int, int, dict[str, int]]


class Builder:
    """The computations of one module.

    Args:
        text: that all positions refer to.
        strict: reject what XLA rejects although hlotool understands it.
    """

    def __init__(self, text: str, strict: bool) -> None:
        self.text = text
        self.strict = strict
        #: Added to line numbers while `text` is one line of a larger text.
        self.line_offset = 0
        self.computations: list[Computation] = []
        self.by_name: dict[str, Computation] = {}
        self.entry: Computation | None = None
        self._anonymous: list[Computation] = []
        self._anonymous_names: dict[str, int] = {}

    # Computations

    def computation(self, syntax: ComputationSyntax) -> Computation:
        """Read the instructions of a computation and add it."""
        scope = self.instructions(syntax.instructions, Scope())
        position = syntax.name.position
        computation = scope.finish(syntax.name.text, syntax.name.line, position)
        self.add_computation(computation, syntax.is_entry, syntax.result, syntax.attributes, position)
        return computation

    def add_computation(
        self,
        computation: Computation,
        is_entry: bool,
        result: Shape | None,
        attributes: Iterable[AttributeSyntax],
        position: int | None,
    ) -> None:
        """Add a named computation whose instructions are complete.

        Args:
            computation: as `Scope.finish` returns it.
            is_entry: it is marked ENTRY.
            result: shape of the result according to the signature, if there is one.
            attributes: what follows the closing brace.
            position: of its name, for errors.
        """
        name, root = computation.name, computation.root
        if result is not None and not same_array(result, root.shape):
            raise TextError(
                f"computation {name}: the signature says {result}, the root {root.name} is {root.shape}",
                position,
            )
        for key, value, at in attributes:
            if key != "execution_thread":
                raise TextError(f'unexpected attribute "{key}"; a computation takes execution_thread', at)
            computation.execution_thread = value
        if name in self.by_name:
            raise TextError(f"two computations are called {name}", position)
        if is_entry and self.entry is not None:
            raise TextError(f"two ENTRY computations: {self.entry.name} is one already", position)
        self.by_name[name] = computation
        self.computations.append(computation)
        if is_entry:
            self.entry = computation

    def add_anonymous(self, computation: Computation) -> None:
        """Add a computation that gets its final name when all others are known."""
        self.computations.append(computation)
        self._anonymous.append(computation)

    def instructions(self, listed: Iterable[InstructionSyntax], scope: Scope) -> Scope:
        """Add instructions to `scope` in order."""
        for syntax in listed:
            self.instruction(syntax, scope)
        return scope

    @contextmanager
    def within(self, text: str, line_offset: int) -> Iterator[None]:
        """Positions refer to `text`, which begins so many lines below the beginning of the source."""
        whole = self.text
        self.text, self.line_offset = text, line_offset
        try:
            yield
        finally:
            self.text, self.line_offset = whole, 0

    def mark(self) -> Mark:
        """The present state, for `reset`."""
        return len(self.computations), len(self._anonymous), dict(self._anonymous_names)

    def reset(self, mark: Mark) -> None:
        """Forget the anonymous computations and names since `mark`; no named one has been added since."""
        computations, anonymous, self._anonymous_names = mark
        del self.computations[computations:], self._anonymous[anonymous:]

    def finish(self) -> Computation:
        """Name anonymous computations, check what concerns the whole module; returns the entry."""
        for computation in self._anonymous:
            computation.name = self._unused_name(computation.name)
            self.by_name[computation.name] = computation
        self._check_async_callers()
        return self.entry or self.computations[-1]

    def _unused_name(self, base: str) -> str:
        if base not in self.by_name:
            return base
        return next(name for i in count(1) if (name := f"{base}.{i}") not in self.by_name)

    def _check_async_callers(self) -> None:
        callers: dict[Computation, Instruction] = {}
        starts = [i for c in self.computations for i in c.instructions if i.opcode == "async-start"]
        for start in starts:
            callee = next(start.called)
            other = callers.setdefault(callee, start)
            if other is not start:
                raise TextError(
                    f"computation {callee.name} is started by {other.name} and by {start.name}; "
                    "an asynchronous computation has one caller"
                )

    # Instructions

    def instruction(self, syntax: InstructionSyntax, scope: Scope) -> Instruction:
        """Add one instruction, after those among its operands."""
        name = syntax.name
        if is_illegal_name(name.text):
            raise TextError(f"{name.text} cannot be the name of an instruction", name.position)
        try:
            instruction = self._call(syntax.call, name.text, syntax.shape, syntax.attributes, scope)
            if syntax.is_root:
                scope.mark_root(instruction, name.position)
        except TextError as error:
            at = syntax.call.position if error.position is None else error.position
            raise TextError(f"{name.text}: {error.message}", at) from error
        instruction.line = name.line + self.line_offset
        return instruction

    def _call(
        self,
        call: CallSyntax,
        name: str,
        shape: Shape | None,
        attributes: Sequence[AttributeSyntax],
        scope: Scope,
    ) -> Instruction:
        opcode, wrapped = opcode_of(call)
        draft = Draft(name, opcode, shape, self._operands(call.operands, scope), call, scope)
        if wrapped is not None:
            return wrapped_instruction(self, draft, wrapped, attributes)
        return self.new(draft, bind(opcode, attributes, call.position, self.strict))

    def new(self, draft: Draft, bound: BoundAttributes) -> Instruction:
        """Add the instruction of `draft`, with these attributes."""
        call, opcode, operands, shape = draft.call, draft.opcode, draft.operands, draft.shape
        values = self.resolved(bound)
        if shape is None:
            shape = _inferred_shape(opcode, operands, values)
        literal = None
        if call.literal is not None:
            literal = self.literal(self.text[slice(*call.literal)], shape, call.literal.start)
        instruction = Instruction(
            draft.name,
            opcode,
            shape,
            operands,
            values,
            bound.metadata,
            literal,
            call.parameter_number,
            call.line + self.line_offset,
            self.predecessors(bound, draft.scope),
        )
        self.add(instruction, draft.scope, call.position)
        return instruction

    def add(self, instruction: Instruction, scope: Scope, position: int | None) -> None:
        """Check an instruction that is complete and put it at the end of `scope`."""
        opcode, operands = instruction.opcode, instruction.operands
        error = operand_count_error(opcode, len(operands)) or instruction_error(
            opcode, instruction.shape, operands, instruction.attributes
        )
        if error is not None:
            raise TextError(error)
        if opcode == "parameter":
            scope.add_parameter(instruction, position)
        else:
            scope.add(instruction, position)

    # Operands

    def _operands(self, syntax: Iterable[OperandSyntax], scope: Scope) -> tuple[Instruction, ...]:
        return tuple([self._operand(operand, scope) for operand in syntax])

    def _operand(self, syntax: OperandSyntax, scope: Scope) -> Instruction:
        shape, name, call, elements = syntax
        if call is not None:
            return self._call(call, self._anonymous_name(call, scope), shape, (), scope)
        known = scope.by_name.get(name.text) if name is not None else None
        if known is None:
            return _new_parameter(shape, name, scope)
        if name is not None:
            for index in elements:
                known = self._element(known, index, name, scope)
            if shape is not None and not same_array(shape, known.shape):
                raise TextError(f"operand {known.name} is {known.shape}, not {shape}", name.position)
        return known

    def _element(self, whole: Instruction, index: int, name: Name, scope: Scope) -> Instruction:
        """The element that `whole#index` refers to: one instruction, however often it is referred to."""
        known = scope.element(whole, index)
        if known is not None:
            return known
        shape, values = whole.shape, {"index": index}
        if not isinstance(shape, TupleShape) or not 0 <= index < len(shape.elements):
            raise TextError(f"{whole.name} is {shape}, which has no element {index}", name.position)
        line = name.line + self.line_offset
        element = Instruction(
            element_name(whole, index),
            "get-tuple-element",
            shape.elements[index],
            (whole,),
            values,
            line=line,
        )
        self.add(element, scope, name.position)
        return element

    def _anonymous_name(self, call: CallSyntax, scope: Scope) -> str:
        base = f"{opcode_of(call)[0]}.anon"
        number = self._anonymous_names.get(base, 0)
        while (name := f"{base}.{number}" if number else base) in scope.by_name:
            number += 1
        self._anonymous_names[base] = number + 1
        return name

    # Attribute values that need names or the text

    def resolved(self, bound: BoundAttributes) -> Mapping[str, AttributeValue]:
        """All values, with the computations that they name."""
        if not bound.pending:
            return bound.values
        return {**bound.values, **{key: self._value(value) for key, value, _ in bound.pending}}

    def predecessors(self, bound: BoundAttributes, scope: Scope) -> tuple[Instruction, ...]:
        """The instructions that must run before, each once."""
        found: dict[Instruction, None] = {}
        for name in bound.predecessors.names if bound.predecessors is not None else ():
            if name.text not in scope.by_name:
                raise TextError(_no_instruction(name, scope), name.position)
            found[scope.by_name[name.text]] = None
        return tuple(found)

    def _value(self, value: Any) -> AttributeValue:
        if isinstance(value, CalleeName):
            return self._callee(value.name)
        if isinstance(value, AnonymousComputation):
            return self._anonymous_computation(value)
        if isinstance(value, Span):
            return self.carried(value)
        if isinstance(value, (TypedLiteral, TypedLiteralTuple)):
            from hlotool.parser.text.literals import decode_typed_literal

            return EmbeddedLiteral(decode_typed_literal(value, self.text))
        callees = [self._value(callee) for callee in value]
        return tuple(callee for callee in callees if isinstance(callee, Computation))

    def carried(self, span: Span) -> RawText:
        """The text of a value that hlotool does not interpret."""
        return RawText(normalized(self.text[slice(*span)]))

    def _callee(self, name: Name) -> Computation:
        if name.text not in self.by_name:
            meant = did_you_mean(name.text, self.by_name)
            what = f"no computation before this one is called {name.text}"
            raise TextError(what + meant, name.position)
        return self.by_name[name.text]

    def _anonymous_computation(self, syntax: AnonymousComputation) -> Computation:
        scope = self.instructions(syntax.instructions, Scope())
        computation = scope.finish("_", syntax.line + self.line_offset, syntax.position)
        self.add_anonymous(computation)
        return computation

    def literal(self, text: str, shape: Shape, position: int) -> Literal:
        """The value of a literal's text."""
        from hlotool.parser.text.literals import decode_literal  # NumPy only where there are constants

        return decode_literal(text, shape, position)


def _no_instruction(name: Name, scope: Scope) -> str:
    """The complaint that nothing is called `name`."""
    return f"no instruction before this one is called {name.text}{did_you_mean(name.text, scope.by_name)}"


def _new_parameter(shape: Shape | None, name: Name | None, scope: Scope) -> Instruction:
    """An operand of a text that is one instruction becomes a parameter."""
    position = name.position if name is not None else None
    if not scope.makes_parameters or shape is None:
        what = _no_instruction(name, scope) if name else "an operand has no name"
        hint = ", and without its shape it cannot become a parameter" if scope.makes_parameters else ""
        raise TextError(what + hint, position)
    number = len(scope.parameters)
    parameter = Instruction(name.text if name else f"_{number}", "parameter", shape)
    parameter.parameter_number = number
    scope.add_parameter(parameter, position)
    return parameter


def _inferred_shape(
    opcode: str, operands: Sequence[Instruction], values: Mapping[str, AttributeValue]
) -> Shape:
    """The shape that the text leaves out."""
    error = operand_count_error(opcode, len(operands))
    if error is not None or opcode in EXPLICIT_SHAPE:
        raise TextError(error or f"the shape of {opcode} must be written")
    from hlotool.ir.shape_inference import infer_shape

    try:
        return infer_shape(opcode, [operand.shape for operand in operands], values)
    except HlotoolError as error:
        raise TextError(f"the shape of {opcode} cannot be inferred: {error}") from error


def is_illegal_name(name: str) -> bool:
    """Names that XLA's sanitizer changes: element types, and those reserved for backends."""
    if name.startswith("__"):
        return not name.startswith("__xla_")
    return name in ELEMENT_TYPES or name in ("token", "opaque")
