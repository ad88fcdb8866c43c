"""What opcodes are stands in the opcode table, and in no other one.

A table is a literal outside of `hlotool/ir` that names three or more opcodes: a set, a list, a tuple, the keys
of a dict, or the words of a string. Literals of one statement are one table. No tables are:

- arguments of decorators, and dicts (and `dict.fromkeys`) whose values are functions: registers of rules,
- what is drawn from at random, in the call that draws (`word`, `choice`, `choose`): programs, not facts,
- `__all__`.

Each other one is allowed below by its file and name, or the function that it stands in, with the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from hlotool.ir.opcodes import OPCODES

ROOT = Path(__file__).resolve().parents[2]
DRAWS = {"word", "choice", "choose"}

ALLOWED: dict[str, str] = {}


def _named(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        words = node.value.split()
        return words if OPCODES.keys() >= set(words) else []
    items: list[ast.expr | None] = []
    if isinstance(node, ast.Dict):
        items = list(node.keys)
    elif isinstance(node, ast.Set | ast.List | ast.Tuple):
        items = list(node.elts)
    texts = [item.value for item in items if isinstance(item, ast.Constant)]
    return [text for text in texts if isinstance(text, str) and text in OPCODES]


def _is_function(node: ast.expr) -> bool:
    """Names, attributes, lambdas, and calls of functions; what a class makes is a value."""
    if isinstance(node, ast.Tuple):
        return bool(node.elts) and all(map(_is_function, node.elts))
    if isinstance(node, ast.Call):
        called = node.func
        name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
        return name.lstrip("_")[:1].islower()
    if isinstance(node, ast.Name):
        return not node.id.isupper()
    return isinstance(node, ast.Attribute | ast.Lambda)


def _left_out(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            for decorator in node.decorator_list:
                yield from ast.walk(decorator)
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            yield from ast.walk(node)
        elif isinstance(node, ast.Dict) and node.values and all(map(_is_function, node.values)):
            yield node
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in DRAWS:
                yield from ast.walk(node)
            elif node.func.attr == "fromkeys" and len(node.args) == 2 and _is_function(node.args[1]):
                yield from ast.walk(node.args[0])


def _tables(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The name and the line of each statement with a table: of the constant, or of the function around it."""
    left_out = set(map(id, _left_out(tree)))

    def tables(node: ast.AST, statement: ast.stmt | None, name: str) -> Iterator[tuple[str, int]]:
        for child in ast.iter_child_nodes(node):
            inner, its_name = statement, name
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inner, its_name = child, child.name
            elif isinstance(child, ast.stmt):
                inner = child
                targets = child.targets if isinstance(child, ast.Assign) else [getattr(child, "target", None)]
                if not name and isinstance(targets[0], ast.Name):
                    its_name = targets[0].id
            if id(child) not in left_out and inner is not None and len(_named(child)) >= 3:
                line = child.lineno if hasattr(inner, "body") else inner.lineno  # type: ignore[attr-defined]
                yield its_name, line
            yield from tables(child, inner, its_name)

    yield from dict.fromkeys(tables(tree, None, ""))


def found() -> dict[str, int]:
    """How many tables there are, by file and name."""
    counts: dict[str, int] = {}
    for room in ("hlotool", "backends"):
        for path in sorted((ROOT / room).rglob("*.py")):
            file = str(path.relative_to(ROOT))
            if not file.startswith("hlotool/ir/"):
                for name, _ in _tables(ast.parse(path.read_text(encoding="utf-8"))):
                    counts[f"{file}:{name}"] = counts.get(f"{file}:{name}", 0) + 1
    return counts
