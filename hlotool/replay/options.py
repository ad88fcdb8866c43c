"""What a user can ask of a replay."""

from __future__ import annotations

from hlotool.findings.records import Record
from hlotool.ir.devices import DeviceGrid
from hlotool.workers.cores import worker_count

#: What a worker imports before its first module.
PRELOAD = (
    "hlotool.replay.run",
    "hlotool.parse.reader",
    "hlotool.values.generate",
    "hlotool.backends.numpy",
)


class ReplayOptions(Record, frozen=True, kw_only=True):
    """Options that decide about the result of a module.

    Attributes:
        reference: backend of the reference side.
        backend: backend of the tested side.
        stages: shell patterns of stage labels, the reference first; without any, the program before
            optimizations against the one after them.
        inputs: file, folder or script of inputs; None for captured or generated ones.
        outputs: file or folder of what the program really returned.
        seed: of generated inputs.
        input_range: bounds of generated inputs, None for what suits each parameter.
        rtol: relative tolerance that the user set.
        atol: absolute tolerance that the user set.
        either: one of the two is enough, as `run_hlo_module` compares.
        output_rtol: those of single outputs, by the name that reports give these: `out[1]`; one for `out[1]`
            is also one for `out[1][0]`.
        output_atol: likewise.
        compare_with: `SCRIPT.py:FUNCTION` of the user, which compares outputs before anything else does.
        save_outputs: folder that gets the compared arrays.
        save_values: folder that gets the values of instructions.
        values: regular expression of the instructions' names; all where it is empty.
        first_divergence: look for the instruction at which a differing program parts from the reference; None
            for: where that is cheap.
        fail_on: what else is a finding: `nan` and `inf` in a result, even where both sides agree, and what is
            `unstable`, `unsupported` or `not-compared`.
        coverage: look at what the inputs exercise, and list all decisions; None for: look where it is cheap.
        thorough: explain every output that is wrong, not only the worst few; and run all further sets.
        exact: programs that are other functions of real numbers are a mismatch, however close their values
            are, also where every bit is the same.
        budget: what judging one comparison may take, and what further sets may: seconds (`30`), or a multiple
            of the work of the runs that are compared (`5x`), which is the same on every machine; None for a
            share of the time limit, and for half of the work of the module without further sets.
        elided: what becomes of constants whose values are not in the dump: `refuse`, or `generate`.
        opaque: custom calls that cannot be executed get stand-ins, the same on both sides.
        replicas: that programs are for; 0 for what they say themselves.
        partitions: that programs are for; likewise.
        compare: backends of which the first is the reference and every other one is tested, each by itself;
            without any, `reference` and `backend` are.
        further_sets: whether generated inputs are followed by sets that reach more of the program.
        scale: what becomes of programs that are too large to be compared here: `never` or `auto`, new
            sizes by the old ones (`4096=7,512=3`), or the memory to fit (`8G`).
    """

    reference: str = "numpy"
    backend: str = "numpy"
    stages: tuple[str, ...] = ()
    inputs: str | None = None
    outputs: str | None = None
    seed: int = 0
    input_range: tuple[float, float] | None = None
    rtol: float | None = None
    atol: float | None = None
    either: bool = False
    output_rtol: tuple[tuple[str, float], ...] = ()
    output_atol: tuple[tuple[str, float], ...] = ()
    compare_with: str | None = None
    save_outputs: str | None = None
    save_values: str | None = None
    values: str = ""
    first_divergence: bool | None = None
    fail_on: tuple[str, ...] = ()
    coverage: bool | None = None
    thorough: bool = False
    exact: bool = False
    budget: str | None = None
    elided: str = "refuse"
    opaque: bool = False
    replicas: int = 0
    partitions: int = 0
    compare: tuple[str, ...] = ()
    further_sets: bool = True
    scale: str = "auto"

    @property
    def devices(self) -> DeviceGrid | None:
        """The devices that the user says programs are for; None for what they say themselves."""
        if not self.replicas and not self.partitions:
            return None
        return DeviceGrid(self.replicas or 1, self.partitions or 1)

    @property
    def elided_seed(self) -> int | None:
        """The seed of values for elided constants; None where these are refused."""
        return self.seed if self.elided == "generate" else None

    @property
    def tested_backends(self) -> tuple[str, ...]:
        """What runs the tested side, one after the other."""
        return self.compare[1:] or (self.backend,)

    @property
    def backends(self) -> tuple[str, ...]:
        """All of them, each once, that of the reference first."""
        return tuple(dict.fromkeys((self.reference, *self.tested_backends)))

    @property
    def one_of_several(self) -> str:
        """The tested backend where rows of several stand side by side; empty where it is the only one."""
        return self.backend if self.compare else ""


class RunOptions(ReplayOptions, frozen=True, kw_only=True):
    """All options of `hlotool run` that decide about its results.

    Attributes:
        timeout: seconds per module.
        memory_limit: bytes of address space per worker process, 0 for no limit; None for a share of what
            is free when a module begins.
        jobs: worker processes, 0 for as many as suit the machine.
        only: regular expression that chose modules.
        shard: which part of the modules, as `2/8`; None for all.
        sample: how many of the modules, spread over functions and sizes; 0 for all.
        max_failures: after so many modules that fail no further ones are begun; 0 for no such bound.
    """

    timeout: float = 300.0
    memory_limit: int | None = None
    jobs: int = 0
    only: str | None = None
    shard: str | None = None
    sample: int = 0
    max_failures: int = 0

    @property
    def shard_number(self) -> tuple[int, int]:
        """Which shard, from 1, and of how many."""
        number, _, count = (self.shard or "1/1").partition("/")
        return int(number), int(count)

    @property
    def workers(self) -> int:
        """How many worker processes to start at most."""
        return worker_count(self.jobs)


def budget_limits(budget: str, work: int) -> tuple[float, float]:
    """What a budget allows: units of work and seconds, one of which is infinite.

    Args:
        budget: `30` for seconds, `5x` for a multiple of `work`.
        work: units that the runs in question were.

    Raises:
        ValueError: it is neither.
    """
    number = float(budget.removesuffix("x"))
    if not 0 <= number < float("inf"):
        raise ValueError(f"{budget!r} is no budget")
    return (number * work, float("inf")) if budget.endswith("x") else (float("inf"), number)
