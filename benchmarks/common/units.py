"""Units of work whose records are kept as lines of JSON: a benchmark can be stopped and go on later."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import msgspec

#: From the name of a unit to its records; it can be sent to another process.
Work = Callable[[str], list[Any]]


class UnitDone(msgspec.Struct, frozen=True, tag="done"):
    """Everything about one unit stands before this line."""

    unit: str
    part: str
    seconds: float


def read_records(path: Path, decoder: msgspec.json.Decoder[Any]) -> Iterator[Any]:
    """All that was written of units that are done; the rest is measured again."""
    pending: dict[str, list[Any]] = {}
    if not path.exists():
        return
    for line in path.read_bytes().splitlines():
        try:
            record = decoder.decode(line)
        except msgspec.DecodeError:
            continue
        if isinstance(record, UnitDone):
            yield from pending.pop(record.unit, ())
            yield record
        else:
            pending.setdefault(record.unit, []).append(record)


_ENCODER = msgspec.json.Encoder()


def write_records(path: Path, records: Iterable[Any]) -> None:
    """Append, in one piece."""
    data = b"".join(_ENCODER.encode(record) + b"\n" for record in records)
    with path.open("ab") as file:
        file.write(data)


def measured(
    path: Path,
    decoder: msgspec.json.Decoder[Any],
    names: Sequence[str],
    work: Work,
    *,
    processes: int = 1,
    again: bool = False,
    said: Callable[[list[Any]], str] = lambda records: "",
) -> Iterator[Any]:
    """The records of all units, those that are not known yet measured in processes.

    Args:
        path: where they are kept; its stem names the part of the benchmark.
        decoder: of a line of it.
        names: of the units.
        work: measures one unit.
        processes: that work at the same time.
        again: what is known does not count.
        said: for the line of progress: what the records of a unit show.
    """
    if again:
        path.unlink(missing_ok=True)
    known = list(read_records(path, decoder))
    done = {r.unit for r in known if isinstance(r, UnitDone)}
    yield from (r for r in known if r.unit in names)
    missing = [n for n in names if n not in done]
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        futures = {pool.submit(_worked, work, path.stem, name): name for name in missing}
        for number, future in enumerate(as_completed(futures), start=1):
            records = future.result()
            write_records(path, records)
            line = f"{number}/{len(missing)} {futures[future]}: {len(records) - 1} judged{said(records)}"
            print(line, file=sys.stderr, flush=True)
            yield from records


def _worked(work: Work, part: str, name: str) -> list[Any]:
    began = time.perf_counter()
    try:
        records = work(name)
    except Exception as error:
        # Not every exception survives the way to another process.
        raise RuntimeError(f"{name}:\n{traceback.format_exc()}") from error
    return [*records, UnitDone(name, part, time.perf_counter() - began)]
