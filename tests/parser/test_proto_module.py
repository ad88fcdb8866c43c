"""Modules from protos: they print as XLA prints the module that the proto was made of."""

from __future__ import annotations

import gzip
import random
import re
from pathlib import Path

import pytest
from support.proto_programs import PROGRAMS
from support.xla import in_older_words, oracle

from hlotool.errors import ProtoError
from hlotool.ir.attributes import BackendConfig, EmbeddedLiteral
from hlotool.ir.module import Computation, Module
from hlotool.ir.opcodes import OPCODES
from hlotool.ir.printed_literals import literal_text
from hlotool.ir.printer import PrintOptions, print_module
from hlotool.parser.proto.module import parse_module_proto
from hlotool.parser.proto.schema import message_class
from hlotool.parser.reader import parse_module
from hlotool.sources.directory import open_dump
from hlotool.sources.records import Stage

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
TEXTS = {
    path.stem: path.read_text(encoding="utf-8") for path in sorted((CORPUS / "modules").glob("*.hlo"))
} | PROGRAMS
#: Text has these, a proto has them not, or only with a device assignment.
_LOST = re.compile(
    r", (?:allow_spmd_sharding_propagation_to_\w+=\{[^}]*\}|replica_count=\d+|num_partitions=\d+"
    r"|alias_passthrough_params=true)"
)
_COMPUTATION = re.compile(r"^(?:ENTRY )?(%\S+) .*?^\}.*?$", re.MULTILINE | re.DOTALL)


def header(text: str) -> str:
    """The HloModule line, as far as a proto has it."""
    return _LOST.sub("", text.splitlines()[0])


def tables(text: str) -> str:
    """The tables of source positions."""
    return text[text.index("\n") : _COMPUTATION.search(text).start()].strip()  # type: ignore[union-attr]


def computations(text: str) -> dict[str, str]:
    """Text of each computation by name; a proto lists them in another valid order."""
    text = re.sub(r" +$", "", text, flags=re.MULTILINE)
    return {block[1]: block[0] for block in _COMPUTATION.finditer(text)}


def normal(text: str) -> str:
    """hlotool writes the sign of a zero so that XLA's parser keeps it."""
    return re.sub(r"(?<![\w.])-0(?![\w.])", "-0.0", text)


@pytest.mark.xla
@pytest.mark.parametrize("name", TEXTS)
def test_a_proto_prints_as_xla_prints_it(name: str) -> None:
    expected = in_older_words(normal(oracle().canonical(TEXTS[name])))
    printed = normal(print_module(parse_module_proto(oracle().proto(TEXTS[name]), name)))
    assert header(printed) == header(expected)
    assert computations(printed) == computations(expected)


def contents(module: Module) -> dict[tuple[str, str], tuple[object, ...]]:
    """All that an instruction says, by the names of its computation and itself."""
    return {
        (computation.name, i.name): (
            i.opcode,
            i.shape,
            [operand.name for operand in i.operands],
            {name: plain(value) for name, value in i.attributes.items()},
            i.metadata,
            i.parameter_number,
            [predecessor.name for predecessor in i.control_predecessors],
            i.literal.shape if i.literal else None,
        )
        for computation in module.computations
        for i in computation.instructions
    }


def plain(value: object) -> object:
    """Something that can be compared: computations and literals are equal only to themselves."""
    if isinstance(value, Computation):
        return f"%{value.name}"
    if isinstance(value, EmbeddedLiteral):
        return literal_text(value.literal)
    return tuple(map(plain, value)) if isinstance(value, tuple) else value


@pytest.mark.xla
@pytest.mark.parametrize("name", [name for name in TEXTS if name != "async-start.call"])
def test_proto_and_text_are_read_alike(name: str) -> None:
    """But for computations that text wraps around a single asynchronous operation, and names anew."""
    text = parse_module(oracle().canonical(TEXTS[name]))
    proto = parse_module_proto(oracle().proto(TEXTS[name]))
    assert contents(proto) == contents(text)
    assert proto.entry.root.name == text.entry.root.name
    assert proto.stack_frames == text.stack_frames


@pytest.mark.xla
def test_every_attribute_of_every_kind_is_tested() -> None:
    """But for what no proto of today's XLA has, and for what jaxlib's parser refuses."""
    seen = {
        name
        for text in TEXTS.values()
        for instruction in parse_module_proto(oracle().proto(text)).instructions()
        for name in instruction.attributes
    }
    all_attributes = {name for row in OPCODES.values() for name in row.attributes}
    newer = {"order", "has_dynamic_root", "block_scaling_config"}
    assert all_attributes - seen == {"mode", "convolution_kind", "sparsity_config"} | newer


def both_forms() -> list[Stage]:
    """Stages of the corpus that are there as text and as proto."""
    stages = [stage for module in open_dump(CORPUS / "jax").modules for stage in module.stages]
    return [stage for stage in stages if stage.text and stage.proto]


@pytest.mark.parametrize("stage", [pytest.param(s, id=s.label) for s in both_forms()])
def test_a_dumped_proto_prints_as_the_dumped_text(stage: Stage) -> None:
    assert stage.text is not None
    assert stage.proto is not None
    text = stage.text.read_text()
    module = parse_module_proto(stage.proto.read_bytes())
    printed = print_module(module, PrintOptions(large_constants=False))
    assert header(printed) == header(text)
    assert computations(printed) == computations(text)
    assert tables(printed) == tables(text)


def test_compressed_protos_of_the_corpus(corpus: Path) -> None:
    [module] = open_dump(corpus / "jax" / "protos_compressed").modules
    names = [parse_module_proto(stage.source.read_bytes()).name for stage in module.stages]
    assert names == ["jit_model_fn", "jit_model_fn"]


@pytest.fixture(scope="module")
def proto() -> bytes:
    """An HloProto as dumped."""
    folder = CORPUS / "jax" / "protos"
    return (folder / "module_0000.jit_table_lookup.cpu_after_optimizations.hlo.pb").read_bytes()


def test_a_bare_module_reads_like_the_one_in_an_hlo_proto(proto: bytes) -> None:
    bare = message_class("HloProto").FromString(proto).hlo_module.SerializeToString()
    assert parse_module_proto(bare).to_text() == parse_module_proto(proto).to_text()


def test_the_schedule_orders_the_instructions(proto: bytes) -> None:
    message = message_class("HloProto").FromString(proto)
    module = message.hlo_module
    sequence = module.schedule.sequences[module.entry_computation_id].instruction_ids
    scheduled = parse_module_proto(proto)
    assert scheduled.is_scheduled
    [entry] = [c for c in module.computations if c.id == module.entry_computation_id]
    names = {i.id: i.name for i in entry.instructions}
    assert [i.name for i in scheduled.entry.instructions] == [names[number] for number in sequence]
    del sequence[0]
    with pytest.raises(ProtoError, match="schedule does not name all its instructions"):
        parse_module_proto(message.SerializeToString())


def test_replicas_and_partitions_come_from_the_device_assignment(proto: bytes) -> None:
    message = message_class("HloProto").FromString(proto)
    message.hlo_module.device_assignment.replica_count = 2
    message.hlo_module.device_assignment.computation_count = 4
    module = parse_module_proto(message.SerializeToString())
    assert (module.replica_count, module.num_partitions) == (2, 4)


def test_strings_may_stand_in_the_list_of_the_module(proto: bytes) -> None:
    message = message_class("HloProto").FromString(proto)
    message.hlo_module.payloads.append(b"unused")
    message.hlo_module.payloads.append(b'{"a": 1}')
    instruction = message.hlo_module.computations[0].instructions[0]
    instruction.backend_config_payload.id = 1
    instruction.metadata.op_name = "here"
    instruction.metadata.metadata_payload.value = b"there"
    read = next(parse_module_proto(message.SerializeToString()).instructions())
    assert read.attributes["backend_config"] == BackendConfig('{"a": 1}')
    assert read.metadata is not None
    assert read.metadata.metadata_payload == "there"
    instruction.backend_config_payload.id = 2
    with pytest.raises(ProtoError, match="payload 2 of 2"):
        parse_module_proto(message.SerializeToString())


@pytest.mark.parametrize("keep", [1, 10, 0.1, 0.5, 0.99])
def test_a_truncated_proto_is_refused(proto: bytes, keep: float) -> None:
    with pytest.raises(ProtoError, match=r"^x\.hlo\.pb: "):
        parse_module_proto(proto[: int(keep * len(proto)) if isinstance(keep, float) else keep], "x.hlo.pb")


@pytest.mark.parametrize(
    "content", [b"", b"HloModule jit_f", b"\xff" * 100, gzip.compress(b"x", mtime=0), bytes(64)]
)
def test_what_is_no_proto_of_a_module_is_refused(content: bytes) -> None:
    with pytest.raises(ProtoError, match=r"^x\.pb: ") as caught:
        parse_module_proto(content, "x.pb")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("opcode", "frobnicate", "opcode 'frobnicate' is not known"),
        ("operand_ids", [1 << 20], "operand 1048576 does not come before it"),
        ("called_computation_ids", [77], "computation 77 does not come before its caller"),
    ],
)
def test_what_cannot_be_decoded_is_named(proto: bytes, field: str, value: object, message: str) -> None:
    proto_message = message_class("HloProto").FromString(proto)
    [entry] = [
        c
        for c in proto_message.hlo_module.computations
        if c.id == proto_message.hlo_module.entry_computation_id
    ]
    instruction = entry.instructions[-1]
    if isinstance(value, list):
        del getattr(instruction, field)[:]
        getattr(instruction, field).extend(value)
    else:
        setattr(instruction, field, value)
    with pytest.raises(ProtoError) as caught:
        parse_module_proto(proto_message.SerializeToString(), "dump/x.hlo.pb")
    assert str(caught.value).startswith(f"dump/x.hlo.pb: {instruction.opcode} {instruction.name}: ")
    assert message in str(caught.value)


def test_an_element_type_of_the_future_is_refused(proto: bytes) -> None:
    message = message_class("HloProto").FromString(proto)
    message.hlo_module.computations[0].instructions[0].shape.element_type = 99
    with pytest.raises(ProtoError, match="element type type 99 is not known"):
        parse_module_proto(message.SerializeToString())


def test_flipped_bytes_never_raise_anything_else(proto: bytes) -> None:
    chance = random.Random(5)
    messages: list[str] = []
    for _ in range(400):
        damaged = bytearray(proto)
        for _ in range(chance.randrange(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            parse_module_proto(bytes(damaged))
        except ProtoError as error:
            messages.append(str(error))
    assert len(messages) > 50
    assert not any("\n" in message for message in messages)
