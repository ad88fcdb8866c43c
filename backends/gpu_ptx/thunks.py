"""What a GPU's program executes, step by step: `thunk_sequence.txt`, with the names of `thunk_metadata.txt`.

001: kCustomKernel [source | sink] add grid: [32, 1, 1] threads: [128, 1, 1]  shared_memory: 0 bytes
001: kKernel , kernel = add, launch dimensions = blocks: {32, 1, 1}, threads/block: {128, 1, 1}, …

The second form is that of jaxlib before 0.9, which does not say how much shared memory there is; before 0.8
steps have no number, and what conditionals and command buffers consist of is not said.
What a step executes in turn (a loop's condition and body, branches, a sequence) is indented below it. The
first of a `kSequential` stands on its own line. XLA: xla/backends/gpu/runtime/thunk.cc, sequential_thunk.cc.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hlotool.errors import DumpError

Dimensions = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel and how many threads run it.

    Attributes:
        kernel: its name in the PTX.
        grid: number of blocks, x first.
        block: threads of each.
        shared: bytes of shared memory beside what the kernel declares; None where the dump does not say.
    """

    kernel: str
    grid: Dimensions
    block: Dimensions
    shared: int | None


@dataclass(slots=True)
class Thunk:
    """A step.

    Attributes:
        number: as the text numbers it, else its line.
        kind: such as `kCustomKernel`, `kCopy`, `kWhile`.
        instruction: name of the HLO instruction that it was made for; empty where the dump does not say.
        launch: of a kernel.
        parts: what it executes in turn: label and steps.
        line: in the text.
        ordinal: which step of its kind of the same instruction it is, from 0.
    """

    number: int
    kind: str
    instruction: str
    launch: Launch | None
    line: int
    ordinal: int = 0
    parts: list[tuple[str, list[Thunk]]] = field(default_factory=list)

    def all(self) -> Iterator[Thunk]:
        """It and the steps in it, in the order of the text."""
        yield self
        for _, steps in self.parts:
            for step in steps:
                yield from step.all()


_STEP = re.compile(r"(\s*)(\d+): (k\w+)\s*(?:\[[^\]]*\])?")
#: Before jaxlib 0.8; a tab is behind the name.
_UNNUMBERED = re.compile(r"(\s*)()(k\w+) *\t")
_LABEL = re.compile(r"(\s*)(\w+):\s*$")
_LAUNCH = re.compile(
    r"\s*(\S+) grid: \[(\d+), (\d+), (\d+)\] threads: \[(\d+), (\d+), (\d+)\].*?shared_memory: (\d+)"
)
_OLD_LAUNCH = re.compile(
    r"\s*, kernel = (\S+), launch dimensions = blocks: \{(\d+), (\d+), (\d+)\}, "
    r"threads/block: \{(\d+), (\d+), (\d+)\}"
)
_INFO = re.compile(r'profile_annotation: "((?:[^"\\]|\\.)*)"\s+thunk_id: (\d+)')


def instruction_names(metadata: str) -> dict[int, str]:
    """The instruction that each step was made for, by the step's number."""
    return {int(number): name for name, number in _INFO.findall(metadata)}


def parse_thunks(text: str, names: Mapping[int, str], path: str) -> list[Thunk]:
    """The steps of a program.

    Args:
        text: of `thunk_sequence.txt`.
        names: see `instruction_names`.
        path: of the file, for messages.

    Raises:
        DumpError: a line that is neither a step nor a label of steps.
    """
    program = Thunk(0, "", "", None, 0)
    #: What is open, each further in than the one before: its indentation, and whose steps follow.
    opened = [(-1, program)]
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() in ("", _NOTHING):
            continue
        # A branch without steps has the next label on its line.
        line = line.replace(_NOTHING, " " * len(_NOTHING))
        depth = len(line) - len(line.lstrip())
        if label := _LABEL.match(line):
            # `condition:` is never indented; it follows its loop at once.
            depth = depth or opened[-1][0] + _FURTHER
            _close(opened, depth)
            opened[-1][1].parts.append((label[2], []))
            continue
        match = _STEP.match(line) or _UNNUMBERED.match(line)
        if match is None:
            raise DumpError(f"{path}:{number}: this is no step of a program: {line.strip()[:80]}")
        while match is not None:
            _close(opened, depth)
            owner = opened[-1][1]
            step = _step(match, line, number, names)
            if not owner.parts:
                owner.parts.append(("", []))
            owner.parts[-1][1].append(step)
            opened.append((depth, step))
            match, depth = _STEP.match(line, match.end()), depth + _FURTHER
    count_steps(program.parts[0][1] if program.parts else [])
    return program.parts[0][1] if program.parts else []


#: What stands in the place of steps where there are none.
_NOTHING = "No thunks."
#: Columns by which the steps of a step are indented.
_FURTHER = 2


def _close(opened: list[tuple[int, Thunk]], depth: int) -> None:
    while opened[-1][0] >= depth:
        opened.pop()


def count_steps(steps: Sequence[Thunk]) -> None:
    """Number the steps of each kind of an instruction."""
    seen: dict[tuple[str, str], int] = {}
    for step in (one for top in steps for one in top.all()):
        key = step.instruction, step.kind
        step.ordinal = seen.get(key, 0)
        seen[key] = step.ordinal + 1


def _step(match: re.Match[str], line: str, number: int, names: Mapping[int, str]) -> Thunk:
    launch = _LAUNCH.match(line, match.end()) or _OLD_LAUNCH.match(line, match.end())
    order = int(match[2] or number)
    named = names.get(order, "")
    return Thunk(order, match[3], named, None if launch is None else _launch(launch), number)


def _launch(match: re.Match[str]) -> Launch:
    kernel, *numbers = match.groups()
    x, y, z, a, b, c, *shared = map(int, numbers)
    return Launch(kernel, (x, y, z), (a, b, c), shared[0] if shared else None)
