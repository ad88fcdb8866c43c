"""Declarations of variables in all state spaces, with their initial values (PTX ISA, "Variables")."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hlotool.backends.gpu_ptx.model import GlobalVariable, unsupported
from hlotool.backends.gpu_ptx.syntax import Statement, literal, split_commas

_VARIABLE = re.compile(
    r"(?:\.(?:visible|extern|weak|common)\s+)*\.(?P<space>global|const|shared|local|param)\s+(?P<attributes>(?:\.\w+(?:\s+\d+)?\s+)*?)"
    r"\.(?P<kind>[bus]|f)(?P<bits>\d+)\s+(?:\.ptr\s+(?:\.\w+\s+)??(?:\.align\s+(?P<pointee>\d+)\s+)?)?(?P<name>[\w$%]+)(?P<extents>(?:\[\d*\])*)"
    r"(?:\s*=\s*(?P<initial>.*))?$"
)


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared variable."""

    space: str
    name: str
    bits: int
    size: int
    alignment: int
    initial: str | None


def variables_of(program: str, statement: Statement, text: str | None) -> Iterator[Variable]:
    """The variables that a list declares, such as the parameters of a function."""
    for part in split_commas(text or ""):
        yield variable_of(program, Statement("statement", part, statement.line))


def variable_of(program: str, statement: Statement) -> Variable:
    """The variable that a statement declares."""
    found = _VARIABLE.match(statement.text)
    if found is None:
        raise unsupported(program, statement.line, statement.text, "this declaration is not known")
    bits = int(found["bits"])
    count = 1
    for extent in re.findall(r"\[(\d*)\]", found["extents"]):
        count *= int(extent or 0)
    alignment = re.search(r"\.align\s+(\d+)", found["attributes"])
    return Variable(
        found["space"],
        found["name"],
        bits,
        count * bits // 8,
        int(alignment[1]) if alignment else bits // 8,
        found["initial"],
    )


def global_variable(program: str, variable: Variable) -> GlobalVariable:
    """A variable of the module, with its initial bytes."""
    initial = None
    if variable.initial is not None:
        width = variable.bits // 8
        data = bytearray()
        for word in split_commas(variable.initial.replace("{", " ").replace("}", " ")):
            value = literal(word)
            if value is None:
                raise unsupported(program, 0, f"{variable.name} = {word}", "this initial value is not known")
            data += (value.value % (1 << variable.bits)).to_bytes(width, "little")
        initial = bytes(data).ljust(variable.size, b"\0")
    return GlobalVariable(
        program,
        variable.name,
        variable.space,
        variable.size,
        variable.alignment,
        initial or bytes(variable.size),
    )
