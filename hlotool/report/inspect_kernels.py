"""The report of `hlotool inspect --kernels`: launches, resources, sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import RenderableType, RenderResult, group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hlotool.amounts import size_text
from hlotool.inspect.kernel_records import FallbackInfo, KernelInfo, KernelsInfo, LaunchInfo
from hlotool.report.links import place_text
from hlotool.report.tables import plain_table
from hlotool.report.words import plural


@group()
def kernels_report(found: KernelsInfo, quiet: bool = False) -> RenderResult:
    """A program as kernels; `quiet` leaves out the sources."""
    yield Text.assemble(("kernels of ", "dim"), (found.file, "bold"))
    for part in _parts(found, quiet):
        yield Padding(part, (0, 0, 0, 2))


def _parts(found: KernelsInfo, quiet: bool) -> Iterator[RenderableType]:
    if found.error is not None:
        yield Text(found.error.message, "yellow")
        return
    yield Text(_summary(found))
    if found.note:
        yield Text(found.note, "yellow")
    if found.fallbacks:
        yield Text(_fallbacks(found.fallbacks), "yellow")
    if libraries := Counter(launch.library for launch in found.launches if launch.library):
        for name, count in libraries.items():
            yield Text(f"{name} takes over {plural(count, 'instruction')} where it is installed")
    if found.launches:
        yield Text("")
        yield _launch_table(found)
    if not quiet:
        users = _users(found.launches)
        for kernel in found.kernels:
            yield Text("")
            yield _source(kernel, users[kernel.name])


def _summary(found: KernelsInfo) -> str:
    launched = sum(len(launch.kernels) for launch in found.launches)
    # Loops run their body's kernels again; the text has them once.
    counts = f"{plural(launched, 'launch')[:-1]}es" if launched != 1 else "1 launch"
    compiled = f", compiled for {found.architecture} by {found.compiler}" if found.compiler else ""
    return f"{counts} of {plural(len(found.kernels), 'kernel')}{compiled}"


def _fallbacks(fallbacks: Sequence[FallbackInfo]) -> str:
    counts = Counter(fallback.source.opcode for fallback in fallbacks)
    names = ", ".join(f"{opcode} ×{count}" for opcode, count in counts.most_common())
    return f"host fallbacks: {names}, {size_text(sum(fallback.bytes for fallback in fallbacks))} moved"


def _launch_table(found: KernelsInfo) -> Table:
    kernels = {kernel.name: kernel for kernel in found.kernels}
    table = plain_table()
    for name in ("instruction", "source", "schedule"):
        table.add_column(name, overflow="fold")
    for name in ("blocks", "read", "written", "registers", "spilled", "shared"):
        table.add_column(name, justify="right", no_wrap=True)
    for launch in found.launches:
        for number, name in enumerate(launch.kernels):
            first = ("", Text()) if number else (_instruction(launch), place_text(launch.source, "dim"))
            table.add_row(*first, *_numbers(kernels[name]))
    return table


def _instruction(launch: LaunchInfo) -> str:
    fused = f" ({len(launch.fused)} fused)" if launch.fused else ""
    return f"{launch.source.opcode} %{launch.source.instruction}{fused}"


def _numbers(kernel: KernelInfo) -> Iterator[str]:
    yield kernel.schedule
    yield str(kernel.blocks)
    yield size_text(kernel.bytes_read)
    yield size_text(kernel.bytes_written)
    taken = kernel.resources
    if taken is None:
        yield from ("–", "–", "–")
        return
    yield str(taken.registers)
    yield size_text(taken.spill_stores + taken.spill_loads)
    yield size_text(taken.shared)


def _users(launches: Sequence[LaunchInfo]) -> dict[str, list[LaunchInfo]]:
    users: dict[str, list[LaunchInfo]] = {}
    for launch in launches:
        for name in launch.kernels:
            users.setdefault(name, []).append(launch)
    return users


@group()
def _source(kernel: KernelInfo, users: Sequence[LaunchInfo]) -> RenderResult:
    """A kernel's source below a head of comments that says where it comes from and what it works on."""
    for line in _head(kernel, users):
        yield Text(f"// {line}", "dim", overflow="fold")
    yield Text(kernel.source.rstrip("\n"), overflow="fold")


def _head(kernel: KernelInfo, users: Sequence[LaunchInfo]) -> Iterator[str]:
    for user in users:
        names = " ".join(filter(None, (_instruction(user), user.source.op_name, user.source.user_line)))
        yield names + (f": {', '.join(user.fused)}" if user.fused else "")
    grid = f"{plural(kernel.blocks, 'block')} of {kernel.threads} threads"
    moved = f"reads {size_text(kernel.bytes_read)}, writes {size_text(kernel.bytes_written)}"
    yield f"{kernel.schedule}: {grid}, {moved}"
    if kernel.resources is not None:
        taken = kernel.resources
        yield (
            f"{taken.registers} registers, {size_text(taken.spill_stores)} spilled, "
            f"{size_text(taken.stack)} stack, {size_text(taken.shared)} shared"
        )
    yield from (f"p{number} = {text}" for number, text in enumerate(kernel.reads))
    yield from (f"out{number} = {text}" for number, text in enumerate(kernel.writes))
