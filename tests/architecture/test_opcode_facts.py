"""What opcodes are stands in the opcode table, and in no other one.

A table is a literal outside of `hlotool/ir` that names three or more opcodes: a set, list, tuple, the keys
of a dict, or the words of a string. Literals of one statement are one table. No tables are:

- arguments of decorators, and dicts (and `dict.fromkeys`) whose values are functions: registers of rules,
- what is drawn from at random, in the call that draws (`word`, `choice`, `choose`): programs, not facts,
- `__all__`.

Each other one is allowed below by its file and name, or that of the function around it, with the reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hlotool.ir.opcodes import OPCODES, Identity, Trait, opcodes_with, rows

ROOT = Path(__file__).resolve().parents[2]
#: Strings that may name opcodes: most files have too few to be looked at.
_LITERALS = re.compile(r'"([a-z0-9 -]+)"')
DRAWS = {"word", "choice", "choose"}

#: Reason → tables.
ALLOWED: dict[str, str] = {
    "what XLA does with them: conditions of its passes and emitters, read in its source": """
        hlotool/checks/fusions.py:_NOT_EMITTED
        hlotool/checks/fusions.py:_HEROES
        hlotool/checks/offload/rules.py:_COMPUTES
        hlotool/checks/offload/legalize.py:_UPWARDS
        hlotool/checks/offload/positions.py:PASSES_ON
        hlotool/checks/offload/positions.py:VIEWS
        hlotool/checks/offload/walk.py:_AFTER_SLICE
        hlotool/checks/inspect/traffic.py:_nested_reads
        hlotool/facts/expressions.py:_UNIQUE
        hlotool/rewrite/passes/fusion_facts.py:_ALWAYS
        hlotool/rewrite/passes/fusion_facts.py:_CHEAP
        hlotool/rewrite/passes/fusion_facts.py:_CHEAP_REAL
        hlotool/rewrite/passes/fusion_facts.py:_REUSING
        hlotool/blame/bisection/spotting.py:_LIBRARY
        backends/numpy/executions/departures.py:DEPARTURES
        backends/numpy/executions/policy.py:_is_complex_product
        backends/numpy/executions/policy.py:_adds_real_floats
        hlotool/lab/fuzz/programs/limits.py:_TYPES
        hlotool/lab/fuzz/programs/limits.py:_NOT_OF_SCALES
    """,
    "as much as an analysis follows; it says so where it stops": """
        hlotool/facts/trip_counts.py:_READ
        hlotool/facts/buffers.py:_SAME
        hlotool/facts/float_order.py:_PLAIN
        hlotool/facts/float_order.py:_is_bits_or_limit
        hlotool/judge/rules/instructions.py:_PASSING
        hlotool/rewrite/scale/quotients.py:_LINEAR
        hlotool/rewrite/scale/position_constants.py:_COMPUTES
        hlotool/lab/mutation/equivalence.py:_READS
        hlotool/lab/mutation/equivalence.py:_FORGETS
        hlotool/inputs/demand_rules.py:_LOGIC
        hlotool/inputs/demand_movement.py:_KEEPS
        hlotool/inputs/demand_movement.py:_IN_PLACE
        hlotool/inputs/demand_movement.py:_SHUFFLING
        hlotool/inputs/demand_movement.py:_ELEMENT_BY_ELEMENT
        hlotool/inputs/demand_movement.py:_matrix_through
        hlotool/rewrite/passes/algebra/movement.py:moves_nothing
        hlotool/inputs/frames.py:_SIDE_BY_SIDE
        hlotool/runs/exact/questions.py:_is_asked_elsewhere
        backends/field/executable.py:_has_infinities
        backends/field/lowering.py:_MOVES
        backends/field/lowering.py:RATIONAL
    """,
    "rules with an argument: a law, a line of C++, a measured error, an attribute that is meant": """
        hlotool/facts/signs.py:_LAWS hlotool/facts/ranges.py:FUNCTIONS
        hlotool/parser/mlir/elementwise.py:_ELSEWHERE
        backends/cuda/codegen/elementwise.py:_LIBRARY
        backends/cuda/codegen/elementwise.py:_FLOATS
        backends/cuda/codegen/elementwise.py:_INTEGERS
        backends/cuda/codegen/elementwise.py:_PREDS
        backends/cuda/codegen/elementwise.py:_COMPLEX
        backends/cuda/codegen/elementwise.py:_OF_BF16
        backends/cuda/codegen/elementwise.py:_EXACT
        backends/field/rules/elementwise.py:_COMPLEX_BOXES
        backends/numpy/grouping.py:MAY_RETURN_OPERAND
        backends/numpy/executions/policy.py:_BY_PARTS
        backends/numpy/executions/rounding_errors.py:ROWS
        backends/numpy/executions/rounding_errors.py:_EXACT_FOR_MANY
        backends/numpy/executions/rounding_errors.py:_EXACT_WHEN_WIDE
        hlotool/lab/fuzz/oracle.py:_OF_ANY_ORDER
        hlotool/lab/fuzz/programs/steps_elementwise.py:_DOMAINS
        hlotool/lab/conformance/generators/arrays.py:batch_norm
    """,
    "choices of what to ask, to show, to plant or to draw": """
        hlotool/facts/decisions.py:_ASKING
        hlotool/checks/facts.py:_PREPARING
        hlotool/rewrite/passes/cleanup.py:_COMPACT
        hlotool/lab/faults/arithmetic.py:_ASYMMETRIC
        hlotool/lab/faults/arithmetic.py:_CONFUSED
        hlotool/lab/faults/exchanges.py:_REDUCERS
        hlotool/lab/faults/exchanges.py:_GROUPED
        hlotool/lab/faults/parts.py:_PINNED
        hlotool/lab/faults/edit.py:_PARTICULAR
        hlotool/lab/faults/rounding.py:_adds_in_a_reducer
        hlotool/lab/faults/rounding.py:_readers
        hlotool/lab/fuzz/programs/drawn.py:_words
        hlotool/lab/fuzz/programs/idioms/functions.py:_floor_of_convert
        hlotool/lab/fuzz/programs/idioms/control.py:_combine
        hlotool/lab/fuzz/programs/idioms/functions.py:_function_of_a_hidden_constant
        hlotool/lab/fuzz/programs/limits.py:LEFT_OUT
        hlotool/lab/fuzz/programs/drawn.py:_PARALLEL
        hlotool/lab/fuzz/programs/drawn.py:_ELEMENTWISE
    """,
    "names of attributes": "hlotool/parser/proto/instruction_attributes.py:_FIELDS",
}


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
    if isinstance(node, ast.DictComp):
        return _is_function(node.value)
    if isinstance(node, ast.Call):
        called = node.func
        name = (
            called.id
            if isinstance(called, ast.Name)
            else called.attr
            if isinstance(called, ast.Attribute)
            else ""
        )
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
            text = path.read_text(encoding="utf-8")
            words = {word for literal in _LITERALS.findall(text) for word in literal.split()}
            # The opcodes of PTX have names like those of HLO.
            if not file.startswith(("hlotool/ir/", "backends/gpu_ptx/")) and len(words & OPCODES.keys()) >= 3:
                for name, _ in _tables(ast.parse(text)):
                    counts[f"{file}:{name}"] = counts.get(f"{file}:{name}", 0) + 1
    return counts


def test_every_other_table_has_a_reason() -> None:
    """A new fact goes into `ir/opcode_table.py`, as a trait; a table that is gone leaves this list."""
    tables = found()
    allowed = [name for names in ALLOWED.values() for name in names.split()]
    assert sorted(tables) == sorted(allowed)
    assert set(tables.values()) == {1}
    assert len(allowed) <= 80


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ('_MOVES = frozenset({"copy", "slice", "pad"})', ["_MOVES"]),
        ('_MOVES: Final = ("copy", "slice", "pad", *OTHERS)', ["_MOVES"]),
        ('_MOVES = "copy slice pad".split()', ["_MOVES"]),
        ('_COSTS = {"copy": 1, "slice": 2, "pad": 3}', ["_COSTS"]),
        ('_DOMAINS = {"copy": Domain(1), "slice": Domain(2), "pad": Domain(3)}', ["_DOMAINS"]),
        ('def moves(i):\n    return i.opcode in ("copy", "slice", "pad")', ["moves"]),
        ('_TWO = frozenset({"copy", "slice", "no-opcode"})', []),
        ('_RULES = {"copy": _copy, "slice": _of(1), "pad": lambda x: x}', []),
        ('_RULES = dict.fromkeys(("copy", "slice", "pad"), _same)', []),
        ('@lowers("copy", "slice", "pad")\ndef f(x): pass', []),
        ('def f(g):\n    return g.op(g.word("add subtract multiply"))', []),
    ],
)
def test_what_a_table_is(text: str, tables: list[str]) -> None:
    assert [name for name, _ in _tables(ast.parse(text))] == tables


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"traits": frozenset()}, "how its result comes about"),
        ({"traits": frozenset({Trait.MOVES})}, "elementwise opcode has one of"),
        ({"traits": frozenset({Trait.EXACT, Trait.ROUNDS})}, "elementwise opcode has one of"),
        ({"traits": frozenset({Trait.EXACT, Trait.ASSOCIATIVE})}, "neutral element"),
        ({"identity": Identity.ZERO}, "neutral element"),
    ],
)
def test_a_row_without_what_it_must_state_is_refused(row: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        replace(OPCODES["sign"], **row)


@pytest.mark.parametrize(
    "line", ["toy 1 x |", "toy 1 x | exactly", "toy 1 x | exact associative identity=two"]
)
def test_a_line_that_states_nothing_known_is_refused(line: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        list(rows(f"[elementwise]\n{line}"))


def test_every_fact_is_stated_and_asked_for() -> None:
    texts = [
        path.read_text(encoding="utf-8")
        for room in ("hlotool", "backends")
        for path in (ROOT / room).rglob("*.py")
    ]
    for trait in Trait:
        assert opcodes_with(trait), trait
        assert any(f"Trait.{trait.name}" in text for text in texts), trait
