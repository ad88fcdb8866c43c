"""`run_hlo_module`: XLA's command line, hlotool's reference and verdict.

Flags, what goes to stdout and stderr, and the exit status are those of XLA's tool. Without error bounds the
verdict decides, which tells rounding from faults; with one of them, an element is wrong only if it is beyond
both, and the one that was not given is 1e-3, as there.

XLA: xla/tools/run_hlo_module_main.cc.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hlotool.errors import HlotoolError, UsageError
from hlotool.lab.xla_tools.flags import CommandLine, Flags, parse_command_line

if TYPE_CHECKING:
    from hlotool.lab.xla_tools.flags import Isolated, Tested
    from hlotool.lab.xla_tools.iteration import Ran, Run
    from hlotool.sources.records import DumpModule
    from hlotool.system.pool import Pool

#: Platforms by the names that XLA gives them, in lower case.
_PLATFORMS = {
    "cpu": "xla",
    "host": "xla",
    "gpu": "xla:gpu",
    "cuda": "xla:gpu",
    "rocm": "xla:gpu",
    "tpu": "xla:tpu",
    "interpreter": "numpy",
    "default": "numpy",
}
#: Seed of the first iteration.
_SEED = 42
#: Bounds of XLA's tool.
_BOUND = 1e-3
#: What the shell gets after -1.
_FAILED = 255

_USAGE = """\
usage: run_hlo_module --platform=PLATFORM [--reference_platform=PLATFORM] [flags] FILE ...

Run HLO programs on a platform and compare with a reference, with the flags of XLA's tool of this name:
  --platform --reference_platform --input_format --iterations --print_literals --run_test_hlo_passes
  --run_reference_hlo_passes --random_init_input_literals --use_large_float_range --force_fake_data
  --abs_error_bound --rel_error_bound --input_literals_file --output_literals_file --isolate_instructions
  --different_random_seeds --debug_options_file, and every --xla_... flag; --timeout=SECONDS is hlotool's.
PLATFORM: CPU, CUDA, TPU, Interpreter (hlotool's reference, the default), or a backend of hlotool.
Exit status: 0 all runs agree, 255 some do not, 1 wrong usage.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line, by default that of the process; returns the exit status."""
    arguments = sys.argv[1:] if argv is None else argv
    if {"--help", "-h", "-help"} & set(arguments):
        sys.stdout.write(_USAGE)
        return 0
    try:
        line = parse_command_line(arguments)
        return _run_files(line)
    except UsageError as error:
        _tell(f"run_hlo_module: {error}\n{_USAGE}")
        return 1
    except HlotoolError as error:
        _tell(f"run_hlo_module: {error}")
        return _FAILED
    except KeyboardInterrupt:
        return 130


def _run_files(line: CommandLine) -> int:
    from hlotool.runs.options.kept import PRELOAD
    from hlotool.system.executor import Limits
    from hlotool.system.pool import Pool

    backend, reference = _backends(line)
    _refuse_unavailable(backend, reference)
    failed = ran = 0
    kept: list[bytes] = []
    with Pool(Limits(1, line.flags.timeout), PRELOAD, backend) as pool:
        for path in line.files:
            print(f"\n ** Running {path}** ", flush=True)
            for task in _runs(line, path, backend, reference):
                if line.flags.isolate_instructions:
                    failed += not _isolate(pool, task)
                    continue
                if line.flags.iterations > 1:
                    _tell(f"\n=== Iteration {ran % line.flags.iterations + 1}")
                done = _one(pool, task, line.flags)
                ran += 1
                failed += done is None or not _agrees(done, line, path)
                if done is not None:
                    kept.append(done.literals)
    if not line.flags.isolate_instructions:
        _tell(f"{failed}/{ran} runs failed.")
    if line.flags.output_literals_file:
        _write(line.flags.output_literals_file, kept)
    return _FAILED if failed else 0


def _backends(line: CommandLine) -> tuple[str, str]:
    """The tested backend and the reference; the reference is empty where the user wants none."""
    flags = line.flags
    sides = (
        (flags.platform, flags.run_test_hlo_passes),
        (flags.reference_platform, flags.run_reference_hlo_passes),
    )
    tested, reference = (_backend(name, passes, line) if name else "" for name, passes in sides)
    return tested, reference


def _backend(platform: str, runs_passes: bool, line: CommandLine) -> str:
    """The backend of hlotool for a platform of XLA, with the user's debug options."""
    from hlotool.backends.registry import BackendSpec, parse_spec

    spec = parse_spec(_PLATFORMS.get(platform.lower(), platform))
    if spec.name != "xla":
        return str(spec)
    options = dict(spec.options)
    if not runs_passes:
        options["route"] = "post"
    lists = {"xla_disable_hlo_passes": "disable", "xla_enable_hlo_passes_only": "only"}
    for name, value in line.debug_options.items():
        if name in lists:
            options[lists[name]] = value.replace(",", "+")
        elif "," in value:
            raise UsageError(f"--{name}={value}: lists are passed on for {' and '.join(lists)} only")
        else:
            options[name] = value
    return str(BackendSpec(spec.name, options))


def _refuse_unavailable(*names: str) -> None:
    from hlotool.backends.registry import get_backend

    for name in filter(None, names):
        get_backend(name)


def _runs(line: CommandLine, path: str, backend: str, reference: str) -> Iterator[Run]:
    """What is to be run of one file."""
    from hlotool.lab.xla_tools.iteration import Run
    from hlotool.runs.options.kept import RunOptions

    flags = line.flags
    bounds: dict[str, Any] = {}
    if flags.abs_error_bound is not None or flags.rel_error_bound is not None:
        given = flags.abs_error_bound, flags.rel_error_bound
        absolute, relative = (_BOUND if bound is None else bound for bound in given)
        bounds = {"atol": absolute, "rtol": relative, "either": True}
    executions = _given(flags.input_literals_file)
    module = _module(path)
    for number in range(1 if flags.isolate_instructions else flags.iterations):
        yield Run(
            module,
            RunOptions(
                reference=reference or "numpy",
                backend=backend,
                seed=number + 1 if flags.different_random_seeds else _SEED + number,
                timeout=flags.timeout,
                **bounds,
            ),
            has_reference=bool(reference),
            given=executions[min(number, len(executions) - 1)] if executions else b"",
            is_fake=flags.force_fake_data,
            is_random=flags.random_init_input_literals,
            large_range=flags.use_large_float_range,
            prints=flags.print_literals,
            keeps=bool(flags.output_literals_file),
        )


def _module(path: str) -> DumpModule:
    """The program in a file. What it is shows when one looks inside, whatever `--input_format` says."""
    from hlotool.errors import DumpError
    from hlotool.sources.directory import open_dump

    dump = open_dump(path)
    if len(dump.modules) != 1:
        raise DumpError(
            f"{path}: {len(dump.modules)} programs where there should be one; hlotool run takes them"
        )
    return dump.modules[0]


def _given(path: str) -> list[bytes]:
    """The executions in a file of literals, each as a message of its own."""
    if not path:
        return []
    from pathlib import Path

    from hlotool.parser.proto.executions import read_executions, write_executions
    from hlotool.system.paths import read_whole

    content = read_whole(Path(path), UsageError)
    return [write_executions([execution]) for execution in read_executions(content, path)]


def _one(pool: Pool, task: Run, flags: Flags) -> Ran | None:
    """Run once and print what XLA's tool prints on the way; None where the process died."""
    import msgspec

    from hlotool.lab.xla_tools.iteration import Ran

    _tell(f"Running HLO module with runner {task.options.backend}...")
    value = _called(pool, "hlotool.lab.xla_tools.iteration:run", task)
    if value is None:
        return None
    done = msgspec.msgpack.decode(value, type=Ran)
    for number, text in enumerate(done.arguments):
        print(f"\n** Argument {number} **\n{text}")
    for seconds in done.seconds[:1]:
        _tell(f"... compiled and ran in {seconds:.6g}s.")
    if done.result:
        print(f"\n** Result with test runner {task.options.backend} **\n{done.result}")
    if not task.has_reference or done.skipped:
        _tell(" ".join(filter(None, ["Skipping reference runner", done.skipped])))
    for seconds in done.seconds[1:]:
        _tell(f"Running HLO module with runner {task.options.reference}...")
        _tell(f"... compiled and ran in {seconds:.6g}s.")
    if done.reference:
        print(f"\n** Result with reference runner {task.options.reference} **\n{done.reference}")
    sys.stdout.flush()
    return done


def _called(pool: Pool, function: str, task: Run) -> bytes | None:
    """What a worker answers; None, and why on stderr, where it died."""
    (done,) = pool.call_all(function, [task])
    if isinstance(done.value, bytes):
        return done.value
    _tell(str(done.value))
    return None


def _agrees(done: Ran, line: CommandLine, path: str) -> bool:
    """Whether a run is no failure; says which it is."""
    from hlotool.judge.verdicts import AGREEING, Answer, Verdict

    row, flags = done.row, line.flags
    if row.verdict in AGREEING:
        _tell(f"\n** Results on {flags.platform} and {flags.reference_platform} are close enough. **")
        if row.verdict is not Verdict.IDENTICAL:
            _tell(f"{row.verdict.value}: {row.reason}")
        return True
    if row.verdict is Verdict.NOT_COMPARED:
        return True
    _report(done, line, path)
    return row.verdict.answer is not Answer.BAD and row.error is None


def _report(done: Ran, line: CommandLine, path: str) -> None:
    """How the sides differ, and what to type next."""
    from hlotool.interface.report.console import console_for, render
    from hlotool.interface.report.leaf import leaf_diff

    _tell(f"\n{done.row.verdict.value}: {done.row.reason}")
    for leaf in done.row.leaves:
        if leaf.mismatched:
            sys.stderr.write(render(console_for(sys.stderr), leaf_diff(leaf)))
    if done.row.error is None:
        backend, reference = _backends(line)
        given = f" --reference {reference}" if reference != "numpy" else ""
        tested = f" --backend {backend}" if backend != "numpy" else ""
        _tell(f"next: hlotool run {path}{given}{tested}")


def _isolate(pool: Pool, task: Run) -> bool:
    """Run every instruction by itself and print the tables; whether none is wrong."""
    import msgspec

    from hlotool.lab.xla_tools.flags import Isolated

    value = _called(pool, "hlotool.lab.xla_tools.flags:run", task)
    if value is None:
        return False
    done = msgspec.msgpack.decode(value, type=Isolated)
    if done.error:
        _tell(done.error)
        return False
    print(_table(done))
    return all(one.status == "MATCHED" for one in done.instructions)


def _table(done: Isolated) -> str:
    """A line for each instruction, sorted by status, and how many there are of each."""
    status = max([len(one.status) for one in done.instructions], default=6)
    name = max([len(one.name) for one in done.instructions], default=6)

    def line(one: Tested) -> str:
        return f" RAN | {one.status:<{status}} | {one.name:<{name}} | {one.error}".rstrip()

    rows = [line(one) for one in sorted(done.instructions, key=lambda one: (one.status, one.name))]
    counts = Counter(one.status for one in done.instructions)
    totals = [f" {count:>6} {status}" for status, count in sorted(counts.items())]
    head = f" REF | {'TEST':<{status}} | {'INSTRUCTION':<{name}} | ERROR"
    return "\n".join(["", head, "-" * len(head), *rows, "", *totals, ""])


def _write(path: str, messages: Sequence[bytes]) -> None:
    from hlotool.system.paths import write_file

    # A message that repeats a field is the concatenation of those that have it once each.
    write_file(path, messages)


def _tell(text: str) -> None:
    """To stderr, without what a file could command the terminal with."""
    from hlotool.interface.report.console import printable

    print(printable(text), file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
