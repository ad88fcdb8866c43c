"""Peak memory of a run beside the live buffers of the module, for modules that need at least a megabyte.

    python -m benchmarks.speed.memory [PATH…] [--only REGEX]

The lower bound is the largest total size, at any point of the program in textual order, of the values still
to be read, arguments and constants included. Values that share memory count once: tuples, bitcasts, reshapes,
transposes, broadcasts, copies. So it allows for every result to overwrite what its instruction is the last to
read. The peak is what NumPy has allocated at once (tracemalloc) besides arguments and constants. Beside it
stands what `hlotool.facts.memory` expects of the interpreter, by which programs run as they are or scaled.
"""

from __future__ import annotations

import argparse
import statistics
import tracemalloc
from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.common.modules import benchmark_modules
from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import HlotoolError
from hlotool.facts.memory import INTERPRETER, memory_of
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.arrays import dtype_of
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ArrayShape, Shape, TupleShape
from hlotool.parser.reader import parse_module

MEGABYTE = 1 << 20

#: Results that lie in the memory of the first operand.
_SHARING = frozenset(
    ["add-dependency", "bitcast", "broadcast", "copy", "opt-barrier", "reshape", "transpose"]
)

_CALLS = frozenset(["call", "fusion"])


class Buffer:
    """What one array lies in; buffers are compared by identity."""

    def __init__(self, size: int) -> None:
        self.size = size


#: The buffer of an array, or those of a tuple's elements.
Buffers = Any
Live = frozenset[Buffer]


class LiveBuffers:
    """Walks a module and finds the largest total size of live buffers.

    Attributes:
        held: size of arguments and constants, which are alive from beginning to end.
        peak: of all live buffers, those included.
    """

    def __init__(self, module: Module) -> None:
        self.peak = 0
        self._constants = {i: _allocate(i.shape) for i in module.instructions() if i.opcode == "constant"}
        arguments = [_allocate(p.shape) for p in module.entry.parameters]
        held = _live([*arguments, *self._constants.values()])
        self.held = sum(b.size for b in held)
        self._walk(module.entry, arguments, held)

    def _walk(self, computation: Computation, arguments: list[Buffers], outside: Live) -> Buffers:
        """The buffers of the result of a computation, during which `outside` stays alive."""
        last = {o: n for n, i in enumerate(computation.instructions) for o in i.operands}
        last[computation.root] = len(computation.instructions)
        values: dict[Instruction, Buffers] = {}
        for number, instruction in enumerate(computation.instructions):
            operands = [values[o] for o in instruction.operands]
            around = outside | _live(v for i, v in values.items() if last.get(i, -1) > number)
            if instruction.opcode == "parameter":
                value = arguments[instruction.parameter_number or 0]
            else:
                value = self._value(instruction, operands, around)
            values[instruction] = value
            self.peak = max(self.peak, sum(b.size for b in around | _live([value])))
        return values[computation.root]

    def _value(self, instruction: Instruction, operands: list[Buffers], around: Live) -> Buffers:
        opcode = instruction.opcode
        if opcode == "constant":
            return self._constants[instruction]
        if opcode == "tuple":
            return tuple(operands)
        if opcode == "get-tuple-element":
            return operands[0][instruction.attributes["index"]]
        if opcode in _SHARING:
            return operands[0]
        if opcode == "while":
            return self._loop(instruction, operands[0], around)
        if opcode == "conditional":
            branches = zip(instruction.called, operands[1:])
            return [self._walk(branch, [operand], around) for branch, operand in branches][-1]
        if opcode in _CALLS:
            return self._walk(next(instruction.called), operands, around)
        return _allocate(instruction.shape)

    def _loop(self, instruction: Instruction, state: Buffers, around: Live) -> Buffers:
        """Two iterations: the first one on buffers that may be needed elsewhere, too."""
        condition, body = (instruction.attributes[name] for name in ("condition", "body"))
        for _ in range(2):
            self._walk(condition, [state], around | _live([state]))
            state = self._walk(body, [state], around)
        return state


def _allocate(shape: Shape) -> Buffers:
    if isinstance(shape, TupleShape):
        return tuple(map(_allocate, shape.elements))
    size = shape.size * dtype_of(shape.element_type).itemsize if isinstance(shape, ArrayShape) else 0
    return Buffer(size)


def _live(values: Iterable[Buffers]) -> Live:
    return frozenset(_leaves(tuple(values)))


def _leaves(value: Buffers) -> Iterator[Buffer]:
    if isinstance(value, tuple):
        for element in value:
            yield from _leaves(element)
    else:
        yield value


def peak_of_run(module: Module) -> int:
    """Bytes that NumPy has allocated at once during the second run."""
    executable = NumpyBackend().compile(module)
    arguments = list(generate_inputs(module, seed=0).values)
    executable.run(arguments)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    executable.run(arguments)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak - before


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    print(f"{'module':50}{'bound MB':>10}{'peak MB':>10}{'ratio':>8}{'expected':>10}{'ratio':>8}")
    ratios, expectations = [], []
    for candidate in benchmark_modules(options.paths, options.only):
        try:
            module = parse_module(candidate.text)
            bound = LiveBuffers(module)
            if bound.peak < MEGABYTE:
                continue
            peak = bound.held + peak_of_run(module)
            expected = memory_of(module, INTERPRETER).peak
        except HlotoolError as error:
            print(f"{candidate.name[:50]:50}  {error}")
            continue
        ratios.append(peak / bound.peak)
        expectations.append(expected / peak)
        print(
            f"{candidate.name[:50]:50}{bound.peak / MEGABYTE:10.1f}{peak / MEGABYTE:10.1f}{ratios[-1]:8.2f}"
            f"{expected / MEGABYTE:10.1f}{expectations[-1]:8.2f}",
            flush=True,
        )
    within = sum(r <= 1.5 for r in ratios)
    verdict = "met" if within == len(ratios) else "MISSED"
    spread = f"{min(expectations):.2f} to {max(expectations):.2f}"
    print(f"expected beside peak: median {statistics.median(expectations):.2f}, {spread}")
    print(f"(d) median {statistics.median(ratios):.2f}, at most 1.5 on {within} of {len(ratios)}: {verdict}")


if __name__ == "__main__":
    main()
