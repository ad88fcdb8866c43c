"""What `hlotool check` and `hlotool inspect` find, as plain records."""

from __future__ import annotations

import enum

from hlotool.checks.inspect_records import CompileTimeInfo, PeakInfo
from hlotool.errors import DumpError
from hlotool.facts.memory_kinds import Kind
from hlotool.judge.failures import error_record
from hlotool.system.records import ErrorRecord, Record, SourceRecord


class Severity(enum.Enum):
    """From gravest to least."""

    #: XLA rejects the program, or computes something else than it says.
    ERROR = "error"
    #: Legal, and very likely not what was meant.
    WARNING = "warning"
    #: Worth knowing.
    NOTE = "note"

    @property
    def rank(self) -> int:
        """0 for the gravest."""
        return list(Severity).index(self)


class Finding(Record, frozen=True, kw_only=True):
    """One finding.

    Attributes:
        rule: its id.
        severity: how grave.
        message: what is wrong, in one sentence.
        file: where the HLO stands.
        line: in that file, 0 when the finding is about the whole.
        module: of the dump.
        instruction: that is concerned, empty when the finding is about the whole.
        source: the instruction, and the line of the user's program.
        path: instructions on the way from the cause to the finding, in order.
        details: further lines: what differs from what, what is allowed.
        remedy: what to do.
    """

    rule: str
    severity: Severity
    message: str
    file: str = ""
    line: int = 0
    module: str = ""
    instruction: str = ""
    source: SourceRecord | None = None
    path: list[SourceRecord] = []
    details: list[str] = []
    remedy: str = ""


class FailedFile(Record, frozen=True, kw_only=True):
    """A file that could not be checked.

    Attributes:
        file: its path.
        module: of the dump.
        error: why.
    """

    file: str
    module: str
    error: ErrorRecord


def unreadable(path: str, error: DumpError) -> FailedFile:
    """What stands for a path under which there is no program."""
    return FailedFile(file=path, module="", error=error_record(error))


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


class ParameterInfo(Record, frozen=True, kw_only=True):
    """A parameter of the entry.

    Attributes:
        number: its position.
        name: of the user's program where the dump has it, else of the HLO.
        shape: with layout.
        bytes: of all its arrays.
        donated: a result takes over its memory.
    """

    number: int
    name: str
    shape: str
    bytes: int
    donated: bool = False


class ResultInfo(Record, frozen=True, kw_only=True):
    """A leaf of the entry's result.

    Attributes:
        index: where it stands in the result.
        shape: with layout.
        bytes: of the array.
        source: the instruction that makes it, and the line of the user's program.
    """

    index: list[int]
    shape: str
    bytes: int
    source: SourceRecord


class CostInfo(Record, frozen=True, kw_only=True):
    """What one execution takes.

    Attributes:
        flops: arithmetic operations, of integers too.
        transcendentals: evaluations of functions such as `exp`.
        bytes_accessed: read from memory and written to it.
        unknown: custom calls, and operations on arrays of unbounded size, of which nothing is counted.
    """

    flops: int
    transcendentals: int
    bytes_accessed: int
    unknown: int = 0


class MemoryInfo(Record, frozen=True, kw_only=True):
    """Bytes on one device.

    Attributes:
        arguments: of the entry.
        results: of the entry.
        constants: of all computations.
        peak: estimate of the most that is needed at once, all of these included.
        allocated: what XLA allocated, where the dump says it: the device's own memory.
        allocated_for: kinds of values, where the dump has the buffer assignment.
        at_peak: what is alive then, of the last stage that is looked at, if asked for.
    """

    arguments: int
    results: int
    constants: int
    peak: int
    allocated: int | None = None
    allocated_for: dict[Kind, int] = {}
    at_peak: PeakInfo | None = None


class TrafficInfo(Record, frozen=True, kw_only=True):
    """Instructions of one kind that move data off the device, or that XLA knows nothing of.

    Attributes:
        name: opcode, or target of a custom call.
        count: of instructions.
        bytes: of their operands and results, each instruction executed once.
    """

    name: str
    count: int
    bytes: int


class LoopInfo(Record, frozen=True, kw_only=True):
    """A loop.

    Attributes:
        source: the instruction, and the line of the user's program.
        iterations: None where the text does not say.
    """

    source: SourceRecord
    iterations: int | None = None


class BusyInfo(Record, frozen=True, kw_only=True):
    """An instruction that much of the work is in.

    Attributes:
        source: the instruction, and the line of the user's program.
        flops: of one execution, functions such as `exp` included.
        bytes_accessed: of one execution.
    """

    source: SourceRecord
    flops: int
    bytes_accessed: int


class StageInfo(Record, frozen=True, kw_only=True):
    """The program at one point of its compilation.

    Attributes:
        label: of the stage.
        file: where it stands.
        name: of the HLO module.
        cut: of a text that ends too early, where it ends.
        scheduled: the order of the text is the order of execution.
        replicas: number of replicas it was compiled for.
        partitions: number of partitions it was compiled for.
        computations: how many there are.
        instructions: of all computations.
        fusions: how many of them are fusions.
        opcodes: how many instructions have each opcode, the most frequent first.
        parameters: of the entry.
        results: leaves of the entry's result.
        costs: as XLA counts them, with each loop executed once.
        costs_with_loops: the same with loops executed as often as the text says.
        memory: that one execution needs.
        busiest: instructions outside of fusions with the most work, the first with the most.
        loops: all of them.
        collectives: what devices exchange.
        host_transfers: what goes to the host or waits for it.
        custom_calls: by target.
    """

    label: str
    file: str
    name: str
    cut: str = ""
    scheduled: bool
    replicas: int = 1
    partitions: int = 1
    computations: int
    instructions: int
    fusions: int
    opcodes: dict[str, int]
    parameters: list[ParameterInfo] = []
    results: list[ResultInfo] = []
    costs: CostInfo
    costs_with_loops: CostInfo
    memory: MemoryInfo
    busiest: list[BusyInfo] = []
    loops: list[LoopInfo] = []
    collectives: list[TrafficInfo] = []
    host_transfers: list[TrafficInfo] = []
    custom_calls: list[TrafficInfo] = []


class ModuleInfo(Record, frozen=True, kw_only=True):
    """A module of a dump.

    Attributes:
        dump: path as given.
        name: of the dump's module.
        function: of the user's program.
        frontend: `jax`, `tensorflow`, `torch`, or empty.
        program: digest of the first stage without names and positions; empty when it cannot be read, and
            where there is no other module to distinguish it from.
        structure: digest of its opcodes and its graph alone; as for `program`.
        labels: of all stages, in the order of compilation.
        passes: how many of them lie between passes.
        captures: executions with arguments.
        stages: those that were looked at.
        failures: stages that could not be read.
        kernels: the last of these stages as generated kernels, if asked for.
        compile_time: where the time of its compilation went, if asked for.
    """

    dump: str
    name: str
    function: str
    frontend: str = ""
    program: str = ""
    structure: str = ""
    labels: list[str] = []
    passes: int = 0
    captures: int = 0
    stages: list[StageInfo] = []
    failures: list[FailedFile] = []
    kernels: KernelsInfo | None = None
    compile_time: CompileTimeInfo | None = None


class FunctionInfo(Record, frozen=True, kw_only=True):
    """A function of the user's program, with all its compilations.

    Attributes:
        function: its name.
        frontend: `jax`, `tensorflow`, `torch`, or empty.
        folder: path of its modules, as each run or process has its own.
        compilations: how often it was compiled.
        programs: how many of these programs are different.
        modules: positions among all modules.
    """

    function: str
    frontend: str
    folder: str
    compilations: int
    programs: int
    modules: list[int]
