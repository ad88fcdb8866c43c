"""From functions of MLIR to computations of HLO: the entry, calls, regions.

StableHLO: docs/spec.md#programs. XLA: mlir_hlo_to_hlo.cc.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hlotool.errors import UsageError
from hlotool.ir.attributes import AttributeValue, BufferDonor, FrontendAttributes, ParameterAlias
from hlotool.ir.builder import Builder
from hlotool.ir.edit import Names
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import Shape, TupleShape, strip_layouts
from hlotool.ir.walk import DEEPEST_CALLS, reachable
from hlotool.parser.mlir.frames import Context, Frame, common_attributes, plain_name, rule_of
from hlotool.parser.mlir.syntax import (
    RETURNS,
    Argument,
    Foreign,
    FutureType,
    Operation,
    Region,
    Symbol,
    Type,
)
from hlotool.parser.mlir.tokens import Text
from hlotool.parser.mlir.types import as_shape

_FUNCTIONS = frozenset({"func.func", "func"})
_MODULES = frozenset({"builtin.module", "module"})
#: What only annotates: without results, and without any effect on values.
_IGNORED = frozenset({"sdy.sharding_group", "sdy.mesh"})


@dataclass(slots=True)
class Program:
    """A program that is being built.

    Attributes:
        source: its text.
        scopes: names of locations by alias.
        resources: blobs behind the module, in hexadecimal, by name.
        functions: by name.
        meshes: the text of each mesh, by name.
        attributes: of the module.
        name: of the module; the function's, where it has none.
    """

    source: Text
    scopes: Mapping[str, str]
    resources: Mapping[str, str]
    functions: dict[str, Operation] = field(default_factory=dict)
    meshes: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, object] = field(default_factory=dict)
    name: str = ""
    _names: Names = field(default_factory=lambda: Names(()))
    _built: dict[str, Computation | None] = field(default_factory=dict)
    _depth: int = 0

    def collect(self, operations: Sequence[Operation]) -> None:
        """Find the functions and meshes of a module, and of modules in it.

        Raises:
            HloSyntaxError: two functions of a module have one name.
        """
        own: set[str] = set()
        for made in operations:
            if made.name in _FUNCTIONS:
                if made.symbol in own:
                    raise self.source.error(f"a second function @{made.symbol}", made.position)
                own.add(made.symbol)
                self.functions.setdefault(made.symbol, made)
                continue
            if made.name in _MODULES:
                self.name = made.symbol or self.name
                self.attributes |= made.attributes
            elif made.name == "sdy.mesh" and isinstance(mesh := made.attributes.get("mesh"), Foreign):
                self.meshes[made.symbol] = mesh.text
            for region in made.regions:  # also of modules that other dialects have
                self.collect(region.operations)

    def scope(self, written: str) -> str:
        """The name of a location, which may be written as an alias."""
        return self.scopes.get(written, "") if written.startswith("#") else written

    def chosen(self, entry: str) -> Operation:
        """The function that is run: the named one, `main`, or the only public one that no other one calls.

        Raises:
            UsageError: there is no function of this name, or none is named and several may be meant.
        """
        whole = {name: made for name, made in self.functions.items() if made.regions}
        listed = ", ".join(
            f"@{name} (line {self.source.line(made.position)})" for name, made in whole.items()
        )
        if entry:
            if entry not in whole:
                raise UsageError(f"{self.source.path}: no function @{entry}; there is {listed or 'none'}")
            return whole[entry]
        if "main" in whole:
            return whole["main"]
        public = [m for m in whole.values() if m.attributes.get("sym_visibility") != "private"]
        public = public or list(whole.values())
        if len(public) > 1:
            called = {one for made in whole.values() for one in _symbols(made) if one != made.symbol}
            public = [made for made in public if made.symbol not in called]
        if len(public) == 1:
            return public[0]
        if not whole:
            raise self.source.error("no function with a body", 0)
        raise UsageError(f"{self.source.path}: several functions may be meant, --entry NAME: {listed}")

    def module(self, entry: str) -> Module:
        """The module whose entry is a function; see `chosen`."""
        made = self.chosen(entry)
        computation = self._function(made, made.symbol or "main", is_entry=True)
        attributes: dict[str, AttributeValue] = {}
        for key, name in (("mhlo.num_partitions", "num_partitions"), ("mhlo.num_replicas", "replica_count")):
            count = self.attributes.get(key)
            if isinstance(count, int) and count > 1:
                attributes[name] = int(count)
        attributes |= _aliases(made)
        if self.meshes:
            text = ", ".join(f"{name} = #sdy.mesh{mesh}" for name, mesh in self.meshes.items())
            attributes["frontend_attributes"] = FrontendAttributes((("xla.sdy.meshes", f"{{{text}}}"),))
        name = plain_name(self.name or (made.symbol if made.symbol != "main" else "module"))
        return Module(name, reachable(computation), computation, attributes, path=self.source.path)

    # Functions and regions.

    def function(self, name: str, position: int) -> Computation:
        """The computation of a function that is called.

        Raises:
            HloSyntaxError: there is none, or it calls itself.
        """
        if name not in self._built:
            called = self.functions.get(name)
            if called is None or not called.regions:
                raise self.source.error(f"no function @{name} with a body", position)
            self._built[name] = None
            self._built[name] = self._function(called, name)
        found = self._built[name]
        if found is None:
            raise self.source.error(f"@{name} calls itself", position)
        return found

    def _function(self, made: Operation, name: str, is_entry: bool = False) -> Computation:
        frame = self._frame(plain_name(name), None)
        region = made.regions[0]
        for number, argument in enumerate(region.arguments):
            self._parameter(frame, number, argument)
        results = self._body(frame, region, made)
        stated = tuple(one.type for one in made.attributes.get("results", ()))
        if len(results) != len(stated) or not all(map(_has_type, results, stated)):
            found = ", ".join(str(result.shape) for result in results)
            raise self.source.error(f"@{name} does not return what it states, but ({found})", made.position)
        return frame.finish(results)

    def _frame(self, name: str, around: Frame | None) -> Frame:
        return Frame(self, Builder(self._names.fresh(name)), around)

    def _parameter(self, frame: Frame, number: int, argument: Argument) -> None:
        shape = self.shape_of(argument)
        made = frame.builder.parameter(number, shape, plain_name(argument.name))
        made.line = self.source.line(argument.position)
        made.attributes = common_attributes(dict(argument.attributes), self.source, argument.position)
        frame.bind(argument.name, made)

    def shape_of(self, argument: Argument) -> Shape:
        """The shape of an argument; raises Unsupported for a type that is none of HLO's."""
        return as_shape(self.source, argument.type, argument.position)

    def region(self, context: Context, region: Region) -> Computation:
        """A region as a computation of its own; see `Context.region`."""
        frame = self._frame("region", context.frame)
        for number, argument in enumerate(region.arguments):
            self._parameter(frame, number, argument)
        return frame.finish(self._body(frame, region, context.operation))

    def inner(self, context: Context, region: Region, values: Sequence[Instruction]) -> list[Instruction]:
        """What a region returns whose instructions become part of the computation around it."""
        frame = Frame(self, context.frame.builder, None, dict(context.frame.values))
        for argument, value in zip(region.arguments, values):
            frame.bind(argument.name, value)
        return self._body(frame, region, context.operation)

    def loop(
        self,
        context: Context,
        region: Region,
        state: TupleShape,
        read: Sequence[tuple[str, int]],
        is_body: bool,
    ) -> Computation:
        """A region of a loop: its arguments, and then the values that it reads from around, are one tuple."""
        frame = self._frame("region", context.frame)
        carried = frame.builder.parameter(0, state, "arg_tuple")
        parts = [
            frame.builder.op("get-tuple-element", carried, index=number)
            for number in range(len(state.elements))
        ]
        own = len(region.arguments)
        for argument, part in zip(region.arguments, parts):
            frame.bind(argument.name, part)
        self._bind_read(frame, read, parts[own:])
        results = self._body(frame, region, context.operation)
        return frame.finish([*results, *parts[own:]], is_tuple=True) if is_body else frame.finish(results)

    def branch(
        self, context: Context, region: Region, read: Sequence[tuple[str, int]]
    ) -> tuple[Instruction, Computation]:
        """A branch as a computation of one parameter, and its operand: what it reads from around it."""
        frame = self._frame("region", context.frame)
        values = [value for name, _ in read for value in context.frame.values[name]]
        if len(values) == 1:
            operand = values[0]
            parts = [parameter := frame.builder.parameter(0, operand.shape)]
        else:
            shape = TupleShape(tuple(value.shape for value in values))
            operand = context.emit("tuple", *values, shape=shape)
            parameter = frame.builder.parameter(0, shape)
            parts = [
                frame.builder.op("get-tuple-element", parameter, index=number)
                for number in range(len(values))
            ]
        self._bind_read(frame, read, parts)
        return operand, frame.finish(self._body(frame, region, context.operation))

    def _bind_read(self, frame: Frame, read: Sequence[tuple[str, int]], parts: Sequence[Instruction]) -> None:
        left = iter(parts)
        for name, count in read:
            frame.bind(name, *(next(left) for _ in range(count)))

    def _body(self, frame: Frame, region: Region, owner: Operation) -> list[Instruction]:
        """Build the operations of a region; what it returns."""
        self._depth += 1
        if self._depth > DEEPEST_CALLS:
            raise self.source.error("calls and regions are nested too deep", owner.position)
        for made in region.operations:
            if made.name in RETURNS:
                self._depth -= 1
                return [frame.look_up(used) for used in made.operands]
            if made.name not in _IGNORED:
                self._build(frame, made)
        raise self.source.error(f"a region of {owner.name} returns nothing", owner.position)

    def _build(self, frame: Frame, made: Operation) -> None:
        rule = rule_of(made.name)
        if rule is None:
            raise self.source.no_operation(made.name, made.position)
        operands = tuple(map(frame.look_up, made.operands))
        self._check_operands(made, operands)
        shapes = tuple(as_shape(self.source, kind, made.position) for kind in made.result_types)
        count = sum(number for _, number in made.results)
        if made.results and count != len(shapes):
            raise self.source.error(f"{made.name}: {count} names for {len(shapes)} results", made.position)
        context = Context(made, frame, operands, shapes)
        values = _values(context, rule(context))
        for name, number in made.results:
            frame.bind(name, *values[:number])
            del values[:number]

    def _check_operands(self, made: Operation, operands: Sequence[Instruction]) -> None:
        """Compare what the text says of operands with what they are."""
        if made.operand_types is None:
            return
        if len(made.operand_types) != len(operands):
            message = f"{made.name}: {len(operands)} operands, but {len(made.operand_types)} types"
            raise self.source.error(message, made.position)
        for used, stated, value in zip(made.operands, made.operand_types, operands):
            if not _has_type(value, stated):
                message = f"{used.name} is {strip_layouts(value.shape)}, and {made.name} says otherwise"
                raise self.source.error(message, used.position)


def _has_type(value: Instruction, stated: Type) -> bool:
    """Whether a value is what the text says; a future is the start of what will be of the shape."""
    if isinstance(stated, FutureType):
        return value.opcode.endswith("-start")
    return strip_layouts(value.shape) == stated


def _values(context: Context, returned: Instruction | Sequence[Instruction]) -> list[Instruction]:
    """One instruction for each result: of one that returns several its elements."""
    if not isinstance(returned, Instruction):
        return list(returned)
    if len(context.shapes) == 1:
        return [returned]
    return [
        context.emit("get-tuple-element", returned, shape=shape, index=number)
        for number, shape in enumerate(context.shapes)
    ]


def free_names(region: Region) -> Iterator[str]:
    """Names that a region reads from around it, some more than once."""
    known = {argument.name for argument in region.arguments}
    for made in region.operations:
        for used in made.operands:
            if used.name not in known:
                yield used.name
        for inner in made.regions:
            yield from (name for name in free_names(inner) if name not in known)
        known |= {name for name, _ in made.results}


def _symbols(made: Operation) -> Iterator[str]:
    """The functions that the regions of an operation name."""
    for region in made.regions:
        for inner in region.operations:
            for value in inner.attributes.values():
                yield from (
                    one
                    for one in (value if isinstance(value, tuple) else (value,))
                    if isinstance(one, Symbol)
                )
            yield from _symbols(inner)


def _aliases(made: Operation) -> dict[str, AttributeValue]:
    """Which arguments of the entry may become its results."""
    aliases: list[ParameterAlias] = []
    donors: list[BufferDonor] = []
    is_tuple = len(made.attributes.get("results", ())) != 1
    for number, argument in enumerate(made.regions[0].arguments):
        output = argument.attributes.get("tf.aliasing_output")
        if isinstance(output, int):
            aliases.append(ParameterAlias((int(output),) if is_tuple else (), number, ()))
        elif argument.attributes.get("jax.buffer_donor"):
            donors.append(BufferDonor(number, ()))
    found: dict[str, AttributeValue] = {}
    if aliases:
        found["input_output_alias"] = tuple(aliases)
    if donors:
        found["buffer_donor"] = tuple(donors)
    return found
