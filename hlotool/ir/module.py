"""Modules, computations, instructions, with typed access to their attributes.

Identity is equality: two instructions are the same only if they are one object. Attribute values and shapes
are shared between instructions and therefore immutable; an edit replaces them.

`instruction.integers("dimensions")` stands instead of a look-up and a type test. The parser gives every
attribute the kind that `opcodes.py` states, and the verifier demands those that are required. What passes
and users put together may break either rule, so that every access names the culprit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, overload

from hlotool.errors import Location, Unsupported, VerificationError
from hlotool.ir.attributes import (
    AttributeValue,
    BackendConfig,
    EntryLayout,
    FrontendAttributes,
    Ints,
    Metadata,
    ReplicaGroups,
    Sharding,
    StackFrameTables,
    Window,
)
from hlotool.ir.opcodes import OPCODES, OpcodeRow
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape

if TYPE_CHECKING:
    from hlotool.ir.arrays import Literal


_T = TypeVar("_T")
_D = TypeVar("_D")

#: Stands for "no default", for None is a default that callers ask for.
_REQUIRED: Any = object()
_NO_DIMENSIONS = Window(())
_EVERYBODY = ReplicaGroups(groups=())


class AttributeAccess:
    """Something with attributes, read by the kind of their values.

    All raise VerificationError: `attribute-missing` where there is neither the attribute nor a default, and
    `attribute-kind` where its value is of another kind, default or not.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        attributes: Mapping[str, AttributeValue]

    def error(self, rule: str, message: str) -> VerificationError:
        """The error to raise where this breaks `rule`."""
        return VerificationError(rule, message)

    @overload
    def attribute(self, name: str, kind: type[_T]) -> _T: ...
    @overload
    def attribute(self, name: str, kind: type[_T], default: _D) -> _T | _D: ...
    def attribute(self, name: str, kind: type[Any], default: Any = _REQUIRED) -> Any:
        """The attribute `name`, a `kind`; `default`, which may be None, where it is absent."""
        value = self.attributes.get(name, _REQUIRED)
        if value is _REQUIRED:
            if default is _REQUIRED:
                raise self.error("attribute-missing", f"{self._owner} needs the attribute {name}")
            return default
        # A bool is an int to Python, but not in HLO.
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self._of_another_kind(name, kind.__name__)
        return value

    def integer(self, name: str, default: int = _REQUIRED) -> int:
        """An integer such as `index` or `feature_group_count`."""
        return self.attribute(name, int, default)

    def number(self, name: str) -> float:
        """A floating-point number such as `epsilon`."""
        return self.attribute(name, float)

    def flag(self, name: str, default: bool = False) -> bool:
        """A boolean such as `indices_are_sorted`; HLO text leaves out what is false."""
        return self.attribute(name, bool, default)

    def text(self, name: str, default: str = _REQUIRED) -> str:
        """A string or a word such as `custom_call_target` or `direction`."""
        return self.attribute(name, str, default)

    def integers(self, name: str, default: Ints = _REQUIRED) -> Ints:
        """A list of integers such as `dimensions`."""
        return self.listed(name, int, default)

    def listed(self, name: str, kind: type[_T], default: tuple[_T, ...] = _REQUIRED) -> tuple[_T, ...]:
        """A list whose items are all of `kind`: SliceDim, PaddingDim, Computation, …"""
        values = self.attribute(name, tuple, default)
        for value in values:
            if not isinstance(value, kind):
                raise self._of_another_kind(name, f"list of {kind.__name__}")
        return values

    @property
    def window(self) -> Window:
        """`window`; without dimensions where it is absent, as XLA prints the window of a scalar."""
        return self.attribute("window", Window, _NO_DIMENSIONS)

    @property
    def replica_groups(self) -> ReplicaGroups:
        """`replica_groups`; one group of everybody where it is absent."""
        return self.attribute("replica_groups", ReplicaGroups, _EVERYBODY)

    @property
    def custom_call_target(self) -> str:
        """The name of what a custom call calls; empty where there is none, as for all other opcodes."""
        return self.text("custom_call_target") if "custom_call_target" in self.attributes else ""

    @property
    def config_text(self) -> str:
        """The text of `backend_config`; empty where there is none."""
        config = self.attribute("backend_config", BackendConfig, None)
        return config.text if config else ""

    def frontend_attribute(self, key: str) -> str | None:
        """What `frontend_attributes` says of `key`, without quotes; None where it does not mention it."""
        listed = self.attribute("frontend_attributes", FrontendAttributes, None)
        return listed.get(key) if listed else None

    def _of_another_kind(self, name: str, expected: str) -> VerificationError:
        value = self.attributes[name]
        message = f"the attribute {name} of {self._owner} must be of kind {expected}, not {value!r}"
        return self.error("attribute-kind", message)

    @property
    def _owner(self) -> str:
        return getattr(self, "opcode", "the module")


#: The rules that reading attributes and shapes of an instruction by their kind can find broken.
MISFITS = frozenset({"attribute-missing", "attribute-kind", "array-expected", "tuple-expected"})


@dataclass(slots=True, eq=False)
class Instruction(AttributeAccess):
    """One operation.

    Attributes:
        name: without `%`, unique within its computation.
        opcode: HLO name; a key of `opcodes.OPCODES`.
        shape: of the result.
        operands: in order.
        attributes: by HLO name; computations appear as Computation objects.
        metadata: where it comes from in the user's program.
        literal: of a `constant`.
        parameter_number: of a `parameter`.
        line: in the text it was read from, 0 when made by a pass.
        control_predecessors: must run before it.
    """

    name: str
    opcode: str
    shape: Shape
    operands: tuple[Instruction, ...] = ()
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    metadata: Metadata | None = None
    literal: Literal | None = None
    parameter_number: int | None = None
    line: int = 0
    control_predecessors: tuple[Instruction, ...] = ()

    def __repr__(self) -> str:
        return f"<{self.opcode} %{self.name}: {self.shape}>"

    def error(self, rule: str, message: str) -> VerificationError:
        """The error to raise where this instruction breaks `rule`; it names the instruction and its line."""
        return VerificationError(rule, message, self.name, Location(None, self.line))

    @property
    def array_shape(self) -> ArrayShape:
        """Its shape, which must be an array's; else VerificationError `array-expected`."""
        if not isinstance(self.shape, ArrayShape):
            raise self.error("array-expected", f"%{self.name} must be an array, not {self.shape}")
        return self.shape

    @property
    def tuple_shape(self) -> TupleShape:
        """Its shape, which must be a tuple's; else VerificationError `tuple-expected`."""
        if not isinstance(self.shape, TupleShape):
            raise self.error("tuple-expected", f"%{self.name} must be a tuple, not {self.shape}")
        return self.shape

    @property
    def dims(self) -> tuple[int, ...]:
        """The sizes of its dimensions; it must be an array."""
        return self.array_shape.dims

    @property
    def element_type(self) -> ElementType:
        """The type of its elements; it must be an array."""
        return self.array_shape.element_type

    @property
    def array_type(self) -> ElementType | None:
        """The type of its elements; None of what is no array."""
        return self.shape.element_type if isinstance(self.shape, ArrayShape) else None

    @property
    def operand_types(self) -> tuple[ElementType, ...]:
        """The element types of its operands, which must all be arrays."""
        return tuple(operand.element_type for operand in self.operands)

    def computation(self, name: str) -> Computation:
        """The one computation that is called as `name`: `to_apply`, `body`, `condition`, …"""
        return self.attribute(name, Computation)

    @property
    def row(self) -> OpcodeRow:
        """Its row of the opcode table."""
        return OPCODES[self.opcode]

    @property
    def called(self) -> Iterator[Computation]:
        """Computations it calls, in attribute order."""
        for value in self.attributes.values():
            yield from computations_in(value)

    @property
    def sharding(self) -> Sharding | None:
        """Its `sharding` attribute."""
        return self.attribute("sharding", Sharding, None)


@dataclass(slots=True, eq=False)
class Computation:
    """A named list of instructions in a valid execution order (operands first), with one root.

    Attributes:
        name: without `%`, unique within the module.
        instructions: as in the text.
        root: what it returns.
        execution_thread: `main` unless the text says otherwise.
        line: of its header.
        attributes: that follow its closing brace, other than the thread.
    """

    name: str
    instructions: list[Instruction]
    root: Instruction
    execution_thread: str = "main"
    line: int = 0
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<computation %{self.name}, {len(self.instructions)} instructions>"

    @property
    def parameters(self) -> list[Instruction]:
        """Its parameters by number."""
        found = [i for i in self.instructions if i.opcode == "parameter"]
        return sorted(found, key=lambda i: i.parameter_number or 0)


def computations_in(value: AttributeValue | None) -> tuple[Computation, ...]:
    """The computations that an attribute names, one or several; none where it says something else."""
    if isinstance(value, Computation):
        return (value,)
    return tuple(c for c in value if isinstance(c, Computation)) if isinstance(value, tuple) else ()


@dataclass(slots=True, eq=False)
class Module(AttributeAccess):
    """A program.

    Attributes:
        name: as in the header.
        computations: callees before callers; the entry last unless the text says otherwise.
        entry: what runs.
        attributes: of the header line, by HLO name.
        stack_frames: source positions that `metadata.stack_frame_id` refers to.
        path: where it was read from.
        cut: of a text that ends too early, where it ends; the entry is then not the program's own.
        has_stand_ins: custom calls that cannot be executed have stand-ins, the same for equal calls.
        generated: names of constants whose values the text elides and that have generated ones.
    """

    name: str
    computations: list[Computation]
    entry: Computation
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    stack_frames: StackFrameTables | None = None
    path: str | None = None
    cut: str = ""
    has_stand_ins: bool = False
    generated: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<module {self.name}, {len(self.computations)} computations>"

    def instructions(self) -> Iterator[Instruction]:
        """All instructions of all computations, in textual order."""
        for computation in self.computations:
            yield from computation.instructions

    def error(self, rule: str, message: str) -> VerificationError:
        """The error to raise where the module's header breaks `rule`; it names the file."""
        return VerificationError(rule, message, location=Location(self.path))

    def location(self, instruction: Instruction) -> Location:
        """Where `instruction` stands, for error messages."""
        return Location(self.path, instruction.line)

    def unsupported(self, instruction: Instruction, reason: str) -> Unsupported:
        """The error that says why `instruction` cannot be executed, or rewritten, and where it stands."""
        return Unsupported(reason, instruction.name, instruction.opcode, self.location(instruction))

    @property
    def is_scheduled(self) -> bool:
        """The textual order is the execution order that XLA chose."""
        return self.flag("is_scheduled")

    @property
    def replica_count(self) -> int:
        """Number of replicas it was compiled for."""
        return self.integer("replica_count", 1)

    @property
    def num_partitions(self) -> int:
        """Number of partitions it was compiled for."""
        return self.integer("num_partitions", 1)

    @property
    def entry_layout(self) -> EntryLayout:
        """`entry_computation_layout`, or the entry's own shapes where the header has none."""
        stated = self.attribute("entry_computation_layout", EntryLayout, None)
        return stated or EntryLayout(tuple(p.shape for p in self.entry.parameters), self.entry.root.shape)

    def to_text(self) -> str:
        """HLO text as XLA prints it, large constants in full; parses back to an equal module."""
        from hlotool.ir.printer import print_module

        return print_module(self)

    def _repr_html_(self) -> str:
        """The program for a notebook."""
        from hlotool.ir.printer import module_html

        return module_html(self)
