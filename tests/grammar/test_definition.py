"""The grammar as a definition: free of conflicts, complete, and equal to the tables that ship with it."""

from __future__ import annotations

import re
import warnings
from dataclasses import fields
from pathlib import Path

import pytest

from hlotool import grammar
from hlotool.grammar import build
from hlotool.grammar.engine import EngineTables
from hlotool.ir.attribute_kinds import ATTRIBUTE_KINDS, COMMON_ATTRIBUTES, Kind
from hlotool.ir.attributes import Metadata
from hlotool.ir.types import ELEMENT_TYPES
from hlotool.parser.text.attributes import OBSOLETE_ATTRIBUTES
from hlotool.parser.text.hlo_parser import RESERVED, Actions
from hlotool.parser.text.modules import MODULE_ATTRIBUTES

#: The terminal that lists the keys of each kind; BOOLS_KEY and others where the form is particular.
TERMINALS = {
    Kind.BOOL: "BOOL_KEY",
    Kind.BOOLS: "BOOLS_KEY",
    Kind.INT: "INT_KEY",
    Kind.FLOAT: "FLOAT_KEY",
    Kind.STRING: "STRING_KEY",
    Kind.ENUM: "ENUM_KEY",
    Kind.ENUMS: "ENUMS_KEY",
    Kind.INTS: "INTS_KEY",
    Kind.INT_LISTS: "INT_LISTS_KEY",
    Kind.COMPUTATION: "COMPUTATION_KEY",
    Kind.COMPUTATIONS: "COMPUTATIONS_KEY",
    Kind.WINDOW: "WINDOW_KEY",
    Kind.DIM_LABELS: "DIM_LABELS_KEY",
    Kind.PADDING: "PADDING_KEY",
    Kind.SLICE: "SLICE_KEY",
    Kind.REPLICA_GROUPS: "REPLICA_GROUPS_KEY",
    Kind.SHARDING: "SHARDING_KEY",
    Kind.ALIASES: "OPERAND_ALIASES_KEY",
    Kind.SHAPE: "SHAPE_KEY",
    Kind.SHAPES: "SHAPES_KEY",
    Kind.LITERAL: "LITERAL_KEY",
    Kind.ACCURACY: "ACCURACY_KEY",
    Kind.METADATA: "METADATA_KEY",
    Kind.FRONTEND: "FRONTEND_KEY",
    Kind.BACKEND_CONFIG: "BACKEND_CONFIG_KEY",
    Kind.STATISTICS: "STATISTICS_KEY",
    Kind.INSTRUCTIONS: "PREDECESSORS_KEY",
}
#: One key may be written in two ways, or carries text whose form is its own.
PARTICULAR = {
    "slice_sizes": "SLICE_SIZES_KEY",
    "origin": "ORIGIN_KEY",
    "domain": "DOMAIN_KEY",
    "sparsity_config": "SPARSITY_KEY",
    "block_scaling_config": "SPARSITY_KEY",
}


@pytest.fixture(scope="module")
def terminals() -> dict[str, re.Pattern[str]]:
    """The attribute keys of the grammar by terminal, most particular ones only."""
    terminals = grammar.tables().terminals
    return {name: re.compile(expression) for name, expression in terminals.items() if name.endswith("_KEY")}


def test_no_conflict_of_rules_or_of_terminals() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build.build_parser(strict=True)


def test_the_shipped_tables_are_those_of_the_grammar() -> None:
    shipped = grammar.Tables.load(grammar.TABLES_PATH.read_bytes())
    assert shipped.grammar_checksum == grammar.grammar_checksum(), "run python -m hlotool.grammar.build"
    fresh = build.compute_tables()
    assert fresh._replace(engine=shipped.engine) == shipped
    assert without_numbers(fresh.engine) == without_numbers(shipped.engine)


def without_numbers(tables: EngineTables) -> list[object]:
    """What does not depend on the order in which lark numbers states and rules."""
    return [len(tables.states), sorted(map(str, tables.rules)), tables.terminals, tables.ignored]


@pytest.mark.parametrize("checksum", [0, None])
def test_tables_that_do_not_fit_are_not_used(
    checksum: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "hlo.tables.bin"
    if checksum is not None:
        path.write_bytes(grammar.tables()._replace(grammar_checksum=checksum).dump())
    fresh = object()
    monkeypatch.setattr(grammar, "TABLES_PATH", path)
    monkeypatch.setattr(build, "compute_tables", lambda: fresh)
    assert grammar.tables.__wrapped__() is fresh


def test_every_start_rule_parses() -> None:
    texts = {
        "module": "HloModule m  ENTRY e { p = f32[] parameter(0) }",
        "computations": "e { p = f32[] parameter(0) } f { ROOT q = f32[] parameter(0) }",
        "remainder": ", sharding={replicated} q = f32[] negate(p) } f { r = f32[] iota() }",
        "instruction": "ROOT %p = f32[2]{0} add(a, b), k=3",
        "attributes": ", dimensions={0,1}, direction=LT",
        "metadata": '{op_name="x" source_line=3}',
        "shape": "(f32[2]{0}, (), token[])",
        "literal": "{ { 1, 2 }, { 3, 4 } }",
    }
    assert set(texts) == set(grammar.STARTS)
    for start, text in texts.items():
        grammar.parser(start, Actions(strict=False))(text)


def test_an_unknown_start_rule_is_named() -> None:
    with pytest.raises(ValueError, match="no start rule tokens; there are module, computations"):
        grammar.parser("tokens", object())


@pytest.mark.parametrize("key", sorted({**COMMON_ATTRIBUTES, **ATTRIBUTE_KINDS}))
def test_keys_of_the_opcode_table_stand_under_their_form(
    key: str, terminals: dict[str, re.Pattern[str]]
) -> None:
    kind = {**COMMON_ATTRIBUTES, **ATTRIBUTE_KINDS}[key]
    expected = PARTICULAR.get(key) or TERMINALS[kind]
    assert terminals[expected].fullmatch(f"{key}=")


@pytest.mark.parametrize("key", sorted(MODULE_ATTRIBUTES))
def test_keys_of_modules_have_a_form(key: str, terminals: dict[str, re.Pattern[str]]) -> None:
    assert [name for name, found in terminals.items() if name != "KEY" and found.fullmatch(f"{key}=")]


@pytest.mark.parametrize("key", sorted(OBSOLETE_ATTRIBUTES))
def test_obsolete_keys_have_none(key: str, terminals: dict[str, re.Pattern[str]]) -> None:
    assert not [name for name, found in terminals.items() if name != "KEY" and found.fullmatch(f"{key}=")]


def test_metadata_fields_are_those_of_the_ir() -> None:
    known = [f.name for f in fields(Metadata) if f.name != "obsolete"]
    forms = [re.compile(grammar.terminal(f"META_{kind}_KEY")) for kind in ("STRING", "INT", "INTS")]
    for name in known:
        assert sum(form.fullmatch(f"{name}=") is not None for form in forms) == 1, name


def test_element_types_are_those_of_the_ir() -> None:
    element_type = re.compile(grammar.terminal("ELEMENT_TYPE"))
    for name in (*ELEMENT_TYPES, "token", "opaque"):
        assert element_type.fullmatch(name), name
        assert name in RESERVED
    assert not element_type.fullmatch("f8")


def test_every_rule_that_makes_a_value_has_an_action() -> None:
    for rule in grammar.tables().engine.rules:
        assert rule.action is None or hasattr(Actions, rule.action), rule
