"""What is kept: backends and caches of this machine, baselines, bundles that are run again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from hlotool.errors import UsageError
from hlotool.interface.api.results import Result
from hlotool.runs.options import declared, parsers
from hlotool.runs.options.declared import Arguments, As, option, takes

if TYPE_CHECKING:
    from hlotool.blame.bisection.records import Verification
    from hlotool.interface.report.command_records import BisectRecord, CacheRecord, VerifyRecord
    from hlotool.interface.report.records import (
        BackendRecord,
        BackendsRecord,
        BaselineRecord,
        CheckRecord,
        KnownRecord,
        RunRecord,
    )


#: Seconds that loading a backend may take.
_TIMEOUT = 60.0


class BackendsResult(Result["BackendRecord"]):
    """The backends: a row for each."""

    record: BackendsRecord

    @property
    def rows(self) -> Sequence[BackendRecord]:
        """One record per backend, by name."""
        return self.record.backends


def list_backends() -> BackendsResult:
    """Every backend by name: available or why not; each is loaded in a process of its own."""
    import msgspec

    from hlotool.backends.registry import Description, listed_backends
    from hlotool.errors import BackendFailed
    from hlotool.interface.report.records import BackendRecord, BackendsRecord
    from hlotool.system.executor import Limits
    from hlotool.system.pool import Pool
    from hlotool.system.resources import worker_count

    names = listed_backends()
    with Pool(Limits(worker_count(0, len(names)), _TIMEOUT)) as pool:
        ends = pool.call_all("hlotool.backends.registry:describe_backend", names)
    records: list[BackendRecord] = []
    for name, end in zip(names, ends):
        if isinstance(end.value, BackendFailed):
            records.append(BackendRecord(name=name, available=False, reason=end.value.message))
            continue
        known = msgspec.msgpack.decode(end.value, type=Description)
        records.append(BackendRecord(name=name, available=not known.reason, **msgspec.structs.asdict(known)))
    return BackendsResult(BackendsRecord(backends=records))


class CacheResult(Result["CacheRecord"]):
    """What the store of verdicts holds."""

    record: CacheRecord

    @property
    def rows(self) -> Sequence[CacheRecord]:
        """The record itself."""
        return [self.record]

    @property
    def entries(self) -> int:
        """How many answers it holds."""
        return self.record.entries


class CacheArguments(Arguments):
    """What `cache` takes, and `hlotool cache`."""

    action: Literal["info", "prune", "clear"] = option(
        "count, remove what is old, or all",
        "`info` only looks; `prune` removes those that were not used for the longest time, until the"
        " others take no more than `size`; `clear` removes all, what is known of the files of dumps, and the"
        " environments of releases",
        default="info",
        kw_only=False,
        choices=("info", "prune", "clear"),
    )
    size: As[int | str | None, int | None] = option(
        "what may stay, as 100M [as much as a run leaves]", default=None, parse=parsers.byte_size
    )


@takes(CacheArguments)
def cache(asked: CacheArguments) -> CacheResult:
    """Look at what `replay` and `releases` keep for later calls, or remove some.

    Raises:
        UsageError: no such action, or an impossible size.
    """
    from hlotool.blame.releases import environments, remove_environments
    from hlotool.interface.report.command_records import CacheRecord
    from hlotool.system.cache import LIMIT, Contents, index_store, verdict_store

    action, limit = asked.action, LIMIT if asked.size is None else asked.size
    store = verdict_store()
    removed = removed_environments = Contents()
    if action == "prune":
        removed = store.prune(limit)
    elif action == "clear":
        removed = store.clear()
        index_store().clear()
        removed_environments = remove_environments()
    left, kept = store.contents(), environments()
    return CacheResult(
        CacheRecord(
            action=action,
            folder=str(store.folder),
            entries=left.entries,
            size=left.size,
            limit=limit,
            removed=removed.entries,
            removed_size=removed.size,
            environments=kept.entries,
            environments_size=kept.size,
            removed_environments=removed_environments.entries,
        )
    )


if TYPE_CHECKING:
    _R = TypeVar("_R", RunRecord, CheckRecord, BisectRecord)


class BaselineResult(Result["KnownRecord"]):
    """A baseline: a row for each known finding."""

    record: BaselineRecord

    @property
    def rows(self) -> Sequence[KnownRecord]:
        """One record per finding."""
        return self.record.known


@dataclass(frozen=True, slots=True)
class Known:
    """A baseline that a call is judged by.

    Attributes:
        baseline: its findings.
        file: that it was read from.
    """

    baseline: BaselineRecord
    file: str

    def judge(self, record: _R) -> _R:
        """The record with what is new about it; only that decides about the exit code."""
        from hlotool.interface.report.baseline import compared_with

        return compared_with(record, self.baseline, self.file)


def known_before(baseline: str | None) -> Known | None:
    """What a baseline knows, read before anything runs; None for none.

    Raises:
        UsageError: it cannot be read, or is no baseline.
    """
    if baseline is None:
        return None
    from hlotool.interface.report.baseline import read_baseline

    return Known(read_baseline(baseline), baseline)


class BaselineArguments(Arguments):
    """What `update_baseline` takes, and `hlotool baseline update`."""

    action: str = option("the only one", init=False, kw_only=False, choices=("update",))
    file: As[str | os.PathLike[str], str] = option(
        "the baseline",
        "the baseline, or its URL; it need not be there yet",
        kw_only=False,
        metavar="FILE",
        convert=declared.path_text,
    )
    records: As[str | os.PathLike[str] | Sequence[str | os.PathLike[str]], tuple[str, ...]] = option(
        "what a command printed with --json",
        "files, or URLs of such, of what commands printed with `--json`",
        kw_only=False,
        nargs="+",
        metavar="RECORD",
        convert=parsers.paths_text,
    )


@takes(BaselineArguments)
def update_baseline(asked: BaselineArguments) -> BaselineResult:
    """Write what is known from now on, as `hlotool baseline update` does.

    What the file knows of modules that the records did not look at stays known.

    Raises:
        UsageError: a file cannot be read or written, or is no record with findings.
        DumpError: nor can that of a store.
    """
    import msgspec

    from hlotool.interface.report.baseline import read_baseline, read_record, updated
    from hlotool.interface.report.outcomes import has_outcomes
    from hlotool.system.paths import exists, write_file
    from hlotool.system.records import encoded
    from hlotool.system.store_access import refuse_web

    path, names = asked.file, asked.records
    refuse_web(path)
    old = read_baseline(path) if exists(path) else None
    known = [read_record(name) for name in names]
    for record, name in zip(known, names):
        if not has_outcomes(record):
            raise UsageError(f"{name}: {record.schema} is no record with findings")
    found = updated(old, known, path)
    write_file(path, [encoded(found, msgspec.json.encode) + b"\n"])
    return BaselineResult(found)


class VerifyResult(Result["Verification"]):
    """Whether bundles still fail: a row for each."""

    record: VerifyRecord

    @property
    def rows(self) -> Sequence[Verification]:
        """One record per bundle."""
        return self.record.bundles


class VerifyArguments(Arguments):
    """What `verify` takes, and `hlotool repro verify`."""

    action: str = option("the only one", init=False, kw_only=False, choices=("verify",))
    folders: As[str | os.PathLike[str] | Sequence[str | os.PathLike[str]], tuple[str, ...]] = option(
        "folder of a bundle", kw_only=False, nargs="+", metavar="DIR", convert=parsers.paths_text
    )
    backend: str | None = option("instead of the one that the bundle names", default=None, metavar="NAME")
    timeout: float = option("of its command [300]", default=300.0, parse=parsers.seconds)
    trust: bool = option(
        "run the command and the backend options that a bundle names", default=False, once=True
    )


@takes(VerifyArguments)
def verify(asked: VerifyArguments) -> VerifyResult:
    """Run repro bundles again, as `hlotool repro verify` does.

    Returns:
        `exit_code` is 1 when a bundle still fails in the same way, 0 when none fails any more, 5 when one
        fails in another way.

    Raises:
        UsageError: a folder holds no bundle, or one that has to be trusted is not.
    """
    from hlotool.blame.repro.verify import verify as verify_bundle
    from hlotool.interface.report.command_records import VerifyRecord, verify_exit_code
    from hlotool.system.paths import here

    wanted = asked.backend, asked.timeout, asked.trust
    found = [verify_bundle(Path(here(folder)), *wanted) for folder in asked.folders]
    return VerifyResult(VerifyRecord(bundles=found, exit_code=verify_exit_code(found)))
