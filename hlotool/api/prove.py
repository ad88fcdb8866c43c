"""`prove`: are two programs the same function of real numbers?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hlotool.api.diff import must_exist
from hlotool.api.given import checked
from hlotool.api.options import options_from
from hlotool.api.results import FindingsResult
from hlotool.api.spool import Program, Values, path_of, values_path
from hlotool.errors import UsageError

if TYPE_CHECKING:
    from hlotool.diff.programs import Pairing
    from hlotool.replay.exact.records import ProvedRecord
    from hlotool.replay.exact.result import Relation
    from hlotool.replay.options import RunOptions
    from hlotool.report.prove_records import ProveRecord


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
        from hlotool.replay.exact.result import Relation

        found = {Relation(pair.relation) for pair in self.rows}
        if Relation.UNEQUAL in found or self.record.only_left or self.record.only_right:
            return Relation.UNEQUAL
        if not found or Relation.REFUSED in found:
            return Relation.REFUSED
        return Relation.EQUAL if found == {Relation.EQUAL} else Relation.EQUAL_WHERE

    def __repr__(self) -> str:
        return f"<ProveResult: {self.relation.value}>"


def prove(
    left: Program,
    right: Program | None = None,
    *,
    only: str | None = None,
    elided: str = "refuse",
    replicas: int = 0,
    partitions: int = 0,
    scale: str = "auto",
    trials: int = 2,
    seed: int = 0,
    inputs: Values | None = None,
    further_sets: bool = True,
    explain: bool = False,
    timeout: float = 300.0,
    jobs: int = 0,
) -> ProveResult:
    """Whether programs are the same functions of real numbers.

    Both are evaluated at random points of a finite field, where nothing is rounded. Overflow, NaN and signs
    of zero are not seen.

    Args:
        left: a file of HLO, a dump, an archive, or a module: as it should be.
        right: the same kind of thing; None: what the last stages of `left` became.
        only: regular expression of the modules' names.
        elided: constants that are not in the dump: `refuse`, or `generate` the same values for both programs.
        replicas: of programs that do not say.
        partitions: likewise.
        scale: programs that do not fit run with smaller sizes: `auto`, `never`, sizes by the old ones
            (`4096=7,512=3`), or the memory to fit (`8G`).
        trials: random points.
        seed: of the first one.
        inputs: integers and preds, as indices: a file, `SCRIPT.py:FUNCTION`, or arrays; floats are drawn.
        further_sets: programs that are equal are compared at integers and preds of further sets, too.
        explain: the report lists laws, constants and unknown functions.
        timeout: seconds per pair.
        jobs: processes; 0 for as many as suit the machine.

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
    given = dict(locals())
    values = values_path(inputs)
    checked(
        {"only": only, "trials": trials, "seed": seed, "inputs": values, "timeout": timeout, "jobs": jobs}
    )
    paths = [path_of(program) for program in (left, right) if program is not None]
    must_exist(paths)
    import msgspec

    from hlotool.report.prove_records import ProveRecord, prove_exit_code
    from hlotool.report.records import versions

    notes: list[str] = []
    pairing = pairing_of(paths, options_from(given), notes)
    record = ProveRecord(
        versions=versions(),
        left=paths[0],
        right=paths[1] if len(paths) > 1 else "",
        explain=explain,
        pairs=_proved(pairing, trials, seed, timeout, values, further_sets, scale, jobs),
        only_left=list(pairing.only_left),
        only_right=list(pairing.only_right),
        notes=notes,
    )
    return ProveResult(msgspec.structs.replace(record, exit_code=int(prove_exit_code(record))))


def pairing_of(paths: Sequence[str], options: RunOptions, notes: list[str]) -> Pairing:
    """What of one dump, or of two, is compared with what; notes get what was passed over."""
    from hlotool.diff.programs import Pairing, StagePair, pair_dumps
    from hlotool.dump.directory import open_dump
    from hlotool.dump.records import modules_matching
    from hlotool.replay.task import as_asked

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


def _proved(
    pairing: Pairing,
    trials: int,
    seed: int,
    timeout: float,
    inputs: str | None,
    further_sets: bool,
    scale: str,
    jobs: int,
) -> list[ProvedRecord]:
    """Each pair in a worker process."""
    import msgspec

    from hlotool.errors import BackendFailed
    from hlotool.replay.exact.records import ProvedRecord
    from hlotool.replay.exact.task import ProveTask, failed_record
    from hlotool.workers.cores import worker_count
    from hlotool.workers.executor import Limits
    from hlotool.workers.pool import Pool

    tasks = [
        ProveTask(
            name=pair.name,
            owners=pair.owners,
            reference=pair.left,
            tested=pair.right,
            trials=trials,
            seed=seed,
            time_limit=timeout,
            inputs=inputs,
            further_sets=further_sets,
            scale=scale,
        )
        for pair in pairing.pairs
    ]
    with Pool(Limits(worker_count(jobs), timeout), ("hlotool.replay.exact.task",), "field") as pool:
        ends = pool.call_all("hlotool.replay.exact.task:prove", tasks)
    decoder = msgspec.msgpack.Decoder(ProvedRecord)
    return [
        failed_record(task, end.value, end.seconds)
        if isinstance(end.value, BackendFailed)
        else decoder.decode(end.value)
        for task, end in zip(tasks, ends)
    ]
