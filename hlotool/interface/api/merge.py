"""`merge`: the records of the shards of a run become that of the whole run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlotool.errors import InputError, UsageError
from hlotool.interface.api.replay import ReplayResult, record_of
from hlotool.runs.options import parsers
from hlotool.runs.options.declared import Arguments, As, option, takes

if TYPE_CHECKING:
    from hlotool.interface.report.records import RunRecord

#: Versions on which verdicts depend.
_DECIDING = ("hlotool", "numpy", "ml_dtypes")


class MergeArguments(Arguments):
    """What `merge` takes, and `hlotool merge`."""

    records: As[str | os.PathLike[str] | Sequence[str | os.PathLike[str]], tuple[str, ...]] = option(
        "what `run --shard I/N --json` printed",
        "files, or URLs of such, that `hlotool run --shard I/N --json` printed, in any order",
        kw_only=False,
        nargs="+",
        metavar="RECORD",
        convert=parsers.paths_text,
    )


@takes(MergeArguments)
def merge(asked: MergeArguments) -> ReplayResult:
    """Make the records of all shards of a run one: that of the run without `shard`.

    Raises:
        InputError: a file cannot be read, or is no record of a run.
        DumpError: nor can that of a store.
        UsageError: the records are not the shards of one run, some are missing, or one is there twice.
    """
    import msgspec

    from hlotool.interface.api.calls import Ending
    from hlotool.interface.report.records import remembered_by_all

    names = asked.records
    shards = [_read(name) for name in names]
    _must_be_one_run(shards, names)
    first = shards[0]
    rows = sorted(
        (position, number, row)
        for number, shard in enumerate(shards)
        for position, row in zip(shard.positions, range(len(shard.modules)))
    )
    # What a missing backend stands for is in each of them.
    seen: dict[int, int] = {}
    chosen = [
        shards[number].modules[row]
        for position, number, row in rows
        if seen.setdefault(position, number) == number
    ]
    return ReplayResult(
        record_of(
            first.paths,
            msgspec.structs.replace(first.options, shard=None),
            chosen,
            Ending(interrupted=any(shard.interrupted for shard in shards)),
            list(dict.fromkeys(note for shard in shards for note in shard.notes)),
            sum(shard.seconds for shard in shards),
            first.found,
            remembered=remembered_by_all(shard.remembered for shard in shards),
        )
    )


def _read(path: str) -> RunRecord:
    import msgspec

    from hlotool.interface.report.records import RunRecord
    from hlotool.system.paths import read_file

    try:
        return msgspec.json.decode(read_file(path), type=RunRecord)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not what `hlotool run --json` prints: {error}") from error


def _must_be_one_run(shards: Sequence[RunRecord], names: Sequence[str]) -> None:
    """Raise UsageError unless they are all shards of one run."""
    import msgspec

    first = shards[0]
    count = first.options.shard_number[1]
    known: dict[int, str] = {}
    for shard, name in zip(shards, names):
        if shard.options.shard is None:
            raise UsageError(f"{name}: not of a shard: run it with --shard I/N")
        number, of = shard.options.shard_number
        if number in known:
            raise UsageError(f"{name}: shard {shard.options.shard} is in {known[number]}, too")
        known[number] = name
        if of != count:
            raise UsageError(f"{name}: shard {shard.options.shard}, and {names[0]} is one of {count}")
        for package in _DECIDING:
            own, others = shard.versions.get(package), first.versions.get(package)
            if own != others:
                raise UsageError(f"{name}: made with {package} {own}, and {names[0]} with {others}")
        same = msgspec.structs.replace(shard.options, shard=None, jobs=0)
        if same != msgspec.structs.replace(first.options, shard=None, jobs=0):
            raise UsageError(f"{name}: run with other options than {names[0]}")
        if (shard.paths, shard.found) != (first.paths, first.found):
            raise UsageError(f"{name}: of other modules than {names[0]}")
    if missing := [f"{number}/{count}" for number in range(1, count + 1) if number not in known]:
        raise UsageError(f"missing: shard {', '.join(missing)}")
