"""Why legal executions differ so much: the instruction that amplifies rounding, sums that cancel.

The amplifier: three executions are watched. Of every value a few elements are kept; their spread relative
to their size is compared with that of the operands. In a loop the first rounds are watched.

Cancellations: in floats a sum whose terms cancel is what rounding left of them. That is nothing to wonder
about, nor to judge at its own size: a bias before a normalisation and the keys' bias before a softmax have
gradients that are 0 and come out as 1e-9. Where they are divided by their own size, as Adam does, a
parameter moves by the whole learning rate in a direction that rounding chose.

With such sums as they are in f64 (`settled`), legal executions agree unless something else amplifies
rounding. Which sum it is shows where it gets its error back, alone: the nearest one that makes the result
differ as before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from hlotool.backends.base import Value
from hlotool.backends.numpy.executions.cancelling import (
    FindingBackend,
    Noted,
    Rests,
    SettledBackend,
)
from hlotool.backends.numpy.executions.noise import Member
from hlotool.errors import HlotoolError
from hlotool.facts import thresholds
from hlotool.facts.exchangeability import score
from hlotool.facts.float_order import epsilon
from hlotool.facts.flow import CallGraph, Dependence
from hlotool.facts.patterns import typical_magnitude
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Class
from hlotool.ir.types import ElementType, array_shapes, leaves
from hlotool.judge.reasons import Finding
from hlotool.judge.rules.ensemble import Ensemble
from hlotool.judge.rules.judgement import Leaf
from hlotool.judge.tolerance import flips

#: Executions watched, elements kept of a value, and values kept of an instruction.
_EXECUTIONS, _ELEMENTS, _ROUNDS = 3, 256, 32
#: A relative spread below this is no spread yet; ulps by which a few roundings differ.
_LEAST, _FEW = 1e-16, 4
#: They hand on what others made.
_CARRIERS = frozenset((Class.TUPLE, Class.CONTROL, Class.ANNOTATION, Class.SOURCE, Class.DATA_MOVEMENT))


class Sketches(Struct):
    """A few elements of every value of one execution, in order.

    Attributes:
        elements: that are kept of a value.
        values: by instruction, in the order of execution; one per round of a loop.
    """

    elements: int = _ELEMENTS
    values: dict[Instruction, list[Array]] = field(default_factory=lambda: defaultdict(list))

    def __call__(self, instruction: Instruction, value: Value) -> None:
        """Keep some elements; the probe of an execution."""
        kept = self.values[instruction]
        if len(kept) < _ROUNDS and isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "fciub":
            flat = np.asarray(value).reshape(-1)
            kept.append(flat[:: max(1, flat.size // self.elements)][: self.elements].astype(np.complex128))


def amplifying_instruction(ensemble: Ensemble) -> Instruction | None:
    """The instruction whose result spreads most beyond its operands; None where it cannot be watched."""
    executions = []
    for number in range(_EXECUTIONS):
        sketches = Sketches()
        if not ensemble.watch(number, sketches):
            return None
        executions.append(sketches.values)
    return _largest_growth(executions)


def _largest_growth(executions: Sequence[dict[Instruction, list[Array]]]) -> Instruction | None:
    spreads = {i: _spreads([e.get(i, []) for e in executions]) for i in executions[0]}
    best, growth = None, 1.0
    for instruction, own in spreads.items():
        if instruction.row.opcode_class in _CARRIERS or not own:
            continue
        for round_number, spread in enumerate(own):
            before = [
                known[min(round_number, len(known) - 1)]
                for operand in instruction.operands
                if (known := spreads.get(operand))
            ]
            grown = spread / max([_rounding(instruction), *before])
            if spread > _LEAST and grown > growth:
                best, growth = instruction, grown
    return best


def _rounding(instruction: Instruction) -> float:
    """What one rounding makes of operands without spread: no amplification."""
    shapes = (instruction.shape, *(operand.shape for operand in instruction.operands))
    kinds = {part.element_type for shape in shapes for part in array_shapes(shape)}
    return _FEW * max((epsilon(kind) for kind in kinds if kind.is_inexact), default=epsilon(ElementType.F64))


def _spreads(rounds: Sequence[Sequence[Array]]) -> list[float]:
    """Relative spread of each value of one instruction."""
    found = []
    for versions in zip(*rounds):
        if len({v.size for v in versions}) > 1:
            found.append(1.0)
            continue
        stacked = np.stack(versions)
        with np.errstate(all="ignore"):
            usable = stacked[:, np.isfinite(stacked).all(axis=0)]
            size = typical_magnitude(usable)
            spread = typical_magnitude(usable - usable.mean(axis=0)) if usable.size else 0.0
        found.append(min(1.0, spread / size) if size else 0.0)
    return found


#: Sums behind a result that are tried, the nearest first.
_RANKS: Final = 4
#: An error is out of proportion where what it comes of would be so many times as large as what it is seen
#: beside, had the terms not cancelled: linear operations scale both.
_OUT_OF_PROPORTION: Final = 64
#: How many times as far off as elsewhere an element is that a cancellation decides about.
_TIMES: Final = 4
#: Executions in which sums get their errors back, at most, and steps of the search for what fits together.
_GROUPS: Final = 8
_STEPS: Final = 1 << 21
#: The distance of what is not finite on one side only.
_FAR: Final = 1e300

_Flags = npt.NDArray[np.bool_]


class Cancellation(Struct, frozen=True, eq=False):
    """What a cancellation did to one leaf.

    Attributes:
        elements: that it decides about.
        spread: how far the farthest of them is from where it would be otherwise.
        origin: the sum whose terms cancel; None where no single one is to blame.
        noted: how far that is off.
        maker: makes something of that error which is not in proportion to it; None where nothing does.
    """

    elements: int
    spread: float
    origin: Instruction | None = None
    noted: Noted | None = None
    maker: Instruction | None = None


class Cancellations:
    """Answers for one program.

    Args:
        ensemble: legal executions of it.
    """

    def __init__(self, ensemble: Ensemble) -> None:
        self._ensemble = ensemble
        self._settled = Settled(ensemble)

    def behind(self, leaf: Leaf, is_unstable: Callable[[Leaf, Finding], bool]) -> Cancellation | None:
        """What cancellations explain; None where legal executions differ too much without them, too.

        Args:
            leaf: whose legal executions differ much.
            is_unstable: says so of the members of another ensemble.
        """
        size = int(thresholds.FIRST_MEMBERS.value)
        try:
            usual = [leaf.expected, *(m[leaf.number] for m in self._ensemble.members(size))]
            members = [m[leaf.number] for m in self._settled.members(size)]
        except (HlotoolError, MemoryError):
            return None
        if any(member.shape != leaf.expected.shape for member in (*usual, *members)):
            return None
        kind = leaf.shape.element_type
        found = score(members[0], members, kind) if leaf.is_inexact else flips(members[0], members)
        if is_unstable(leaf, found):
            return None
        distances = [_distance(one, other) for one, other in zip(usual, members)]
        distance = np.max(distances, axis=0)
        decided = distance > _ordinary(members, epsilon(kind) if leaf.is_inexact else 0.0)
        if not decided.any():
            return None
        try:
            sizes = [_size(own[decided]) for own in distances[1:]]
            # The first one has been watched for other leaves; where it happens to be near, another one is.
            number = 0 if sizes[0] >= max(sizes) / 4 else int(np.argmax(sizes))
            origin, maker = self._blamed(leaf, number, sizes[number], decided)
        except (HlotoolError, MemoryError):
            origin, maker = None, None
        noted = None if origin is None else self._settled.noted[origin]
        return Cancellation(int(decided.sum()), float(distance[decided].max()), origin, noted, maker)

    def _blamed(
        self, leaf: Leaf, number: int, whole: float, decided: _Flags
    ) -> tuple[Instruction | None, Instruction | None]:
        """The sum that makes the leaf differ in member `number`, and what makes something of its error.

        `whole` is the mean distance of the elements in question there.
        """
        settled = self._settled.watched(number)
        centre = settled.leaves[leaf.number]
        for origin in self._sums.behind(leaf.number)[:_RANKS]:
            released = self._sums.released_with(origin, leaf.number)
            if released is None:
                break
            free = self._settled.watched(number, released)
            moved = _size(_distance(free.leaves[leaf.number], centre)[decided])
            if moved and moved >= whole / 2:
                return origin, self._maker(leaf, origin, settled, free)
        return None, None

    def _maker(self, leaf: Leaf, origin: Instruction, settled: Watched, free: Watched) -> Instruction | None:
        """The first instruction to make more of the error of a sum than it is beside the terms."""
        noted, behind = self._settled.noted[origin], frozenset(self._sums.parts_behind(leaf.number))
        for instruction, rounds in settled.values.items():
            if instruction not in behind:
                continue
            for centre, other in zip(rounds, free.values.get(instruction, [])):
                # Most are what they were: that is told quickly.
                if centre.shape != other.shape or (centre == other).all():
                    continue
                moved = float(_distance(other, centre).max())
                size = float(np.max(np.abs(centre), initial=noted.terms, where=np.isfinite(centre)))
                if moved / noted.noise * noted.terms > _OUT_OF_PROPORTION * size:
                    return instruction
        return None

    @cached_property
    def _sums(self) -> _Sums:
        noted = frozenset(i for i, noted in self._settled.noted.items() if noted.elements)
        return _Sums(self._ensemble.side.module, noted)


class _Sums:
    """The sums whose rounding errors may show in the leaves of a result.

    Args:
        module: the program.
        noted: its sums that are nothing but rounding errors somewhere.
    """

    def __init__(self, module: Module, noted: frozenset[Instruction]) -> None:
        self._dependence = Dependence(CallGraph(module))
        self._root = module.entry.root
        self._indices = [index for index, _ in leaves(self._root.shape)]
        self._noted = noted
        self._behind: dict[int, list[Instruction]] = {}
        self._groups: list[frozenset[Instruction]] = []
        is_small = len(self._indices) * sum(1 for _ in module.instructions()) <= _STEPS
        self._others = range(len(self._indices) if is_small else 0)

    def parts_behind(self, number: int) -> list[Instruction]:
        """All that leaf `number` depends on, the nearest first. Of several devices all have the same."""
        index = self._indices[number % len(self._indices)]
        return list(dict.fromkeys(i for i, _ in self._dependence.behind(self._root, index)))

    def behind(self, number: int) -> list[Instruction]:
        """Sums that leaf `number` depends on, the nearest first."""
        number %= len(self._indices)
        if number not in self._behind:
            self._behind[number] = [i for i in self.parts_behind(number) if i in self._noted]
        return self._behind[number]

    def released_with(self, origin: Instruction, number: int) -> frozenset[Instruction] | None:
        """Sums that get their errors back in one execution: of those behind leaf `number` only `origin`.

        The others are about other leaves. None where enough have been executed.
        """
        own = frozenset(self.behind(number))
        for group in self._groups:
            if group & own == {origin}:
                return group
        if len(self._groups) == _GROUPS:
            return None
        together, owners = {origin}, [own]
        for other in self._others:
            theirs = self.behind(other)
            if theirs and together.isdisjoint(theirs) and not any(theirs[0] in owner for owner in owners):
                together.add(theirs[0])
                owners.append(frozenset(theirs))
        self._groups.append(frozenset(together))
        return self._groups[-1]


def _ordinary(members: Sequence[Array], unit: float) -> npt.NDArray[np.float64]:
    """How far elements are off where cancellations do not decide about them: flat."""
    spread = np.max([_distance(member, members[0]) for member in members[1:]], axis=0)
    with np.errstate(all="ignore"):
        step = unit * np.nan_to_num(np.abs(_wide(members[0])), nan=0, posinf=0)
    ordinary: npt.NDArray[np.float64] = _TIMES * (spread + step)
    return ordinary


def _distance(one: Array, other: Array) -> npt.NDArray[np.float64]:
    """Between elements: flat; 0 where both are infinite or NaN, far where one is."""
    a, b = _wide(one), _wide(other)
    with np.errstate(all="ignore"):
        off = np.abs(a - b)
    finite = np.isfinite(a), np.isfinite(b)
    return np.where(finite[0] & finite[1], off, np.where(finite[0] == finite[1], 0, _FAR))


def _wide(array: Array) -> Array:
    return np.asarray(array).reshape(-1).astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _size(distance: npt.NDArray[np.float64]) -> float:
    """The mean distance: squares of small ones vanish."""
    return float(distance.mean()) if distance.size else 0.0


# Executions of a program in which sums that cancel are as in f64: what differs there has other causes.

#: Elements of each value that are looked at.
_CANCELLATIONS_ELEMENTS: Final = 1 << 14


class Watched(Struct, frozen=True, eq=False):
    """One execution.

    Attributes:
        leaves: of its result.
        values: some elements of every value, in the order of execution; none where it runs on many devices.
    """

    leaves: list[Array]
    values: Mapping[Instruction, list[Array]]


class Settled:
    """Such executions of one side, each run once; all raise as `Clock.timed`.

    Args:
        ensemble: legal executions of the same side.
    """

    def __init__(self, ensemble: Ensemble) -> None:
        self._ensemble = ensemble
        self._members: list[list[Array]] = []
        self._watched: dict[tuple[int, frozenset[Instruction]], Watched] = {}

    def members(self, count: int) -> list[list[Array]]:
        """The leaves where nothing else is perturbed, then of `count` with all else as in the ensemble."""
        run, self._backend.is_noting, self._backend.released = self._execute, True, frozenset()
        while len(self._members) <= count:
            number = len(self._members)
            self._backend.noise.member = self._ensemble.member(number - 1) if number else Member()
            self._members.append(self._ensemble.executed(run))
        return self._members[: count + 1]

    @property
    def noted(self) -> Mapping[Instruction, Noted]:
        """How far sums that cancel were off in `members`, by instruction."""
        return self._backend.noted

    def watched(self, number: int, released: frozenset[Instruction] = frozenset()) -> Watched:
        """Member `number` of the ensemble, where some sums keep their errors."""
        key = number, released
        if key not in self._watched:
            self._watched[key] = self._run(*key)
        return self._watched[key]

    def _run(self, number: int, released: frozenset[Instruction]) -> Watched:
        backend, watch = self._backend, self._ensemble.side.watch
        backend.is_noting, backend.released = False, released
        backend.noise.member = self._ensemble.member(number)
        if watch is None:
            return Watched(self._ensemble.executed(self._execute), {})
        sketches = Sketches(_CANCELLATIONS_ELEMENTS)

        def run() -> Value:
            return watch(backend, sketches)

        return Watched(self._ensemble.executed(run), sketches.values)

    @cached_property
    def _backend(self) -> SettledBackend:
        return SettledBackend(self._rests, self._ensemble.product_unit)

    @cached_property
    def _execute(self) -> Callable[[], Value]:
        return self._ensemble.side.execute(self._backend)

    @cached_property
    def _rests(self) -> Rests:
        rests = Rests()
        self._ensemble.executed(self._ensemble.side.execute(FindingBackend(rests)))
        return rests
