"""Damaged files against every reader: each must give a result or one of hlotool's own errors.

    PYTHONPATH=.:tests python -m benchmarks.hostile [--inputs N] [--seed N] [--only READER] [--texts DIR]

Counted as a find: any other exception, more than 2 seconds, more than 1 GB, or the death of the process.
The finds of a reader are told apart by the exception and the innermost line of hlotool in its traceback.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.hostile.readers import READERS, Reader, bring

_BATCH = 500
_SECONDS = 2.0
#: Address space above what the process has when it starts. NumPy and Python need some for themselves.
_BYTES = 1 << 30


def _read_one(reader: Reader, content: bytes, folder: Path) -> str:
    """Empty when the reader keeps its promise, else what it did."""
    from hlotool.errors import HlotoolError

    start = time.process_time()
    signal.setitimer(signal.ITIMER_REAL, 20)
    try:
        reader.read(content, folder)
    except HlotoolError:
        pass
    except _TooLong:
        return f"more than 20 s, in {_place(sys.exc_info()[2])}"
    except BaseException as error:
        return f"{type(error).__name__} in {_place(error.__traceback__)}: {str(error)[:80]}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    spent = time.process_time() - start
    return f"{spent:.0f} s" if spent > _SECONDS else ""


class _TooLong(BaseException):
    """The alarm rang."""


def _ring(*_: object) -> None:
    raise _TooLong


def _place(at: Any) -> str:
    """The innermost line of hlotool in a traceback."""
    frames = traceback.extract_tb(at)
    ours = [frame for frame in frames if "hostile" not in Path(frame.filename).parent.name]
    inner = next(
        (
            f
            for f in reversed(ours)
            if "/site-packages/" not in f.filename and "/lib/python" not in f.filename
        ),
        frames[-1],
    )
    return f"{'/'.join(Path(inner.filename).parts[-3:])}:{inner.lineno}"


def _batch(reader: Reader, seed: str, count: int, pipe: int) -> None:
    """Read `count` files in this (forked) process; the finds go into `pipe`, a line each."""
    signal.signal(signal.SIGALRM, _ring)
    generator = random.Random(seed)
    seeds = reader.seeds()
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _BYTES, used + _BYTES))
    with tempfile.TemporaryDirectory() as name, open(pipe, "w", encoding="utf-8") as out:
        for _ in range(count):
            content = generator.choice(seeds)
            for _ in range(generator.choice((1, 1, 2, 5))):
                content = reader.damage(generator, content)
            out.write(json.dumps(["begin", content.hex()]) + "\n")
            out.flush()
            if found := _read_one(reader, content, Path(name)):
                out.write(json.dumps(["find", found]) + "\n")


def _run_batch(reader: Reader, seed: str, count: int) -> tuple[int, list[tuple[str, bytes]]]:
    """How many files were read, and the finds with their files."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        status = 1
        try:
            _batch(reader, seed, count, write)
            status = 0
        finally:
            # An error of the campaign's own must not look like a batch that ended well.
            os._exit(status)
    os.close(write)
    finds, done, content = [], 0, b""
    with open(read, encoding="utf-8") as lines:
        for line in lines:
            kind, value = json.loads(line)
            if kind == "begin":
                done, content = done + 1, bytes.fromhex(value)
            else:
                finds.append((value, content))
    _, status = os.waitpid(child, 0)
    if status:
        finds.append((f"the process ended with status {os.waitstatus_to_exitcode(status)}", content))
    return done, finds


def campaign(reader: Reader, inputs: int, seed: int, keep: Path | None) -> dict[str, Any]:
    """Read `inputs` damaged files; one record with the finds, told apart by kind and place."""
    start, total = time.perf_counter(), 0
    counts: Counter[str] = Counter()
    examples: dict[str, str] = {}
    reader.seeds()
    while total < inputs:
        done, finds = _run_batch(reader, f"{seed}/{reader.name}/{total}", min(_BATCH, inputs - total))
        total += max(done, 1)
        for text, content in finds:
            kind = text.split(": ")[0]
            counts[kind] += 1
            if kind not in examples:
                examples[kind] = text
                if keep is not None:
                    (keep / f"{reader.name.replace(' ', '_')}-{len(examples)}").write_bytes(content)
    return {
        "reader": reader.name,
        "inputs": total,
        "seconds": round(time.perf_counter() - start, 1),
        "finds": {examples[kind]: count for kind, count in counts.most_common()},
    }


def main() -> int:
    """Run, print, return 1 where something was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=10_000, help="files per reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=READERS, action="append")
    parser.add_argument("--keep", type=Path, help="folder for an example of each find")
    parser.add_argument(
        "--texts", type=Path, help="folder of texts that are damaged, too, as pages and StableHLO"
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.keep is not None:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    if arguments.texts is not None:
        bring(arguments.texts)
    records = []
    for name in arguments.only or READERS:
        record = campaign(READERS[name], arguments.inputs, arguments.seed, arguments.keep)
        records.append(record)
        if not arguments.json:
            counts = f"{record['inputs']:>10} files {record['seconds']:>8} s  {len(record['finds'])} finds"
            print(f"{name:24}{counts}", flush=True)
            for text, count in record["finds"].items():
                print(f"    {count:>6}  {text}", flush=True)
    if arguments.json:
        print(json.dumps(records, indent=1))
    return int(any(record["finds"] for record in records))


if __name__ == "__main__":
    sys.exit(main())
