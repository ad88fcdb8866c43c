"""What the programs whose verdicts are measured are run on: plain inputs, and further sets of each kind."""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.verdicts.programs import Subject
from benchmarks.verdicts.runs import Leaves, leaves_of
from hlotool.backends.base import Executable
from hlotool.errors import HlotoolError
from hlotool.inputs.adversarial.plan import directed_sets
from hlotool.inputs.adversarial.sets import PLAIN, InputSet
from hlotool.runs.other_inputs import Allowed, Limits
from hlotool.system.resources import UNITS_PER_SECOND, TooMuchWork, TooSlow

#: Sets that are made of a program, of which some are chosen: those of every kind are among so many.
_MADE = 200

#: What making them and running the reference on them may be; nearly all programs take a tenth of it. The
#: clock stands behind it and decides nothing but on a machine that is much slower.
_ALLOWED = Allowed(5 * UNITS_PER_SECOND, 60.0)

#: Kinds of ordinary sets, by the beginning of their names.
_ORDINARY = {
    "seed": r"seed ",
    "ties": r"(more |solved |plain )?tie",
    "signs": r"(both|more) signs",
    "largest moves": r"largest at",
}


@dataclass(frozen=True, eq=False)
class Case:
    """One run of a program.

    Attributes:
        seed: of the inputs.
        set: name of the set.
        kind: of set, for the tables.
        arguments: one value per entry parameter.
        expected: result of the reference.
        suits_other_backends: whether a replay compares different backends on it; on the others it compares
            programs on one.
    """

    seed: int
    set: str
    kind: str
    arguments: list[Any]
    expected: Leaves
    suits_other_backends: bool = True

    @property
    def is_plain(self) -> bool:
        """Whether a replay takes it in any case."""
        return self.set == PLAIN


def plain_cases(subject: Subject, executable: Executable, seeds: Sequence[int]) -> Iterator[Case]:
    """Generated inputs for each seed; raises as `Executable.run`."""
    for seed in seeds:
        arguments = subject.arguments(seed)
        expected = leaves_of(subject.module, executable.run(arguments))
        yield Case(seed, PLAIN, PLAIN, arguments, expected)


def further_cases(subject: Subject, executable: Executable, seed: int, count: int, rest: int) -> list[Case]:
    """Some of the sets of `run --thorough` on which the reference comes to an end.

    Kinds take turns, so that rare ones are there as often as they can be; which one begins, and which sets of
    a kind are taken, differs between programs and is the same for the same program and seed.

    Args:
        subject: the program.
        executable: the reference.
        seed: of plain inputs, and of what is drawn.
        count: sets that suit other backends, at most.
        rest: sets that do not, at most.
    """
    known = list(_run(subject, executable, seed))
    suiting = [case for case in known if case.suits_other_backends]
    others = [case for case in known if not case.suits_other_backends]
    return [*_spread(subject, suiting)[:count], *_spread(subject, others)[:rest]]


def _run(subject: Subject, executable: Executable, seed: int) -> Iterator[Case]:
    limits = Limits(_ALLOWED)
    sets = directed_sets(subject.module, subject.arguments(seed), seed, subject.input_range)
    for _ in range(_MADE):
        try:
            with limits.hold():
                one = next(sets, None)
                if one is None:
                    return
                expected = leaves_of(subject.module, executable.run(one.values))
        except (TooMuchWork, TooSlow):
            return
        except HlotoolError:
            continue
        yield Case(seed, one.name, kind_of(one), list(one.values), expected, one.suits_other_backends)


def kind_of(one: InputSet) -> str:
    """What sets like it are called in tables."""
    if one.odd:
        return one.odd[0] if len(one.odd) == 1 else "several oddities"
    if one.is_hard:
        return "mixed" if one.name.startswith("mixture") else "large, alike, in order"
    return next((kind for kind, form in _ORDINARY.items() if re.match(form, one.name)), "solved or searched")


def _spread(subject: Subject, cases: list[Case]) -> list[Case]:
    """One of each kind in turn."""
    kinds: defaultdict[str, list[Case]] = defaultdict(list)
    for case in sorted(cases, key=lambda case: _number(subject.name, case.set)):
        kinds[case.kind].append(case)
    order = sorted(kinds, key=lambda kind: _number(subject.name, kind))
    most = max(map(len, kinds.values()), default=0)
    return [kinds[kind][n] for n in range(most) for kind in order if n < len(kinds[kind])]


def _number(*names: str) -> int:
    return zlib.crc32("/".join(names).encode())
