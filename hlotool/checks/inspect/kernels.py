"""The kernels that a program is made into, without a GPU and without running it.

Their source is listed for people: one statement a line, indented by its braces, comments in a column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from hlotool.backends.base import Value
from hlotool.backends.cuda.backend import compile_kernels
from hlotool.backends.cuda.codegen.expansion import Precision
from hlotool.backends.cuda.codegen.partition import KernelProgram
from hlotool.backends.cuda.codegen.schedules import THREADS, Buffer, Kernel, Part
from hlotool.backends.cuda.cublas import product_of
from hlotool.backends.cuda.kernel_backend import fused
from hlotool.backends.cuda.machine import KernelLowering, SharedMemory
from hlotool.backends.cuda.toolchain import find_compiler
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.plan import Plan, Run
from hlotool.backends.numpy.registry import Kernel as Step
from hlotool.checks.records import FallbackInfo, KernelInfo, KernelsInfo, LaunchInfo, ResourceInfo
from hlotool.errors import BackendFailed, BackendUnavailable, HlotoolError
from hlotool.facts.buffers import table_bytes, total_bytes
from hlotool.facts.dataflow import source_of
from hlotool.facts.flow import CallGraph
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ArrayShape
from hlotool.ir.verifier import verify_or_raise
from hlotool.judge.failures import error_record


def kernels_of(module: Module, label: str, file: str, architecture: str) -> KernelsInfo:
    """Fuse `module`, generate its kernels and, where there is a compiler, compile them.

    Args:
        module: a stage of a dump.
        label: of the stage.
        file: where it stands.
        architecture: for which GPUs, such as `sm_90`.
    """
    try:
        verify_or_raise(module)
        program = fused(module)
        lowering = listed(program)
    except HlotoolError as error:
        return KernelsInfo(label=label, file=file, architecture=architecture, error=error_record(error))
    homes = CallGraph(program).home
    resources, compiler, note = _compiled(lowering.kernels, architecture)
    return KernelsInfo(
        label=label,
        file=file,
        architecture=architecture,
        compiler=compiler,
        note=note,
        launches=[_launch_info(program, homes, *launched) for launched in lowering.launched],
        kernels=[_kernel_info(kernel, resources.get(kernel.name)) for kernel in _distinct(lowering.kernels)],
        fallbacks=[_fallback_info(program, homes, instruction) for instruction in lowering.on_host],
    )


def listed(program: Module) -> Listing:
    """The kernels of a program as it is, without running any.

    Raises:
        HlotoolError: neither a kernel nor the host executes it.
    """
    lowering = Listing(program, _Nothing())
    lowering.plan(program.entry)
    return lowering


class Listing(KernelLowering):
    """Keeps what becomes of each instruction.

    Attributes:
        launched: instructions with their kernels, where no library is called.
        on_host: instructions that the host executes.
    """

    def __init__(self, module: Module, loading: _Nothing) -> None:
        super().__init__(module, loading, grid=DeviceGrid(module.replica_count, module.num_partitions))
        self.launched = loading.launched
        self.on_host: list[Instruction] = []

    def _fall_back(self, instruction: Instruction) -> Step:
        self.on_host.append(instruction)
        return super()._fall_back(instruction)


class _Nothing(SharedMemory):
    """A machine that runs nothing."""

    precision = Precision.HLO

    def __init__(self) -> None:
        self.launched: list[tuple[Instruction, KernelProgram]] = []

    def build(self, kernels: Iterable[Kernel]) -> None:
        pass

    def launch(self, instruction: Instruction, program: KernelProgram, positions: Sequence[int]) -> Step:
        self.launched.append((instruction, program))
        return _never

    def library_call(self, instruction: Instruction, host: Lowering) -> tuple[Step, Sequence[Kernel]] | None:
        return None

    def run(self, plan: Plan, arguments: Sequence[Any], run: Run) -> Value:
        raise AssertionError("a listed program is not run")


def _never(*values: object) -> Value:
    raise AssertionError("a listed program is not run")


def _compiled(kernels: Sequence[Kernel], architecture: str) -> tuple[dict[str, ResourceInfo], str, str]:
    """Resources of kernels by name, and what compiled them; or why nothing did."""
    try:
        compiler = find_compiler(architecture=architecture)
        found = compile_kernels(kernels, architecture, compiler)
    except (BackendUnavailable, BackendFailed) as error:
        return {}, "", f"not compiled: {error_record(error).message}"
    resources = {
        name: msgspec.convert(made.resources, ResourceInfo, from_attributes=True)
        for name, made in found.items()
    }
    return resources, compiler.version, ""


def _distinct(kernels: Iterable[Kernel]) -> list[Kernel]:
    return list({kernel.name: kernel for kernel in kernels}.values())


def _launch_info(
    module: Module, homes: dict[Instruction, Computation], instruction: Instruction, made: KernelProgram
) -> LaunchInfo:
    return LaunchInfo(
        source=source_of(module, [instruction]),
        computation=homes[instruction].name,
        fused=list(_fused_opcodes(instruction)),
        library="" if product_of(instruction) is None else "cuBLAS",
        kernels=[kernel.name for kernel in made.kernels],
    )


def _fused_opcodes(instruction: Instruction) -> Iterator[str]:
    if instruction.opcode == "fusion":
        inside = (i.opcode for computation in instruction.called for i in computation.instructions)
        yield from (opcode for opcode in inside if opcode not in ("parameter", "constant"))


def _fallback_info(
    module: Module, homes: dict[Instruction, Computation], instruction: Instruction
) -> FallbackInfo:
    moved = total_bytes(instruction.shape) + sum(total_bytes(o.shape) for o in instruction.operands)
    source = source_of(module, [instruction])
    return FallbackInfo(source=source, computation=homes[instruction].name, bytes=moved)


def _kernel_info(kernel: Kernel, resources: ResourceInfo | None) -> KernelInfo:
    return KernelInfo(
        name=kernel.name,
        schedule=kernel.schedule,
        blocks=kernel.grid,
        threads=THREADS,
        reads=[_buffer_text(buffer) for buffer in kernel.inputs],
        writes=[_buffer_text(buffer) for buffer in kernel.outputs],
        bytes_read=sum(map(_buffer_bytes, kernel.inputs)),
        bytes_written=sum(_buffer_bytes(_written(buffer, kernel)) for buffer in kernel.outputs),
        resources=resources,
        source=indented(kernel.listing),
    )


def _written(buffer: Buffer, kernel: Kernel) -> Buffer:
    """In place, the update is written; not what stays."""
    if kernel.in_place is None or isinstance(buffer, Part) or buffer.opcode != "dynamic-update-slice":
        return buffer
    return buffer.operands[1]


def _buffer_text(buffer: Buffer) -> str:
    if isinstance(buffer, Part):
        return f"{buffer.kind}[{buffer.size}] between passes"
    shape = buffer.shape.logical_text() if isinstance(buffer.shape, ArrayShape) else str(buffer.shape)
    return f"{shape} %{buffer.name}"


def _buffer_bytes(buffer: Buffer) -> int:
    if isinstance(buffer, Part):
        return buffer.size * max(1, buffer.kind.bits // 8)
    return table_bytes(buffer.shape)


# Generated source for people: one statement a line, indented by its braces, comments in a column.

#: What the generator writes behind a statement: the instructions whose value it computes or copies.
_COMMENTS = re.compile(r"(?:  /\* %[^*]* \*/)+$")
_COMMENT = re.compile(r"/\* (%[^*]*) \*/")
_BRACE = re.compile(r"[{}]")
#: Column of comments, where the statement leaves room.
_COLUMN = 56


def indented(source: str) -> str:
    """`source` with two blanks for each open brace and its parameters on lines of their own."""
    lines: list[str] = []
    depth = 0
    for line in _split_head(source.splitlines()):
        opened, closed = _balance(line)
        lines.append(_with_comment("  " * (depth - closed) + line))
        depth += opened - closed
    return "\n".join(lines) + "\n"


def _split_head(lines: Iterable[str]) -> Iterable[str]:
    """`KERNEL(name, type p0, …) {` over several lines; other lines as they are."""
    for line in lines:
        if not line.startswith("KERNEL("):
            yield line
            continue
        head, *parameters = line.split(", ")
        yield head + ("," if parameters else "")
        yield from (f"    {parameter}," for parameter in parameters[:-1])
        yield from (f"    {parameter}" for parameter in parameters[-1:])


def _balance(line: str) -> tuple[int, int]:
    """How many braces `line` leaves open, and how many of lines before it closes."""
    opened = closed = 0
    for brace in _BRACE.findall(line):
        if brace == "{":
            opened += 1
        elif opened:
            opened -= 1
        else:
            closed += 1
    return opened, closed


def _with_comment(line: str) -> str:
    found = _COMMENTS.search(line)
    if found is None:
        return line
    return f"{line[: found.start()]:<{_COLUMN}}  // {', '.join(_COMMENT.findall(found[0]))}"
