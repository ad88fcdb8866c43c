"""Modules as protos: read back they are the same, and XLA reads the program that its text says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from support.proto_programs import PROGRAMS
from support.xla import oracle

from hlotool.errors import ProtoError
from hlotool.ir.attributes import FrontendAttributes, RawText
from hlotool.ir.builder import Builder, array
from hlotool.ir.edit import unique_names
from hlotool.ir.module import Module
from hlotool.ir.printed_annotations import quote
from hlotool.ir.types import ArrayShape, Layout, Shape, TupleShape
from hlotool.parser.proto.module import parse_module_proto, write_module_proto
from hlotool.parser.proto.schema import message_class
from hlotool.parser.reader import parse_module
from hlotool.parser.tokens import unquote

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
TEXTS = {
    path.stem: path.read_text(encoding="utf-8") for path in sorted((CORPUS / "modules").glob("*.hlo"))
} | PROGRAMS
DUMPS = (
    "jax/train_mnist_mlp",
    "jax/sharded_mlp",
    "jax/donated_update",
    "tf/model_fn",
    "jax/transformer_bf16",
)
#: Text has these, a proto has them not, or only with a device assignment.
_LOST = re.compile(
    r", (?:allow_spmd_sharding_propagation_to_\w+=\{[^}]*\}|replica_count=\d+|num_partitions=\d+"
    r"|alias_passthrough_params=true)"
)


def rename_uniquely(module: Module) -> None:
    """Protos want names that are unique in the module."""
    for instruction, name in unique_names(module).items():
        instruction.name = name


def as_in_proto(module: Module) -> Module:
    """Row-major where the text says nothing, names unique, one way to write a string."""
    rename_uniquely(module)
    for instruction in module.instructions():
        instruction.shape = _laid_out(instruction.shape)
        changes: dict[str, Any] = {}
        if isinstance(shape := instruction.attributes.get("outfeed_shape"), ArrayShape):
            changes["outfeed_shape"] = _laid_out(shape)
        if instruction.opcode == "scan":
            changes["is_associative"] = instruction.attributes.get("is_associative", False)
        if isinstance(frontend := instruction.attributes.get("frontend_attributes"), FrontendAttributes):
            changes["frontend_attributes"] = FrontendAttributes(
                tuple((k, quote(unquote(v)) if v.startswith('"') else v) for k, v in frontend.entries)
            )
        instruction.attributes = {**instruction.attributes, **changes}
    return module


def _laid_out(shape: Shape) -> Shape:
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(map(_laid_out, shape.elements)))
    if isinstance(shape, ArrayShape) and shape.dims and shape.layout is None:
        return replace(shape, layout=Layout(tuple(range(shape.rank))[::-1]))
    return shape


def lines(module: Module) -> list[str]:
    """All instructions and computations; a proto may list computations in another valid order."""
    return sorted(_LOST.sub("", module.to_text().split("\n", 1)[1]).splitlines())


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_written_reads_back(name: str) -> None:
    module = as_in_proto(parse_module(TEXTS[name]))
    read = parse_module_proto(write_module_proto(module), name)
    assert lines(read) == lines(module)


@pytest.mark.parametrize("directory", DUMPS)
def test_dumped_programs_read_back_with_their_header(directory: str) -> None:
    for path in sorted((CORPUS / directory).glob("*_optimizations.txt")):
        module = parse_module(path.read_text(encoding="utf-8"), str(path))
        read = parse_module_proto(write_module_proto(module), str(path))
        assert lines(read) == lines(module)
        assert _LOST.sub("", read.to_text().split("\n")[0]) == _LOST.sub("", module.to_text().split("\n")[0])
        assert read.stack_frames == module.stack_frames
        assert (read.is_scheduled, read.num_partitions) == (module.is_scheduled, module.num_partitions)


@pytest.mark.xla
@pytest.mark.parametrize("name", TEXTS)
def test_xla_reads_the_program(name: str) -> None:
    """Its print of our proto is its print of the text."""
    module = parse_module(TEXTS[name])
    content = write_module_proto(module)
    bare = message_class("HloProto").FromString(content).hlo_module.SerializeToString()
    rename_uniquely(module)
    expected = oracle().canonical(module.to_text())
    assert sorted(_printed(oracle().from_proto(bare))) == sorted(_printed(expected))


def _printed(text: str) -> list[str]:
    """XLA's text loses the sign of zero that its proto keeps."""
    text = _LOST.sub("", text)
    return re.sub(r"(?<![\w.])-0(?![\w.])", "0", text).splitlines()


def test_what_a_proto_cannot_say_is_an_error() -> None:
    builder = Builder("main")
    x = builder.parameter(0, array("f32", 2))
    module = builder.build_module(builder.op("negate", x, flavour=RawText("{sweet}")))
    with pytest.raises(ProtoError, match="negate: a proto has no field for flavour"):
        write_module_proto(module)
