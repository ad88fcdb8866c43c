"""PTX text into programs: functions, variables, scopes; device functions are expanded where they are
called.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hlotool.backends.gpu_ptx.declarations import Variable, global_variable, variable_of, variables_of
from hlotool.backends.gpu_ptx.model import (
    Address,
    GlobalVariable,
    Instruction,
    Kernel,
    Not,
    Operand,
    Parameter,
    Place,
    PtxProgram,
    Register,
    Symbol,
    Target,
    Vector,
    unsupported,
)
from hlotool.backends.gpu_ptx.syntax import (
    Statement,
    header_lines,
    operand,
    split_commas,
    statements,
)

__all__ = ["GlobalVariable", "Kernel", "Parameter", "PtxProgram", "parse_ptx"]

_FUNCTION = re.compile(
    r"(?P<linkage>(?:\.\w+\s+)*?)\.(?P<kind>entry|func)\s+(?:\((?P<results>[^)]*)\)\s*)?(?P<name>[\w$%]+)\s*(?:\((?P<formals>[^)]*)\))?(?P<rest>.*)$"
)
_REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+(.*)$")
_PREDICATE = re.compile(r"@(!?)([\w$%]+)\s+")
_LIMIT = re.compile(r"\.(maxntid|reqntid)\s+(\d+(?:\s*,\s*\d+)*)")
_NUMBERED = re.compile(r"(.*?\D)(\d+)$")
#: Statements about how it is compiled, not about what it computes.
_REMARKS = (".pragma", ".alias", ".noreturn")


@dataclass(frozen=True, slots=True)
class _Function:
    """A function as it stands in the text; without a body it is external."""

    kind: str
    name: str
    line: int
    results: tuple[Variable, ...]
    formals: tuple[Variable, ...]
    rest: str
    body: tuple[Statement, ...] | None


@dataclass
class _Scope:
    """Names between two braces."""

    outer: _Scope | None = None
    names: dict[str, Operand] = field(default_factory=dict)
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def chain(self) -> Iterator[_Scope]:
        """This scope and the ones around it."""
        scope: _Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer


def parse_ptx(text: str, name: str) -> PtxProgram:
    """Read PTX.

    Args:
        text: a PTX module.
        name: what locations in errors are called, as a rule the file.

    Raises:
        Unsupported: what is not known, with its line.
    """
    header = header_lines(text)
    if header.get("address_size", "64") != "64":
        raise unsupported(
            name, 0, f".address_size {header['address_size']}", "only 64-bit addresses are executed"
        )
    functions: dict[str, _Function] = {}
    variables: dict[str, Variable] = {}
    for statement, body in _top_level(text):
        found = _FUNCTION.match(statement.text)
        if found is not None:
            function = _Function(
                found["kind"],
                found["name"],
                statement.line,
                tuple(variables_of(name, statement, found["results"])),
                tuple(variables_of(name, statement, found["formals"])),
                found["rest"],
                body,
            )
            if body is not None or function.name not in functions:
                functions[function.name] = function
        elif not statement.text.startswith(_REMARKS):
            variable = variable_of(name, statement)
            variables[variable.name] = variable
    global_variables = {
        variable.name: global_variable(name, variable)
        for variable in variables.values()
        if variable.space in ("global", "const")
    }
    kernels = {
        function.name: _Reader(name, functions, variables, global_variables).kernel(function)
        for function in functions.values()
        if function.kind == "entry" and function.body is not None
    }
    return PtxProgram(name, header.get("version", ""), header.get("target", ""), kernels, global_variables)


def _top_level(text: str) -> Iterator[tuple[Statement, tuple[Statement, ...] | None]]:
    """Statements outside of functions; with a function's header comes its body."""
    header: Statement | None = None
    body: list[Statement] = []
    depth = 0
    for statement in statements(text):
        if depth == 0 and statement.kind == "header":
            header = statement
        elif statement.kind == "open" and depth == 0:
            depth = 1
        elif depth == 0:
            if statement.kind == "statement":
                yield statement, None
        else:
            depth += {"open": 1, "close": -1}.get(statement.kind, 0)
            if depth == 0 and header is not None:
                yield header, tuple(body)
                header, body = None, []
            else:
                body.append(statement)


def _extents(text: str) -> tuple[int, int, int]:
    """Extents of a block; those that are not given are 1."""
    x, y, z, *_ = (*map(int, text.split(",")), 1, 1)
    return x, y, z


class _Reader:
    """Reads one kernel."""

    def __init__(
        self,
        program: str,
        functions: dict[str, _Function],
        variables: dict[str, Variable],
        global_variables: dict[str, GlobalVariable],
    ) -> None:
        self.program = program
        self.functions = functions
        self.variables = variables
        self.globals = global_variables
        self.code: list[Instruction] = []
        self.scopes: list[_Scope] = []
        self.register_bits: list[int] = []
        self.shared: dict[str, Place] = {}
        self.sizes = {"shared": 0, "local": 0}
        self.scope = _Scope()

    def kernel(self, function: _Function) -> Kernel:
        """The kernel that `function` is."""
        parameters: list[Parameter] = []
        offset = 0
        for formal in function.formals:
            offset = -(-offset // formal.alignment) * formal.alignment
            parameters.append(Parameter(formal.name, formal.bits, formal.alignment, formal.size, offset))
            self.scope.names[formal.name] = Place("param", offset, formal.name)
            offset += formal.size
        self.expand(function, (function.name,))
        dynamic = self.sizes["shared"]
        code = tuple(
            self.resolve(instruction, scope, dynamic) for instruction, scope in zip(self.code, self.scopes)
        )
        limits = {found[1]: _extents(found[2]) for found in _LIMIT.finditer(function.rest)}
        required = limits.get("reqntid")
        block = required or limits.get("maxntid")
        return Kernel(
            self.program,
            function.name,
            function.line,
            tuple(parameters),
            code,
            tuple(self.register_bits),
            self.sizes["shared"],
            self.sizes["local"],
            None if block is None else block[0] * block[1] * block[2],
            required,
            any(place.offset < 0 for place in self.shared.values()),
        )

    def expand(self, function: _Function, active: tuple[str, ...]) -> None:
        """Read the body of `function`; where it returns to its caller, it goes on behind it."""
        outermost = self.scope
        end = f"end of {function.name}"
        for statement in function.body or ():
            if statement.kind == "open":
                self.scope = _Scope(self.scope)
            elif statement.kind == "close":
                assert self.scope.outer is not None
                self.scope = self.scope.outer
            elif statement.kind == "label":
                self.scope.labels[statement.text] = len(self.code)
                self.scope.names.pop(statement.text, None)
            elif statement.text.startswith("."):
                self.declare(statement)
            else:
                self.instruction(statement, active, end)
        outermost.labels[end] = len(self.code)
        self.append(Instruction("ret", (), (), None, function.line, "ret") if len(active) == 1 else None)

    def append(self, instruction: Instruction | None) -> None:
        """One more instruction."""
        if instruction is not None:
            self.code.append(instruction)
            self.scopes.append(self.scope)

    def declare(self, statement: Statement) -> None:
        """Registers and variables of a function."""
        if statement.text.startswith(_REMARKS):
            return
        found = _REGISTERS.match(statement.text)
        if found is not None:
            bits = 1 if found[1] == "pred" else int(re.sub(r"\D", "", found[1]))
            if bits > 64:
                raise unsupported(
                    self.program, statement.line, statement.text, "registers have at most 64 bits"
                )
            for name in split_commas(found[2]):
                many = re.match(r"(.+)<(\d+)>$", name)
                if many is not None:
                    self.scope.ranges[many[1]] = (bits, int(many[2]))
                else:
                    self.scope.names[name] = self.new_register(name, bits)
            return
        if statement.text.startswith(".branchtargets"):
            label = max(self.scope.labels, key=self.scope.labels.__getitem__)
            self.scope.tables[label] = tuple(split_commas(statement.text.removeprefix(".branchtargets")))
            return
        variable = variable_of(self.program, statement)
        if variable.space in ("global", "const"):
            self.scope.names[variable.name] = global_variable(self.program, variable)
        else:
            # A parameter of a call stands where the caller put it, which is memory of the thread.
            self.scope.names[variable.name] = self.place(
                variable, "shared" if variable.space == "shared" else "local"
            )

    def place(self, variable: Variable, space: str) -> Place:
        """Room for a variable in shared or local memory."""
        offset = -(-self.sizes[space] // variable.alignment) * variable.alignment
        self.sizes[space] = offset + variable.size
        return Place(space, offset, variable.name)

    def new_register(self, name: str, bits: int) -> Register:
        """The next register of the kernel."""
        self.register_bits.append(bits)
        return Register(name, bits, len(self.register_bits) - 1)

    def name(self, text: str) -> Operand | None:
        """The register or variable of that name."""
        number = None
        for scope in self.scope.chain():
            found = scope.names.get(text)
            if found is not None:
                return found
            if scope.ranges and number is None:
                number = _NUMBERED.match(text)
            if number is not None and number[1] in scope.ranges:
                bits, count = scope.ranges[number[1]]
                if int(number[2]) < count:
                    register = scope.names[text] = self.new_register(text, bits)
                    return register
        if text in self.globals:
            return self.globals[text]
        variable = self.variables.get(text)
        if variable is None or variable.space != "shared":
            return None
        if text not in self.shared:
            # The extent of dynamic shared memory is the launch's: it stands behind all others.
            self.shared[text] = self.place(variable, "shared") if variable.size else Place("shared", -1, text)
        return self.shared[text]

    def instruction(self, statement: Statement, active: tuple[str, ...], end: str) -> None:
        """Read one instruction; a call becomes the body of what it calls."""
        text = statement.text
        predicate: Register | Not | None = None
        guard = _PREDICATE.match(text)
        if guard is not None:
            register = self.name(guard[2])
            if not isinstance(register, Register):
                raise unsupported(self.program, statement.line, text, f"{guard[2]} is no predicate")
            predicate = Not(register) if guard[1] else register
        opcode, _, rest = text[guard.end() if guard else 0 :].partition(" ")
        words = opcode.split(".")
        try:
            operands = tuple(operand(part, self.name) for part in split_commas(rest))
        except ValueError as error:
            raise unsupported(self.program, statement.line, text, f"operand {error} is not known") from None
        if words[0] == "ret" and len(active) > 1:
            words, operands = ["bra"], (Symbol(end),)
        read = Instruction(words[0], tuple(words[1:]), operands, predicate, statement.line, text)
        if words[0] == "call":
            self.call(read, active)
        else:
            self.append(read)

    def call(self, call: Instruction, active: tuple[str, ...]) -> None:
        """Expand a function; an external one stays a call."""
        results = call.operands[0].elements if isinstance(call.operands[0], Vector) else ()
        called = call.operands[1 if isinstance(call.operands[0], Vector) else 0]
        last = call.operands[-1]
        arguments: Sequence[Operand] = (
            last.elements if isinstance(last, Vector) and len(call.operands) > 1 else ()
        )
        function = self.functions.get(called.name) if isinstance(called, Symbol) else None
        if function is None or call.predicate is not None or function.name in active:
            raise unsupported(self.program, call.line, call.text, "this call is not executed")
        if function.body is None:
            self.append(call)
            return
        caller = self.scope
        self.scope = _Scope()
        for formal, actual in zip(
            (*function.results, *function.formals), (*results, *arguments), strict=True
        ):
            if not isinstance(actual, Place):
                raise unsupported(
                    self.program, call.line, call.text, "only variables are passed to functions"
                )
            self.scope.names[formal.name] = actual
        self.expand(function, (*active, function.name))
        self.scope = caller

    def resolve(self, instruction: Instruction, scope: _Scope, dynamic: int) -> Instruction:
        """The instruction with indices for its labels, and with the place of dynamic shared memory."""

        def label(name: str) -> Target:
            for one in scope.chain():
                if name in one.labels:
                    return Target(one.labels[name])
            raise unsupported(self.program, instruction.line, instruction.text, f"label {name} is not known")

        def resolved(part: Operand) -> Operand:
            if isinstance(part, Place) and part.offset < 0:
                return Place("shared", dynamic, part.name)
            if isinstance(part, Vector):
                return Vector(tuple(resolved(one) for one in part.elements))
            if isinstance(part, Address):
                return Address(resolved(part.base), part.offset)
            return part

        operands = tuple(resolved(part) for part in instruction.operands)
        if instruction.opcode == "bra" and isinstance(operands[0], Symbol):
            operands = (label(operands[0].name),)
        elif instruction.opcode == "brx" and isinstance(operands[1], Symbol):
            table = next(
                (one.tables[operands[1].name] for one in scope.chain() if operands[1].name in one.tables), ()
            )
            operands = (operands[0], Vector(tuple(label(name) for name in table)))
        elif operands == instruction.operands:
            return instruction
        return Instruction(
            instruction.opcode,
            instruction.modifiers,
            operands,
            instruction.predicate,
            instruction.line,
            instruction.text,
        )
