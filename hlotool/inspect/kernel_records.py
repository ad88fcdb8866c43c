"""What `hlotool inspect --kernels` finds, as plain records."""

from __future__ import annotations

from hlotool.findings.records import ErrorRecord, Record, SourceRecord


class ResourceInfo(Record, frozen=True, kw_only=True):
    """What a kernel takes of the machine, as the compiler says it.

    Attributes:
        registers: of a thread.
        spill_stores: bytes of registers that a thread writes to memory for want of room.
        spill_loads: bytes that it reads back.
        stack: bytes of a thread's stack frame.
        shared: bytes of shared memory of a block.
    """

    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    shared: int


class KernelInfo(Record, frozen=True, kw_only=True):
    """A generated kernel.

    Attributes:
        name: made from the source; equal kernels have equal names.
        schedule: what its threads share out, in a few words.
        blocks: of its grid.
        threads: of a block.
        reads: what its pointers p0, p1, … point to: instructions, or memory between two passes.
        writes: what out0, out1, … point to.
        bytes_read: size of what it reads.
        bytes_written: size of what it writes; of an update in place the update's.
        resources: None where nothing compiled it.
        source: CUDA C++, with comments that name the instructions.
    """

    name: str
    schedule: str
    blocks: int
    threads: int
    reads: list[str]
    writes: list[str]
    bytes_read: int
    bytes_written: int
    resources: ResourceInfo | None = None
    source: str


class LaunchInfo(Record, frozen=True, kw_only=True):
    """An instruction that runs as kernels.

    Attributes:
        source: the instruction, and the line of the user's program.
        computation: that it stands in.
        fused: opcodes of what is fused into it, in order; empty for an operation by itself.
        library: what computes it instead of these kernels where it is installed; empty for nothing.
        kernels: names, in the order of execution.
    """

    source: SourceRecord
    computation: str
    fused: list[str] = []
    library: str = ""
    kernels: list[str]


class FallbackInfo(Record, frozen=True, kw_only=True):
    """An instruction that the host executes.

    Attributes:
        source: the instruction, and the line of the user's program.
        computation: that it stands in.
        bytes: of its operands and its result.
    """

    source: SourceRecord
    computation: str
    bytes: int


class KernelsInfo(Record, frozen=True, kw_only=True):
    """A program as kernels.

    Attributes:
        label: of the stage.
        file: where it stands.
        architecture: that it was compiled for.
        compiler: name and version, empty where there is none.
        note: why nothing was compiled.
        launches: in the order of the text; those in a loop's body stand there once.
        kernels: each once.
        fallbacks: what the host executes.
        error: why the program cannot be made into kernels.
    """

    label: str
    file: str
    architecture: str
    compiler: str = ""
    note: str = ""
    launches: list[LaunchInfo] = []
    kernels: list[KernelInfo] = []
    fallbacks: list[FallbackInfo] = []
    error: ErrorRecord | None = None
