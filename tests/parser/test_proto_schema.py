"""The schema: what it declares is what XLA declares, and what its descriptor holds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

from hlotool.parser.proto.schema import enum_names, message_class

SCHEMA = resources.files("hlotool.parser.proto").joinpath("hlo.proto").read_text()
COMPILED = resources.files("hlotool.parser.proto").joinpath("hlo.binpb").read_bytes()


def test_the_descriptor_is_current() -> None:
    """As protoc compiles it."""
    pytest.importorskip("grpc_tools")
    script = Path(__file__).resolve().parents[2] / "scripts" / "proto-descriptor"
    subprocess.run([sys.executable, script, "--check"], check=True)


def numbered(message: DescriptorProto) -> Iterator[tuple[str, int]]:
    """Names and numbers of the fields and enumerations of a message and those inside it."""
    yield from ((field.name, field.number) for field in message.field)
    for enum in message.enum_type:
        yield from ((value.name, value.number) for value in enum.value)
    for nested in message.nested_type:
        if not nested.options.map_entry:  # protoc makes these messages
            yield from numbered(nested)


def test_the_descriptor_has_all_names_and_numbers_of_the_schema() -> None:
    """Where protoc is not installed: a change to one of the two files alone shows."""
    file = FileDescriptorProto.FromString(COMPILED)
    found = [(v.name, v.number) for enum in file.enum_type for v in enum.value]
    found += [pair for message in file.message_type for pair in numbered(message)]
    plain = re.sub(r"//[^\n]*", "", SCHEMA)
    written = [(name, int(number)) for name, number in re.findall(r"(\w+)\s*=\s*(-?\d+)\s*;", plain)]
    assert sorted(found) == sorted(written)
    assert written


def test_field_numbers_are_unique_and_types_known() -> None:
    for message in FileDescriptorProto.FromString(COMPILED).message_type:
        numbers = [field.number for field in message.field]
        assert len(numbers) == len(set(numbers)), message.name
        assert message_class(message.name).DESCRIPTOR.name == message.name


def test_maps_oneofs_and_enums_work() -> None:
    attributes = message_class("FrontendAttributes")(map={"a": "b"})
    again = message_class("FrontendAttributes").FromString(attributes.SerializeToString())
    assert dict(again.map) == {"a": "b"}
    accuracy = message_class("ResultAccuracy")(mode=1)
    assert accuracy.WhichOneof("specs") == "mode"
    assert enum_names("OpSharding.Type")[3] == "OTHER"


def test_protobuf_is_imported_only_for_binary_files() -> None:
    program = (
        "import sys, hlotool.sources.directory, hlotool.sources.loading\n"
        "assert not any(name.startswith('google') for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("implementation", ["python", "upb"])
def test_both_implementations_of_protobuf_read_a_dump(implementation: str, corpus: object) -> None:
    program = (
        "import sys, pathlib\n"
        "from hlotool.parser.proto.module import parse_module_proto\n"
        "from google.protobuf.internal import api_implementation\n"
        f"assert api_implementation.Type() == {implementation!r}\n"
        "print(parse_module_proto(pathlib.Path(sys.argv[1]).read_bytes()).name)"
    )
    path = f"{corpus}/jax/protos/module_0000.jit_table_lookup.before_optimizations.hlo.pb"
    environment = {**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": implementation}
    done = subprocess.run(
        [sys.executable, "-c", program, path],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert done.stdout.strip() == "jit_table_lookup"
