"""Captured executions in all their forms."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hlotool.errors import ProtoError
from hlotool.ir.arrays import Literal
from hlotool.parser.proto.executions import (
    Execution,
    parse_snapshot,
    parse_unoptimized_snapshot,
    parse_unoptimized_snapshot_text,
)
from hlotool.parser.proto.schema import message_class
from hlotool.sources.directory import open_dump


def capture(folder: Path) -> bytes:
    """The only captured execution of a dump."""
    [module] = open_dump(folder).modules
    [found] = module.captures
    return found.source.read_bytes()


def arrays(folder: Path, name: str) -> list[Any]:
    """The program's inputs or outputs as its author saved them, in order."""
    with np.load(folder / name) as data:
        return [data[key] for key in sorted(data)]


def flat(literal: Literal) -> list[Any]:
    """The leaves of a literal."""
    return (
        [x for e in literal.elements for x in flat(e)]
        if isinstance(literal.value, tuple)
        else [literal.array]
    )


def same(found: list[Any], expected: list[Any]) -> bool:
    return len(found) == len(expected) and all(
        f.dtype == e.dtype and np.array_equal(f, e) for f, e in zip(found, expected, strict=True)
    )


def test_a_snapshot_has_program_arguments_and_result(corpus: Path) -> None:
    folder = corpus / "jax" / "snapshots"
    execution = parse_snapshot(capture(folder))
    assert execution.module.name == "jit_dynamic_rnn"
    [arguments] = execution.arguments
    assert same([a.array for a in arguments], arrays(folder, "inputs.npz"))
    assert execution.result is not None
    assert same(flat(execution.result), arrays(folder, "outputs.npz"))


def test_a_result_that_xla_gave_up_copying_is_none(corpus: Path) -> None:
    """Of a program with donated arguments jaxlib 0.10.2 writes an empty tuple; this one returns arrays."""
    snapshot = message_class("HloSnapshot").FromString(capture(corpus / "jax" / "snapshots"))
    snapshot.result.Clear()
    snapshot.result.shape.element_type = 13  # TUPLE
    assert parse_snapshot(snapshot.SerializeToString()).result is None


@pytest.fixture
def plain(corpus: Path) -> bytes:
    """The binary form of an unoptimized snapshot."""
    return capture(corpus / "jax" / "unoptimized_snapshots")


def check_model_fn(execution: Execution, corpus: Path) -> None:
    assert execution.module.name == "jit_model_fn"
    assert not execution.module.is_scheduled
    assert execution.result is None
    [arguments] = execution.arguments
    expected = arrays(corpus / "jax" / "unoptimized_snapshots", "inputs.npz")
    assert same([a.array for a in arguments], expected)


def test_an_unoptimized_snapshot(corpus: Path, plain: bytes) -> None:
    check_model_fn(parse_unoptimized_snapshot(plain), corpus)


def test_the_text_form(corpus: Path) -> None:
    text = capture(corpus / "jax" / "unoptimized_snapshots_text").decode()
    check_model_fn(parse_unoptimized_snapshot_text(text), corpus)
    with_news = text.replace("hlo_module {", "field_of_the_future { x: 1 }\nhlo_module {", 1)
    check_model_fn(parse_unoptimized_snapshot_text(with_news), corpus)


def large_form(plain: bytes) -> bytes:
    """What XLA writes for snapshots that would not fit into a proto."""
    message = message_class("HloUnoptimizedSnapshot").FromString(plain)
    data = b""
    for partition in message.partitions:
        for argument in partition.arguments:
            shape = argument.shape.SerializeToString()
            literal = len(shape).to_bytes(8, "little") + shape + np.array(argument.f32s, "<f4").tobytes()
            partition.arguments_descriptors.add(argument_size_bytes=len(literal))
            data += literal
        del partition.arguments[:]
    head = message.SerializeToString()
    return _varint(len(head)) + head + data


def _varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


def test_the_large_form(corpus: Path, plain: bytes) -> None:
    check_model_fn(parse_unoptimized_snapshot(large_form(plain)), corpus)


@pytest.mark.xla
def test_the_large_form_as_xla_writes_it(tmp_path: Path) -> None:
    program = (
        "import jax, numpy as np\n"
        "x = np.arange(12, dtype=np.float32).reshape(3, 4)\n"
        "i = np.array([1, 0, 2], np.int8)\n"
        "jax.jit(lambda x, i: (x[i], i))(x, i)\n"
    )
    flags = f"--xla_dump_to={tmp_path} --xla_dump_hlo_unoptimized_snapshots --xla_dump_hlo_as_proto"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=120)
    [module] = [m for m in open_dump(tmp_path).modules if m.name == "jit__lambda"]
    content = module.captures[0].source.read_bytes()
    assert content[0] != 0x0A
    [arguments] = parse_unoptimized_snapshot(content).arguments
    expected = [np.arange(12, dtype=np.float32).reshape(3, 4), np.array([1, 0, 2], np.int8)]
    assert same([a.array for a in arguments], expected)


@pytest.mark.parametrize("keep", [0, 1, 20, 0.3, 0.9, 0.999])
def test_truncated_captures_are_refused(corpus: Path, plain: bytes, keep: float) -> None:
    snapshot = capture(corpus / "jax" / "snapshots")
    for read, content in (
        (parse_snapshot, snapshot),
        (parse_unoptimized_snapshot, plain),
        (parse_unoptimized_snapshot, large_form(plain)),
    ):
        size = int(keep * len(content)) if isinstance(keep, float) else keep
        with pytest.raises(ProtoError, match=r"^x\.pb: ") as caught:
            read(content[:size], "x.pb")
        assert "\n" not in str(caught.value)


def test_garbage_is_refused(corpus: Path) -> None:
    module = (
        corpus / "jax" / "protos" / "module_0000.jit_table_lookup.before_optimizations.hlo.pb"
    ).read_bytes()
    for content in (b"\xff" * 64, b"text", module):
        with pytest.raises(ProtoError):
            parse_snapshot(content)
    with pytest.raises(ProtoError, match=r"^x\.txt:3: "):
        parse_unoptimized_snapshot_text('hlo_module {\n  name: "a"\n  computations: 3\n}\n', "x.txt")
    with pytest.raises(ProtoError, match="without a program"):
        parse_unoptimized_snapshot_text("")
