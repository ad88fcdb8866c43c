"""Elided constants: filled in with certainty, or refused with the remedy."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs
from support.dumps import Write

from hlotool.errors import ElidedConstant
from hlotool.ir.module import Module
from hlotool.parser.proto.module import parse_module_proto
from hlotool.sources.directory import open_dump
from hlotool.sources.elided import elided_constants
from hlotool.sources.loading import load_stage
from hlotool.sources.records import DumpModule, Stage
from hlotool.sources.stages import read_stage


def big_constants(module: Module) -> dict[tuple[str, str], bytes]:
    """Bytes of all constants that a text would elide, by names of computation and instruction."""
    return {
        (computation.name, instruction.name): instruction.literal.array.tobytes()
        for computation in module.computations
        for instruction in computation.instructions
        if instruction.opcode == "constant" and instruction.literal and instruction.literal.array.size > 10
    }


def load(folder: Path, which: str = "after", *, may_compile: bool = False) -> Module:
    """One stage of the only module of a dump."""
    [owner] = open_dump(folder).modules
    stage = owner.before if which == "before" else owner.after
    assert stage is not None
    return load_stage(owner, stage, may_compile=may_compile)


# From the corpus


@pytest.mark.parametrize("which", ["before", "after"])
def test_tables_come_from_the_stablehlo_of_jax(corpus: Path, which: str) -> None:
    module = load(corpus / "jax" / "table_lookup_elided", which)
    [owner] = open_dump(corpus / "jax" / "protos").modules
    stage = owner.before if which == "before" else owner.after
    assert stage is not None
    truth = big_constants(read_stage(stage))
    assert len(truth) == 2
    assert big_constants(module) == truth


@pytest.mark.parametrize("which", ["before", "after"])
def test_tables_come_from_the_proto_beside_the_text(corpus: Path, which: str) -> None:
    folder = corpus / "jax" / "protos_beside_text"
    [owner] = open_dump(folder).modules
    stage = owner.before if which == "before" else owner.after
    assert stage is not None
    assert stage.proto is not None
    assert elided_constants(read_stage(stage))
    truth = parse_module_proto(stage.proto.read_bytes())
    assert big_constants(load(folder, which)) == big_constants(truth)


@pytest.mark.parametrize("which", ["before", "after"])
def test_what_is_nowhere_is_refused_with_the_remedy(corpus: Path, which: str) -> None:
    with pytest.raises(ElidedConstant) as caught:
        load(corpus / "jax" / "table_lookup_elided_for_good", which, may_compile=True)
    message = str(caught.value)
    assert "constant constant.5" in message or "constant constant.4" in message
    assert "--xla_dump_large_constants" in message
    assert caught.value.location.line > 20
    assert "\n" not in message


# By name


def program(*lines: str, header: str = "") -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"HloModule jit_f{header}\n\nENTRY %main {{\n{body}\n}}\n"


def numbers(count: int, start: int = 0) -> str:
    return ", ".join(map(str, range(start, start + count)))


def matrix(rows: int, columns: int) -> str:
    cells = (f"{{{numbers(columns, row * columns)}}}" for row in range(rows))
    return f"{{{', '.join(cells)}}}"


def vector_before(value: str = f"{{{numbers(12)}}}", name: str = "constant.7") -> str:
    return program(
        f"%{name} = s32[12]{{0}} constant({value})",
        "%constant.8 = s32[] constant(3)",
        f"ROOT %r = s32[12]{{0}} negate(%{name})",
    )


def after(root: str = "constant.7", shape: str = "s32[12]{0}", small: str = "3") -> str:
    return program(
        f"%{root} = {shape} constant({{...}})",
        f"%constant.8 = s32[] constant({small})",
        f"ROOT %r = {shape} negate(%{root})",
    )


def dump_of(write: Write, before: str, optimized: str, platform: str = "cpu") -> Path:
    return write(
        ("module_0001.jit_f.before_optimizations.txt", before),
        (f"module_0001.jit_f.{platform}_after_optimizations.txt", optimized),
    )


def test_a_constant_that_keeps_its_name_keeps_its_value(write: Write) -> None:
    module = load(dump_of(write, vector_before(), after()))
    [(_, value)] = big_constants(module).items()
    assert value == np.arange(12, dtype=np.int32).tobytes()


def test_a_changed_layout_is_the_same_value(write: Write) -> None:
    before = program(
        f"%constant.7 = s32[3,4]{{1,0}} constant({matrix(3, 4)})",
        "ROOT %r = s32[3,4]{1,0} negate(%constant.7)",
    )
    module = load(dump_of(write, before, after(shape="s32[3,4]{0,1}")))
    [constant] = [i for i in module.instructions() if i.name == "constant.7"]
    assert constant.literal is not None
    assert constant.literal.array.tolist() == np.arange(12).reshape(3, 4).tolist()
    assert str(constant.literal.shape) == "s32[3,4]{0,1}"


@pytest.mark.parametrize(
    ("before", "optimized"),
    [
        pytest.param(vector_before(), after("constant.9"), id="the only one of its shape, but renamed"),
        pytest.param(vector_before(), after(shape="s32[3,4]{1,0}"), id="other shape"),
        pytest.param(vector_before(), after(shape="u32[12]{0}"), id="other type"),
        pytest.param(vector_before("{...}"), after(), id="elided before as well"),
        pytest.param(vector_before(), after(small="4"), id="names have been given anew"),
        pytest.param(
            vector_before().replace("HloModule jit_f", "HloModule jit_f, num_partitions=2"),
            after(),
            id="partitioned",
        ),
        pytest.param(
            vector_before().replace(
                "HloModule jit_f",
                'HloModule jit_f, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["x"=4]>}}',
            ),
            after(),
            id="partitioned by Shardy",
        ),
    ],
)
def test_a_value_that_is_not_certain_is_refused(write: Write, before: str, optimized: str) -> None:
    with pytest.raises(ElidedConstant, match=r"constant\.[79]"):
        load(dump_of(write, before, optimized))


@pytest.mark.parametrize(
    ("platform", "rows", "columns", "is_certain"),
    [
        ("cpu", 4, 4, True),
        ("sm_9.0_gpu", 4, 4, False),
        ("gfx942_gpu", 4, 4, False),
        ("sm_9.0_gpu", 3, 4, True),
        ("sm_9.0_gpu", 1, 12, True),
    ],
)
def test_gpu_may_transpose_a_square_constant_in_place(
    write: Write, platform: str, rows: int, columns: int, is_certain: bool
) -> None:
    shape = f"s32[{rows},{columns}]{{1,0}}"
    before = program(
        f"%constant.7 = {shape} constant({matrix(rows, columns)})", f"ROOT %r = {shape} negate(%constant.7)"
    )
    folder = dump_of(write, before, after(shape=shape), platform)
    if is_certain:
        assert len(big_constants(load(folder))) == 1
    else:
        with pytest.raises(ElidedConstant):
            load(folder)


def test_one_file_of_the_dump_is_enough(write: Write) -> None:
    folder = dump_of(write, vector_before(), after())
    module = load(folder / "module_0001.jit_f.cpu_after_optimizations.txt")
    assert len(big_constants(module)) == 1


# From StableHLO


def mlir(*lines: str) -> str:
    body = "\n".join(f"    {line} loc(#loc)" for line in lines)
    return (
        f"module @jit_f {{\n  func.func public @main(%arg0: tensor<12xi32>) -> tensor<12xi32> {{\n{body}\n"
        '    return %r : tensor<12xi32> loc(#loc)\n  } loc(#loc)\n} loc(#loc)\n#loc = loc("op")\n'
    )


def user(opcode: str, constant: str, place: str = "op") -> str:
    return f's32[12]{{0}} {opcode}(%x, %{constant}), metadata={{op_name="{place}"}}'


FIRST = f"%c = stablehlo.constant dense<[{numbers(12)}]> : tensor<12xi32>"
SECOND = f"%d = stablehlo.constant dense<[{numbers(12, 50)}]> : tensor<12xi32>"
ADD = "%a = stablehlo.add %arg0, %c : tensor<12xi32>"
MULTIPLY = "%r = stablehlo.multiply %a, %d : tensor<12xi32>"
SUM = "%r = stablehlo.add %a, %d : tensor<12xi32>"
PARAMETER = "%x = s32[12]{0} parameter(0)"
ELIDED = ("%k.1 = s32[12]{0} constant({...})", "%k.2 = s32[12]{0} constant({...})")


def before_with(write: Write, stablehlo: str, *lines: str) -> Path:
    return write(
        ("module_0001.jit_f.before_optimizations.txt", program(*lines)),
        ("module_0001.jit_f/module.mlir", stablehlo),
    )


def test_the_users_tell_constants_of_one_shape_apart(write: Write) -> None:
    folder = before_with(
        write,
        mlir(FIRST, SECOND, ADD, MULTIPLY),
        PARAMETER,
        *ELIDED,
        f"%m = {user('multiply', 'k.1')}",
        f"ROOT %r = {user('add', 'k.2')}",
    )
    values = big_constants(load(folder, "before"))
    assert values["main", "k.1"] == np.arange(50, 62, dtype=np.int32).tobytes()
    assert values["main", "k.2"] == np.arange(12, dtype=np.int32).tobytes()


def test_a_folded_operation_is_computed(write: Write) -> None:
    folded = "%e = stablehlo.multiply %c, %d : tensor<12xi32>"
    folder = before_with(
        write,
        mlir(FIRST, SECOND, folded, "%r = stablehlo.add %arg0, %e : tensor<12xi32>"),
        PARAMETER,
        ELIDED[0],
        f"ROOT %r = {user('add', 'k.1')}",
    )
    expected = np.arange(12, dtype=np.int32) * np.arange(50, 62, dtype=np.int32)
    assert big_constants(load(folder, "before"))["main", "k.1"] == expected.tobytes()


@pytest.mark.parametrize(
    ("stablehlo", "lines"),
    [
        pytest.param(
            mlir(FIRST, SECOND, ADD, SUM),
            (PARAMETER, *ELIDED, f"%m = {user('add', 'k.1')}", f"ROOT %r = {user('add', 'k.2')}"),
            id="same users",
        ),
        pytest.param(
            mlir(
                FIRST,
                "%a = stablehlo.popcnt %c : tensor<12xi32>",
                "%r = stablehlo.add %arg0, %a : tensor<12xi32>",
            ),
            (PARAMETER, ELIDED[0], f"ROOT %r = {user('add', 'k.1')}"),
            id="folded by an operation that is not computed here",
        ),
        pytest.param(
            mlir(FIRST, "%r = stablehlo.add %arg0, %c : tensor<12xi32>"),
            (PARAMETER, ELIDED[0], f"ROOT %r = {user('subtract', 'k.1')}"),
            id="another user",
        ),
        pytest.param(
            mlir(FIRST, "%r = stablehlo.add %arg0, %c : tensor<12xi32>"),
            (PARAMETER, ELIDED[0], f"ROOT %r = {user('add', 'k.1', 'elsewhere')}"),
            id="another place",
        ),
        pytest.param(
            mlir(FIRST, "%r = stablehlo.add %arg0, %c : tensor<12xi32>"),
            (PARAMETER, *ELIDED, f"%m = {user('add', 'k.1')}", f"ROOT %r = {user('add', 'k.2')}"),
            id="two constants claim one",
        ),
        pytest.param(
            mlir(
                "%c = stablehlo.constant dense<[1, 2]> : tensor<12xi32>",
                "%r = stablehlo.add %arg0, %c : tensor<12xi32>",
            ),
            (PARAMETER, ELIDED[0], f"ROOT %r = {user('add', 'k.1')}"),
            id="malformed MLIR",
        ),
    ],
)
def test_ambiguous_stablehlo_is_refused(write: Write, stablehlo: str, lines: tuple[str, ...]) -> None:
    with pytest.raises(ElidedConstant):
        load(before_with(write, stablehlo, *lines), "before")


# By compiling again: the truth is what XLA itself dumps with large constants.

_PROGRAMS = """
import jax, jax.numpy as jnp, numpy as np
rng = np.random.default_rng(0)
W = [rng.normal(size=(12, 12)).astype(np.float32) for _ in range(3)]
B = [rng.normal(size=(12,)).astype(np.float32) for _ in range(3)]
def layers(x):
    for w, b in zip(W, B):
        x = jnp.tanh(x @ w + b)
    return x
def scanned(x):
    return jax.lax.scan(lambda c, t: (jnp.cos(c @ t), c.sum()), x, np.stack(W))
def sharded(x):
    from jax.sharding import AxisType, NamedSharding, PartitionSpec
    mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))
    rows = NamedSharding(mesh, PartitionSpec("x"))
    return jax.lax.with_sharding_constraint(x @ W[0], rows) + B[0]
for f in (layers, scanned, sharded):
    jax.jit(f)(np.ones((4, 12), np.float32))
"""


@pytest.fixture(scope="module")
def dumped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, DumpModule]:
    """Three programs, as text with elided constants and as protos; the protos are the truth."""
    folder = tmp_path_factory.mktemp("dump")
    flags = f"--xla_dump_to={folder} --xla_dump_hlo_as_text --xla_dump_hlo_as_proto"
    flags += " --xla_force_host_platform_device_count=2 --xla_dump_hlo_pass_re=.*"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", _PROGRAMS], env=environment, check=True, timeout=120)
    return {module.name: module for module in open_dump(folder).modules}


def without_proto(stage: Stage) -> Stage:
    return structs.replace(stage, proto=None)


@pytest.mark.xla
@pytest.mark.parametrize(
    "name",
    [
        "jit_layers",
        pytest.param("jit_scanned", marks=pytest.mark.slow),
        pytest.param("jit_sharded", marks=pytest.mark.slow),
    ],
)
def test_compiling_again_gives_the_true_values(dumped: dict[str, DumpModule], name: str) -> None:
    owner = dumped[name]
    blind = replace(owner, stages=tuple(map(without_proto, owner.stages)))
    checked = 0
    pairs = list(zip(owner.stages, blind.stages, strict=True))
    for whole, stage in (*pairs[::9], pairs[-1]):
        assert whole.proto is not None
        truth = big_constants(parse_module_proto(whole.proto.read_bytes()))
        assert big_constants(load_stage(blind, stage)) == truth
        checked += len(truth)
    assert checked >= 5


@pytest.mark.xla
def test_without_compiling_values_are_true_or_refused(dumped: dict[str, DumpModule]) -> None:
    found = 0
    for owner in dumped.values():
        blind = replace(owner, stages=tuple(map(without_proto, owner.stages)))
        for whole, stage in zip(owner.stages, blind.stages, strict=True):
            assert whole.proto is not None
            truth = big_constants(parse_module_proto(whole.proto.read_bytes()))
            try:
                values = big_constants(load_stage(blind, stage, may_compile=False))
            except ElidedConstant:
                continue
            assert values == truth
            found += 1
    assert found
