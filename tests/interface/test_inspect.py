"""What a dump holds, for people: golden texts of 100 columns."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from hlotool.checks.inspect.programs import stage_info
from hlotool.checks.inspect.run import functions_of
from hlotool.checks.records import (
    FailedFile,
    FallbackInfo,
    KernelInfo,
    KernelsInfo,
    LaunchInfo,
    ModuleInfo,
    ResourceInfo,
)
from hlotool.interface.report.command_records import InspectRecord
from hlotool.interface.report.console import plain_text
from hlotool.interface.report.inspect import InspectReport
from hlotool.parser.reader import parse_module
from hlotool.system.records import ErrorRecord, SourceRecord

ALIAS = "input_output_alias={ {0}: (1, {}, may-alias) }"
BEFORE = """HloModule jit_step
ENTRY main {
  x = f32[64,32]{1,0} parameter(0), metadata={op_name="batch"}
  w = f32[32,16]{1,0} parameter(1), metadata={op_name="state['weights']"}
  d = f32[64,16]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={op_name="jit(step)/dot_general" source_file="model.py" source_line=7}
  e = f32[64,16]{1,0} tanh(d), metadata={op_name="jit(step)/tanh" source_file="model.py" source_line=8}
  z = f32[32,16]{1,0} negate(w)
  ROOT r = (f32[32,16]{1,0}, f32[64,16]{1,0}) tuple(z, e)
}
"""
AFTER = (
    f"HloModule jit_step, is_scheduled=true, {ALIAS}, num_partitions=2"
    + """
body {
  p = (s32[], f32[32,16]{1,0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = f32[32,16]{1,0} get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  n = f32[32,16]{1,0} negate(v)
  ROOT t = (s32[], f32[32,16]{1,0}) tuple(j, n)
}
condition {
  p = (s32[], f32[32,16]{1,0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  m = s32[] constant(3)
  ROOT c = pred[] compare(i, m), direction=LT
}
fused {
  d = f32[64,16]{1,0} parameter(0)
  ROOT e = f32[64,16]{1,0} tanh(d), metadata={op_name="jit(step)/tanh" source_file="model.py" source_line=8}
}
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main {
  x = f32[64,32]{1,0} parameter(0), metadata={op_name="batch"}
  w = f32[32,16]{1,0} parameter(1), metadata={op_name="state['weights']"}
  d = f32[64,16]{1,0} custom-call(x, w), custom_call_target="__cublas$gemm",
    metadata={op_name="jit(step)/dot_general" source_file="model.py" source_line=7}
  f = f32[64,16]{1,0} fusion(d), kind=kLoop, calls=fused
  g = f32[64,16]{1,0} all-reduce(f), replica_groups={{0,1}}, channel_id=1, to_apply=add
  zero = s32[] constant(0)
  t = (s32[], f32[32,16]{1,0}) tuple(zero, w)
  l = (s32[], f32[32,16]{1,0}) while(t), condition=condition, body=body
  z = f32[32,16]{1,0} get-tuple-element(l), index=1
  h = f32[64,16]{1,0:S(5)} copy(g)
  ROOT r = (f32[32,16]{1,0}, f32[64,16]{1,0:S(5)}) tuple(z, h)
}
"""
)


def module(name: str, *texts: str, function: str = "step", program: str = "p") -> ModuleInfo:
    labels = ["before_optimizations", "gpu_after_optimizations"][: len(texts)]
    files = [f"dump/{name}.{label}.txt" for label in labels]
    stages = [
        stage_info(parse_module(text), label, file, (20_000 if label.startswith("gpu") else None, {}))
        for text, label, file in zip(texts, labels, files)
    ]
    between = [f"{n:04d}.pipeline.after_a.before_b" for n in range(20)]
    return ModuleInfo(
        dump="dump",
        name=name,
        function=function,
        frontend="jax",
        program=program,
        labels=[labels[0], *between, *labels[1:]] if labels else [],
        passes=20,
        captures=2,
        stages=stages,
    )


ONE = module("module_0000.jit_step", BEFORE, AFTER)
BROKEN = msgspec.structs.replace(
    module("module_0003.jit_lost", function="lost"),
    failures=[
        FailedFile(
            file="dump/module_0003.jit_lost.before_optimizations.txt",
            module="module_0003.jit_lost",
            error=ErrorRecord(
                kind="HloSyntaxError",
                message="dump/module_0003.jit_lost.before_optimizations.txt:4:7: expected '=', found f32",
            ),
        )
    ],
)
SEVERAL = [
    module("module_0001.jit_init", BEFORE, function="init"),
    ONE,
    module("module_0002.jit_step", BEFORE, AFTER, program="q"),
    BROKEN,
    module("module_0004.jit_step", BEFORE),
]

KERNEL = KernelInfo(
    name="k0123",
    schedule="row reduction",
    blocks=64,
    threads=256,
    reads=["f32[64,16] %d"],
    writes=["f32[64] %sum"],
    bytes_read=4096,
    bytes_written=256,
    resources=ResourceInfo(registers=24, spill_stores=8, spill_loads=8, stack=0, shared=1024),
    source="KERNEL(k0123,\n    const float* RESTRICT p0,\n    float* RESTRICT out0) {\n  *out0 = *p0;\n}\n",
)
SOURCE = SourceRecord(
    instruction="sum", opcode="fusion", op_name="jit(step)/reduce_sum", file="model.py", file_line=9
)
KERNELS = KernelsInfo(
    label="gpu_after_optimizations",
    file="dump/module_0000.jit_step.gpu_after_optimizations.txt",
    architecture="sm_90",
    compiler="nvcc 13.0",
    launches=[
        LaunchInfo(source=SOURCE, computation="main", fused=["tanh", "reduce"], kernels=["k0123", "k0456"]),
        LaunchInfo(
            source=SourceRecord(instruction="other", opcode="dot"),
            computation="main",
            library="cuBLAS",
            kernels=["k0123"],
        ),
    ],
    kernels=[KERNEL, msgspec.structs.replace(KERNEL, name="k0456", resources=None, schedule="loop")],
    fallbacks=[
        FallbackInfo(
            source=SourceRecord(instruction="s", opcode="sort"), computation="main", bytes=12_000_000
        )
    ],
)


def record(modules: list[ModuleInfo], **fields: object) -> InspectRecord:
    return InspectRecord(
        versions={}, paths=["dump"], functions=functions_of(modules), modules=modules, seconds=0.5, **fields
    )  # type: ignore[arg-type]


RECORDS = {
    "one": record([ONE]),
    "several": record(SEVERAL),
    "kernels": record([msgspec.structs.replace(ONE, kernels=KERNELS)]),
}


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("amount", ["", "quiet", "verbose"])
def test_report(name: str, amount: str, golden: Callable[[str, str], None]) -> None:
    report = InspectReport(RECORDS[name], quiet=amount == "quiet", verbose=amount == "verbose")
    golden(f"report/inspect_{'_'.join(filter(None, (name, amount)))}.txt", plain_text(report, 100))


def test_kernels_without_a_compiler_and_programs_without_kernels() -> None:
    bare = msgspec.structs.replace(
        KERNELS,
        compiler="",
        note="not compiled: nothing here",
        launches=KERNELS.launches[1:],
        kernels=KERNELS.kernels[:1],
        fallbacks=[],
    )
    text = plain_text(InspectReport(record([msgspec.structs.replace(ONE, kernels=bare)]), quiet=True))
    assert "  1 launch of 1 kernel\n  not compiled: nothing here\n" in text
    error = KernelsInfo(
        label="",
        file="f",
        architecture="sm_90",
        error=ErrorRecord(kind="VerificationError", message="broken rule"),
    )
    text = plain_text(InspectReport(record([msgspec.structs.replace(ONE, kernels=error)]), quiet=True))
    assert "kernels of f\n  broken rule\n" in text


def test_thousands_of_functions_stay_readable() -> None:
    modules = [module(f"module_{n:04d}.jit_f{n}", BEFORE, function=f"f{n}") for n in range(200)]
    assert len(plain_text(InspectReport(record(modules)), 100).splitlines()) < 50
    assert len(plain_text(InspectReport(record(modules), quiet=True), 100).splitlines()) < 50


def test_many_broken_files_are_counted() -> None:
    lines = plain_text(InspectReport(record([BROKEN] * 100)), 100).splitlines()
    assert "! 60 more files not read (--verbose lists them)" in lines
    assert lines[-1].startswith("1 function, 100 modules, 0 stages, 100 files could not be read")
