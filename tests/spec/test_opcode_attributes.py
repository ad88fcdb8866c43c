"""The attributes of the opcode table are those that XLA's parser demands and allows."""

from __future__ import annotations

import re

import pytest
from spec.minimal_modules import minimal_texts
from support.differential import parse
from support.xla import JAXLIB, NEWER_TEXT, XlaError, oracle

from hlotool.errors import HlotoolError
from hlotool.ir.attribute_kinds import ATTRIBUTE_KINDS, Kind
from hlotool.ir.opcodes import OPCODES, attribute_kind
from hlotool.ir.types import ElementType

#: A value that can be parsed, by kind; a word for kinds that are not listed.
VALUES = {
    Kind.ACCURACY: "{mode=highest}",
    Kind.ALIASES: "{}",
    Kind.BOOL: "true",
    Kind.BOOLS: "{true}",
    Kind.COMPUTATION: "work",
    Kind.COMPUTATIONS: "{work}",
    Kind.DIM_LABELS: "bf_io->bf",
    Kind.ENUMS: "{default}",
    Kind.FLOAT: "1",
    Kind.INT: "1",
    Kind.INTS: "{0}",
    Kind.INT_LISTS: "{{0}}",
    Kind.LITERAL: "f32[] 1",
    Kind.PADDING: "0_0",
    Kind.REPLICA_GROUPS: "{{0}}",
    Kind.SHAPE: "f32[2]",
    Kind.SHAPES: "{f32[2]}",
    Kind.SLICE: "{[0:1]}",
    Kind.STRING: '"s"',
    Kind.WINDOW: "{size=1}",
}

#: XLA parses it everywhere and dies where the instruction is no parameter.
EVERYWHERE = "parameter_replication"
#: Which ones `conditional` takes depends on its first operand.
BRANCHES = {"true_computation", "false_computation", "branch_computations"}

#: Attributes that a parser takes since NEWER_TEXT.
NEWER = {
    ("async-update", "output_to_operand_aliasing"),
    ("collective-broadcast", "has_dynamic_root"),
    ("compare", "order"),
    ("convolution", "algorithm"),
    ("convolution", "block_scaling_config"),
    ("dot", "block_scaling_config"),
    ("dot", "sparsity_config"),
    ("topk", "is_stable"),
}


@pytest.mark.xla
@pytest.mark.parametrize("opcode", OPCODES)
def test_attributes(opcode: str) -> None:
    text, line = module_with(opcode)
    assert complaint(text) == ""
    row = OPCODES[opcode]
    for name, part in own_attributes(opcode, line):
        is_missed = "is expected but not seen" in complaint(text.replace(line, line.replace(part, "")))
        assert is_missed == (name in row.required or name in BRANCHES), name
    for name in ATTRIBUTE_KINDS.keys() - {EVERYWHERE} - BRANCHES:
        if f"{name}=" not in line:
            value = VALUES.get(attribute_kind(opcode, name) or ATTRIBUTE_KINDS[name], "word")
            more = complaint(text.replace(line, f"{line}, {name}={value}"))
            is_too_new = (opcode, name) in NEWER and JAXLIB < NEWER_TEXT
            is_taken = name in row.attributes and not is_too_new
            assert ("unexpected attribute" in more.lower()) == (not is_taken), name


def module_with(opcode: str) -> tuple[str, str]:
    """The smallest module with that opcode, and the line where it stands."""
    for kind in (ElementType.F32, ElementType.S32, ElementType.C64):
        for template in minimal_texts(opcode, kind):
            try:
                text = parse(template).to_text()
            except HlotoolError:
                continue
            if found := re.search(rf".* = .*\b{opcode}\(.*", text):
                return text, found[0]
    raise AssertionError(f"no module with {opcode}")


def own_attributes(opcode: str, line: str) -> list[tuple[str, str]]:
    """Names of the attributes on a line, each with its text up to the next attribute."""
    parts = re.findall(r", ([a-z_-]+)=(\{(?:[^{}]|\{[^{}]*\})*\}|[^,{}]+)", line)
    return [(name, f", {name}={value}") for name, value in parts if name in OPCODES[opcode].attributes]


def complaint(text: str) -> str:
    """What XLA says against a text; empty when it reads it."""
    try:
        oracle().canonical(text)
    except XlaError as error:
        return str(error)
    return ""
