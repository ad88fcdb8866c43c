"""Faults planted in the tested text of main steps, and whether `hlotool run` sees them.

The catalogue is that of `hlotool.faults`, with what is particular to training steps: another momentum or
beta, a correction of the bias left out, a limit of clipping, a narrow type on the way.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.training_steps.measure import MAIN_STEP, hlotool_record
from hlotool.errors import HlotoolError
from hlotool.ir.arrays import Literal, dtype_of
from hlotool.ir.module import Instruction, Module
from hlotool.lab.faults import BELOW_ROUNDING, CATALOGUE, FaultKind
from hlotool.lab.faults.edit import Edit, Place
from hlotool.lab.faults.parts import FLOATS, array_of, both, is_float, is_opcode
from hlotool.lab.mutation.equivalence import draw
from hlotool.parser.reader import parse_module
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.program import compile_program
from hlotool.runs.trials import trials
from hlotool.sources.directory import open_dump

#: Faults planted in one program, so that none outweighs the others.
_OF_ONE = 8


def _is_decay(place: Place) -> bool:
    """A constant such as 0.9 or 0.999 that multiplies: of a moment, an average, a discount."""
    value = _scalar(place)
    return value is not None and 0.5 < value < 1


def _is_complement(place: Place) -> bool:
    """A constant such as 0.1 or 0.001: the new part of a moment, a rate, a decay of weights."""
    value = _scalar(place)
    return value is not None and 0 < value < 0.5


def _is_threshold(place: Place) -> bool:
    """A float constant that something is compared with or limited to."""
    if _scalar(place) is None:
        return False
    readers = (other for other in place.computation.instructions if place.instruction in other.operands)
    return any(reader.opcode in ("compare", "minimum", "maximum", "clamp") for reader in readers)


def _scalar(place: Place) -> float | None:
    literal, shape = place.instruction.literal, place.array
    if literal is None or literal.has_elided or shape is None or shape.rank:
        return None
    return float(literal.array) if shape.element_type in FLOATS else None


def _other_decay(edit: Edit, target: Instruction) -> None:
    _set(target, edit.choose((0.9, 0.95, 0.99, 0.999)))


def _rounded_decay(edit: Edit, target: Instruction) -> None:
    _set(target, float(_value(target)) * edit.choose((0.99, 1.01)))


def _other_limit(edit: Edit, target: Instruction) -> None:
    _set(target, float(_value(target)) * edit.choose((0.5, 2.0)) or 1e-2)


def _value(target: Instruction) -> Any:
    assert target.literal is not None
    return target.literal.array


def _set(target: Instruction, value: float) -> None:
    shape = array_of(target)
    target.literal = Literal(shape, np.asarray(value).astype(dtype_of(shape.element_type)))


def _through_bf16(edit: Edit, target: Instruction) -> None:
    edit.after()
    edit.replace(edit.op("reduce-precision", target, exponent_bits=8, mantissa_bits=7))


def _no_correction(edit: Edit, target: Instruction) -> None:
    edit.after()
    edit.replace(edit.filled(1.0, array_of(target)))


def _is_correction(place: Place) -> bool:
    """1 - beta**t."""
    if place.instruction.opcode != "subtract" or not is_float(place):
        return False
    return any(operand.opcode == "power" for operand in place.instruction.operands)


#: What is particular to training steps.
_OF_TRAINING = (
    FaultKind("another beta", "a moment's decay taken from its neighbour", _is_decay, _other_decay),
    FaultKind("rate or decay 1 % off", "a factor in too few digits", _is_complement, _rounded_decay),
    FaultKind("another threshold", "a limit of clipping applied twice", _is_threshold, _other_limit),
    FaultKind("no correction of the bias", "1 - beta**t simplified to 1", _is_correction, _no_correction),
    FaultKind(
        "through bf16 and back",
        "a value kept in a narrow type between two kernels",
        both(is_float, is_opcode("add", "multiply", "subtract", "dot", "convolution", "reduce", "scatter")),
        _through_bf16,
    ),
)
KINDS: tuple[FaultKind, ...] = (*_OF_TRAINING, *CATALOGUE, *BELOW_ROUNDING)


@dataclass(frozen=True)
class Planted:
    """One fault in one main step.

    Attributes:
        program: name of the script.
        kind: of the fault.
        site: where it is.
        has_effect: some bit of some output is another one at the arguments.
        verdict: of `hlotool run`.
        is_seen: whether that accuses somebody.
        reason: the verdict in one line.
    """

    program: str
    kind: str
    site: str
    has_effect: bool
    verdict: str = ""
    is_seen: bool = False
    reason: str = ""


def planted(dumps: Sequence[Path], count: int, seed: int) -> Iterator[Planted]:
    """Up to `count` faults in the main steps of dumps, in random order; a kind is drawn before its place."""
    rng = np.random.default_rng([seed, 1])
    order = [dumps[int(n)] for n in rng.permutation(len(dumps))]
    share = max(1, min(_OF_ONE, -(-count // max(1, len(order)))))
    left = count
    for folder in order:
        for fault in _of_one(folder, min(share, left), int(rng.integers(1 << 30))):
            left -= 1
            yield fault
        if left <= 0:
            return


def _of_one(folder: Path, count: int, seed: int) -> Iterator[Planted]:
    name = folder.name
    paths = {path.name.partition(MAIN_STEP)[2]: path for path in sorted(folder.rglob(f"*{MAIN_STEP}*.txt"))}
    before = next((p for end, p in paths.items() if end == ".before_optimizations.txt"), None)
    after = next((p for end, p in paths.items() if end.endswith("after_optimizations.txt")), None)
    if before is None or after is None:
        return
    module = parse_module(after.read_text(), str(after))
    try:
        run = _Runner(before.parent, module)
    except HlotoolError as error:
        print(f"left out: {name}: {error}", file=sys.stderr)
        return
    for mutant in draw(module, count, seed, KINDS):
        has_effect = run.differs(mutant.module)
        if not has_effect:
            yield Planted(name, mutant.kind.name, str(mutant.site), False)
            continue
        found = _judged(before.parent, after.name, mutant.module.to_text())
        yield Planted(name, mutant.kind.name, str(mutant.site), True, *found)


class _Runner:
    """The right text on its captured or generated arguments, and whether another one gives the same bits."""

    def __init__(self, folder: Path, right: Module) -> None:
        [owner] = [m for m in open_dump(folder).modules if right.path in [str(s.source) for s in m.stages]]
        self._program = compile_program("after", "", right, "numpy")
        copies = self._program.runner.copies
        self._arguments = next(trials(owner, right, ReplayOptions(), copies)).arguments
        self._bits = _bits(self._program.runner.run(self._arguments).value)

    def differs(self, module: Module) -> bool:
        """Whether some bit is another one, or it does not come to its end."""
        try:
            faulty = compile_program("after", "", module, "numpy", self._program)
            return _bits(faulty.runner.run(self._arguments).value) != self._bits
        except HlotoolError:
            return True


def _bits(value: Any) -> list[bytes]:
    """Of a result, or of the results of several devices."""
    if isinstance(value, tuple | list):
        return [bits for part in value for bits in _bits(part)]
    return [np.asarray(value).tobytes()]


def _judged(folder: Path, name: str, text: str) -> tuple[str, bool, str]:
    """What `hlotool run` says of a dump whose last text is `text`: the worst verdict of the texts."""
    own = name.partition(MAIN_STEP)[0]  # some scripts compile several
    with tempfile.TemporaryDirectory(prefix="training-steps-") as scratch:
        for path in folder.glob(f"{own}{MAIN_STEP}.*"):
            if path.suffix == ".pb" or path.name.endswith("before_optimizations.txt"):
                shutil.copyfile(path, Path(scratch, path.name))
        Path(scratch, name).write_text(text)
        record, error = hlotool_record(["run", scratch, "--json"])
    rows = [row for row in (record or {"modules": []})["modules"] if row["stage_tested"] != "result"]
    if not rows:
        return "no answer", False, error
    row = max(rows, key=lambda row: row["verdict"] in _BAD)
    return row["verdict"], row["verdict"] in _BAD, row.get("reason", "")


#: Verdicts that accuse somebody.
_BAD = ("wrong", "structural", "unequal")
