"""The schema: what it declares is what XLA declares, and what its reader understands."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import resources

import pytest

from hlotool.parse.proto.schema import enum_names, message_class, read_schema


def test_the_reader_understands_every_form_that_the_schema_uses() -> None:
    file = read_schema(
        """
        // comment
        syntax = "proto3";
        package p;
        enum Color { RED = 0; BLUE = 2; }
        message Outer {
          message Inner { bool flag = 1; }
          enum Kind { NONE = 0; }
          repeated Inner inner = 1;
          Color color = 2;
          Kind kind = 3;
          map<string, int64> sizes = 4;
          oneof choice { bytes raw = 5; Inner parsed = 6; }
        }
        """
    )
    assert (file.package, file.syntax) == ("p", "proto3")
    [outer] = file.message_type
    assert [(f.name, f.number) for f in outer.field] == [
        ("inner", 1),
        ("color", 2),
        ("kind", 3),
        ("sizes", 4),
        ("raw", 5),
        ("parsed", 6),
    ]
    assert [m.name for m in outer.nested_type] == ["Inner", "SizesEntry"]
    assert outer.nested_type[1].options.map_entry
    assert [f.oneof_index for f in outer.field if f.HasField("oneof_index")] == [0, 0]
    assert [(v.name, v.number) for v in file.enum_type[0].value] == [("RED", 0), ("BLUE", 2)]


def test_a_broken_schema_is_an_error() -> None:
    with pytest.raises(ValueError, match="expected '='"):
        read_schema('syntax = "proto3"; message A { bool b 1; }')


def test_field_numbers_are_unique_and_types_known() -> None:
    text = resources.files("hlotool.parse.proto").joinpath("hlo.proto").read_text()
    for message in read_schema(text).message_type:
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
        "import sys, hlotool.dump.directory, hlotool.dump.loading\n"
        "assert not any(name.startswith('google') for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("implementation", ["python", "upb"])
def test_both_implementations_of_protobuf_read_a_dump(implementation: str, corpus: object) -> None:
    program = (
        "import sys, pathlib\n"
        "from hlotool.parse.proto.module import parse_module_proto\n"
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
