"""`prove`: are two programs the same function of real numbers?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlotool.errors import UsageError
from hlotool.interface.api.calls import Accompanied, options_of
from hlotool.interface.api.diff import must_exist
from hlotool.interface.api.results import FindingsResult
from hlotool.runs.options import parsers
from hlotool.runs.options.declared import Arguments, As, option, takes
from hlotool.runs.options.parsers import Program, Values, path_of
from hlotool.runs.options.shared import (
    Devices,
    Elided,
    FurtherSets,
    GivenInputs,
    Only,
    Scale,
    Workers,
)

if TYPE_CHECKING:
    from hlotool.blame.diff_programs import Pairing
    from hlotool.interface.report.command_records import ProveRecord
    from hlotool.runs.exact.records import ProvedRecord
    from hlotool.runs.exact.result import Relation
    from hlotool.runs.options.kept import RunOptions


class ProveResult(FindingsResult["ProvedRecord"]):
    """How programs are related as functions of real numbers: a row for each pair."""

    record: ProveRecord

    @property
    def rows(self) -> Sequence[ProvedRecord]:
        """One record per pair."""
        return self.record.pairs

    @property
    def relation(self) -> Relation:
        """Of the whole: unequal if a pair is or a program has no partner; else the least of what is known."""
        from hlotool.runs.exact.result import Relation

        found = {Relation(pair.relation) for pair in self.rows}
        if Relation.UNEQUAL in found or self.record.only_left or self.record.only_right:
            return Relation.UNEQUAL
        if not found or Relation.REFUSED in found:
            return Relation.REFUSED
        return Relation.EQUAL if found == {Relation.EQUAL} else Relation.EQUAL_WHERE

    def __repr__(self) -> str:
        return f"<ProveResult: {self.relation.value}>"


class _Pair(Arguments):
    left: As[Program, str] = option(
        "HLO file, dump directory or archive",
        "a file of HLO, a dump, an archive, or a module: as it should be",
        kw_only=False,
        metavar="A",
        convert=path_of,
    )
    right: As[Program | None, str | None] = option(
        "the same kind of thing [A's own last stage]",
        default=None,
        kw_only=False,
        nargs="?",
        metavar="B",
        convert=path_of,
    )


class _Points(Arguments):
    trials: int = option("random points [2]", default=2, parse=parsers.repetitions)
    seed: int = option("of the random points [0]", default=0, parse=parsers.seed)


class _Compared(Only, Elided, Devices, Scale, _Points, GivenInputs, FurtherSets, group="what to compare"):
    inputs: As[Values | None, str | None] = option(
        ".npz (x@0, x@1, … by device) or SCRIPT.py:FUNCTION: integers and preds; floats are drawn",
        "integers and preds, as indices: a file, `SCRIPT.py:FUNCTION`, or arrays; floats are drawn",
        default=None,
    )
    further_sets: bool = option(
        "compare what is equal at integers and preds that reach more of the programs, too [yes]",
        "programs that are equal are compared at further integers and preds, too",
        default=True,
    )
    explain: bool = option("laws, constants and unknown functions", default=False)


class ProveArguments(_Pair, _Compared, Workers, Accompanied):
    """What `prove` takes, and `hlotool prove`."""

    timeout: float = option(doc="seconds per pair", default=300.0)


@takes(ProveArguments)
def prove(asked: ProveArguments) -> ProveResult:
    """Whether programs are the same functions of real numbers.

    Both are evaluated at random points of a finite field, where nothing is rounded. Overflow, NaN and signs
    of zero are not seen.

    Returns:
        the relation of each pair, leaf by leaf, with a witness of what is unequal and what that rests on.

    Raises:
        DumpError: a path cannot be read.
        UsageError: there is nothing to compare, an impossible argument.

    >>> from hlotool import parse
    >>> text = "HloModule m ENTRY e {{ x = f32[3] parameter(0) ROOT y = f32[3] {}(x, x) }}"
    >>> prove(parse(text.format("add")), parse(text.format("multiply"))).relation
    <Relation.UNEQUAL: 'unequal'>
    """
    paths = [path for path in (asked.left, asked.right) if path is not None]
    must_exist(paths)
    import msgspec

    from hlotool.interface.report.command_records import ProveRecord, prove_exit_code
    from hlotool.interface.report.records import versions

    notes: list[str] = []
    with asked.course.waiting("reading the programs"):
        pairing = pairing_of(paths, options_of(asked), notes)
    record = ProveRecord(
        versions=versions(),
        left=paths[0],
        right=paths[1] if len(paths) > 1 else "",
        explain=asked.explain,
        pairs=_proved(pairing, asked),
        only_left=list(pairing.only_left),
        only_right=list(pairing.only_right),
        notes=notes,
    )
    return ProveResult(msgspec.structs.replace(record, exit_code=int(prove_exit_code(record))))


def pairing_of(paths: Sequence[str], options: RunOptions, notes: list[str]) -> Pairing:
    """What of one dump, or of two, is compared with what; notes get what was passed over."""
    from msgspec.structs import replace

    from hlotool.blame.diff_programs import Pairing, StagePair, pair_dumps
    from hlotool.runs.task import as_asked
    from hlotool.sources.directory import open_dump
    from hlotool.sources.records import modules_matching

    left, *others = (open_dump(path) for path in paths)
    left, *others = (
        replace(dump, modules=tuple(as_asked(m, options) for _, m in modules_matching([dump], options.only)))
        for dump in (left, *others)
    )
    notes += [note for dump in (left, *others) for note in dump.notes]
    if others:
        return pair_dumps(left, others[0])
    pairs = [StagePair(m.title, *m.pair, (m, m)) for m in left.modules if m.pair is not None]
    if not pairs:
        raise UsageError(f"{left.path}: {left.modules[0].unpaired_reason}; give the other program, too")
    notes += [f"{m.title}: {m.unpaired_reason}" for m in left.modules if m.pair is None]
    return Pairing(tuple(pairs))


def _proved(pairing: Pairing, asked: ProveArguments) -> list[ProvedRecord]:
    """Each pair in a worker process."""
    import msgspec

    from hlotool.errors import BackendFailed
    from hlotool.runs.exact.records import ProvedRecord
    from hlotool.runs.exact.task import ProveTask, failed_record
    from hlotool.system.executor import Done, Limits
    from hlotool.system.pool import Pool
    from hlotool.system.resources import worker_count

    tasks = [
        ProveTask(
            name=pair.name,
            owners=pair.owners,
            reference=pair.left,
            tested=pair.right,
            trials=asked.trials,
            seed=asked.seed,
            time_limit=asked.timeout,
            inputs=asked.inputs,
            further_sets=asked.further_sets,
            scale=asked.scale,
        )
        for pair in pairing.pairs
    ]
    limits = Limits(worker_count(asked.jobs), asked.timeout)
    decoder = msgspec.msgpack.Decoder(ProvedRecord)
    found: dict[int, ProvedRecord] = {}
    with (
        asked.course.counting(len(tasks), "pairs of programs") as done,
        Pool(limits, ("hlotool.runs.exact.task",), "field") as pool,
    ):
        for event in pool.run("hlotool.runs.exact.task:prove", tasks):
            if not isinstance(event, Done):
                continue
            task, value = tasks[event.index], event.value
            found[event.index] = (
                failed_record(task, value, event.seconds)
                if isinstance(value, BackendFailed)
                else decoder.decode(value)
            )
            done(task.name, "")
    return [found[number] for number in range(len(tasks))]
