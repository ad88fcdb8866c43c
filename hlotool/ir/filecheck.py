"""A program as a FileCheck test of the passes that made it, as tests of XLA and LLVM say what they expect.

Names are not part of the expectation: each instruction's is bound where it is defined and asked for where it
is read. LLVM: docs/CommandGuide/FileCheck.
"""

from __future__ import annotations

import re

from hlotool.ir.module import Module
from hlotool.ir.printer import PrintOptions, print_module

_NAME = re.compile(r"%([A-Za-z_][\w.\-]*)")
_DEFINITION = re.compile(r"^(\s*(?:ROOT )?)%([\w.\-]+)( = )")
#: What FileCheck would take for one of its own brackets.
_BRACKETS = re.compile(r"\[\[|\{\{")

_OPTIONS = PrintOptions(metadata=False)


def filecheck_test(before: str, after: Module, passes: str) -> str:
    """A test file: the command, the program before the passes, and the lines that are expected after them.

    Args:
        before: text of the program that the passes got.
        after: what they made of it.
        passes: the pipeline, as `hlotool opt --passes` takes it.
    """
    command = f"hlotool opt %s --passes '{passes}'" if passes else "hlotool opt %s"
    lines = [f"// RUN: {command} | FileCheck %s", "", before.rstrip(), ""]
    known: set[str] = set()
    follows = False
    for line in print_module(after, _OPTIONS).splitlines():
        if line.startswith("HloModule") or not line.strip() or line.strip() == "}":
            follows = False
            continue
        is_head = not line.startswith(" ")
        word = "CHECK-NEXT" if follows else "CHECK-LABEL" if is_head and line.startswith("ENTRY") else "CHECK"
        lines.append(f"// {word}: {_head() if is_head and word == 'CHECK-LABEL' else _expected(line, known)}")
        follows = True
    return "\n".join([*lines, ""])


def _head() -> str:
    # A label may hold no variables, and the parameters follow in lines of their own.
    return "ENTRY"


def _expected(line: str, known: set[str]) -> str:
    """One line, with a variable for every name."""
    if defined := _DEFINITION.match(line):
        name = defined[2]
        rest = _read(line[defined.end() :], known)
        known.add(name)
        root = "ROOT " if "ROOT" in defined[1] else ""
        return f"{root}[[{_variable(name)}:%[^ ]+]] = {rest}"
    return _bound(line.strip(), known)


def _read(text: str, known: set[str]) -> str:
    """Text that asks for names: those that no line has bound are left open."""

    def variable(found: re.Match[str]) -> str:
        return f"[[{_variable(found[1])}]]" if found[1] in known else "%{{[^ ,)]+}}"

    bound = _NAME.sub(variable, _escaped(text))
    # Metadata, which is not expected, stands before the last attribute.
    return bound.replace(", backend_config=", "{{.*}}, backend_config=")


def _bound(text: str, known: set[str]) -> str:
    """The head of a computation, which binds its own name."""
    found = _NAME.match(text)
    if found is None:
        return _read(text, known)
    known.add(found[1])
    return f"[[{_variable(found[1])}:%[^ ]+]] {{{{.*}}}}"


def _escaped(text: str) -> str:
    return _BRACKETS.sub(lambda found: "{{" + re.sub(r"(.)", r"\\\1", found[0]) + "}}", text)


def _variable(name: str) -> str:
    """The name as FileCheck takes it for a variable."""
    return re.sub(r"\W", "_", name).upper()
