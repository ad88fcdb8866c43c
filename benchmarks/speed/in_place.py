"""Programs whose comparison takes more than the memory there is: do they run as they are, and within it?

    python -m benchmarks.speed.in_place [--limit SIZE] [--cases N] [--seed S] [--factors 1,2,3,4]
                                         [--json FILE]

Programs of this file, and N drawn ones, get sizes with which a comparison that holds all its copies would
take each factor times the limit. Each is replayed against itself (or against a program that rounds otherwise)
in processes of its own, twice: within `--memory-limit`, and with all the memory of the machine. Told are:
whether it ran at full size, with smaller sizes, or not; the largest memory of the process that ran it,
without pages of files, which the system may take back, and with them; the time beside the other run; and
whether the expected results of both runs have the same bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks import ROOT
from hlotool.parser.reader import parse_module
from hlotool.rewrite.scale.limits import COPIES, need_of
from hlotool.system.user_input import size_of, size_text

#: A program of n by n arrays: before and after.
Pair = tuple[str, str]
_DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
_SUM = "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"
_MAX = "max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }\n"
_SECONDS = 240


@dataclass(frozen=True)
class Ran:
    """One replay.

    Attributes:
        verdict: of its only row.
        how: `as it is`, `values on disk`, `smaller sizes` or `not`.
        anonymous: most bytes of one process without pages of files.
        resident: likewise with them.
        seconds: from start to end.
        results: bytes of the expected results.
    """

    verdict: str
    how: str
    anonymous: int
    resident: int
    seconds: float
    results: list[bytes]


def _entry(lines: list[str], before: str = "") -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"HloModule m\n\n{before}ENTRY e {{\n{body}\n}}\n"


def layers(n: int) -> Pair:
    """Products with six matrices, one after the other: nearly all of it is arguments."""
    lines = [f"x = f32[64,{n}] parameter(0)"]
    value = "x"
    for k in range(1, 7):
        lines.append(f"w{k} = f32[{n},{n}] parameter({k})")
        lines.append(f"d{k} = f32[64,{n}] dot({value}, w{k}), {_DOT}")
        lines.append(f"t{k} = f32[64,{n}] tanh(d{k})")
        value = f"t{k}"
    lines.append(f"ROOT r = f32[64,{n}] negate({value})")
    return (_entry(lines),) * 2


def update(n: int) -> Pair:
    """Moments and weights after a step: arguments and results are all there is."""
    shape = f"f32[{n},{n}]"
    lines = [f"{name} = {shape} parameter({k})" for k, name in enumerate(("w", "g", "m", "v"))]
    lines += ["c = f32[] constant(0.9)", f"cs = {shape} broadcast(c), dimensions={{}}"]
    lines += [
        f"gg = {shape} multiply(g, g)",
        f"mm = {shape} multiply(m, cs)",
        f"vv = {shape} multiply(v, cs)",
    ]
    lines += [f"m2 = {shape} add(mm, g)", f"v2 = {shape} add(vv, gg)", f"s = {shape} sqrt(v2)"]
    lines += ["one = f32[] constant(1)", f"ones = {shape} broadcast(one), dimensions={{}}"]
    lines += [f"below = {shape} add(s, ones)", f"q = {shape} divide(m2, below)"]
    lines += [f"w2 = {shape} subtract(w, q)"]
    lines += [f"ROOT r = ({shape}, {shape}, {shape}) tuple(w2, m2, v2)"]
    return (_entry(lines),) * 2


def attention(n: int) -> Pair:
    """A softmax over n scores: temporaries are all there is. The other side divides last."""
    shape = f"f32[{n},{n}]"
    lines = [
        f"q = f32[{n},64] parameter(0)",
        f"k = f32[64,{n}] parameter(1)",
        f"v = f32[{n},64] parameter(2)",
    ]
    lines += [f"s = {shape} dot(q, k), {_DOT}", "low = f32[] constant(-inf)", "z = f32[] constant(0)"]
    lines += [f"m = f32[{n}] reduce(s, low), dimensions={{1}}, to_apply=max"]
    lines += [f"ms = {shape} broadcast(m), dimensions={{0}}", f"d = {shape} subtract(s, ms)"]
    lines += [f"x = {shape} exponential(d)", f"t = f32[{n}] reduce(x, z), dimensions={{1}}, to_apply=sum"]
    first = [f"ts = {shape} broadcast(t), dimensions={{0}}", f"p = {shape} divide(x, ts)"]
    first += [f"ROOT r = f32[{n},64] dot(p, v), {_DOT}"]
    last = [f"y = f32[{n},64] dot(x, v), {_DOT}", f"ts = f32[{n},64] broadcast(t), dimensions={{0}}"]
    last += [f"ROOT r = f32[{n},64] divide(y, ts)"]
    return _entry(lines + first, _SUM + _MAX), _entry(lines + last, _SUM + _MAX)


def branches(n: int) -> Pair:
    """Five products of one argument, of each of which a row is read only when all are there."""
    shape = f"f32[{n},{n}]"
    lines = [f"x = {shape} parameter(0)", f"y = f32[{n},64] parameter(1)", f"z = f32[64,{n}] parameter(2)"]
    for k in range(5):
        lines.append(f"c{k} = f32[] constant({k + 1})")
        lines.append(f"b{k} = f32[{n},64] broadcast(c{k}), dimensions={{}}")
        lines.append(f"a{k} = f32[{n},64] add(y, b{k})")
        lines.append(f"o{k} = {shape} dot(a{k}, z), {_DOT}")
        lines.append(f"m{k} = {shape} multiply(o{k}, x)")
    lines += [f"r{k} = f32[1,{n}] slice(m{k}), slice={{[0:1], [0:{n}]}}" for k in range(5)]
    row = f"f32[1,{n}]"
    lines.append(f"ROOT r = ({', '.join([row] * 5)}) tuple({', '.join(f'r{k}' for k in range(5))})")
    return (_entry(lines),) * 2


def loop(n: int) -> Pair:
    """Sixteen rows of a large buffer are replaced, one in each iteration."""
    state = f"(s32[], f32[{n},{n}], f32[1,{n}])"
    inside = (
        f"body {{\n  p = {state} parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n"
        f"  b = f32[{n},{n}] get-tuple-element(p), index=1\n  u = f32[1,{n}] get-tuple-element(p), index=2\n"
        f"  z = s32[] constant(0)\n  one = s32[] constant(1)\n"
        f"  b2 = f32[{n},{n}] dynamic-update-slice(b, u, i, z)\n  j = s32[] add(i, one)\n"
        f"  ROOT t = {state} tuple(j, b2, u)\n}}\n"
        f"condition {{\n  p = {state} parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n"
        f"  k = s32[] constant(16)\n  ROOT c = pred[] compare(i, k), direction=LT\n}}\n"
    )
    lines = ["z = s32[] constant(0)", f"b = f32[{n},{n}] parameter(0)", f"u = f32[1,{n}] parameter(1)"]
    lines += [f"t = {state} tuple(z, b, u)", f"w = {state} while(t), condition=condition, body=body"]
    lines += [f"ROOT r = f32[{n},{n}] get-tuple-element(w), index=1"]
    return (_entry(lines, inside),) * 2


def mixed(n: int) -> Pair:
    """Weights in bf16 that are used in f32, at the beginning and at the end."""
    wide, narrow = f"f32[{n},{n}]", f"bf16[{n},{n}]"
    lines = [f"w = {narrow} parameter(0)", f"x = f32[{n},64] parameter(1)", f"y = f32[64,{n}] parameter(2)"]
    lines += [f"f = {wide} convert(w)", f"a = f32[{n},64] dot(f, x), {_DOT}", f"o = {wide} dot(a, y), {_DOT}"]
    lines += [f"c = f32[{2 * n},{n}] concatenate(o, o), dimensions={{0}}"]
    lines += [
        f"t = f32[64,{n}] slice(c), slice={{[0:64], [0:{n}]}}",
        f"ROOT r = f32[64,{n}] dot(t, f), {_DOT}",
    ]
    return (_entry(lines),) * 2


OWN: dict[str, Callable[[int], Pair]] = {
    one.__name__: one for one in (layers, update, attention, branches, loop, mixed)
}


def drawn(seed: str) -> Callable[[int], Pair]:
    """A random graph of operations on n by n arrays."""

    def made(n: int) -> Pair:
        rng, shape = random.Random(seed), f"f32[{n},{n}]"
        arguments = rng.randint(1, 4)
        lines = [f"p{k} = {shape} parameter({k})" for k in range(arguments)]
        names = [f"p{k}" for k in range(arguments)]
        for k in range(rng.randint(6, 14)):
            a, b = rng.choice(names[-5:]), rng.choice(names)
            lines += {
                "dot": [
                    f"l{k} = f32[{n},32] slice({a}), slice={{[0:{n}], [0:32]}}",
                    f"m{k} = f32[32,{n}] slice({b}), slice={{[0:32], [0:{n}]}}",
                    f"v{k} = {shape} dot(l{k}, m{k}), {_DOT}",
                ],
                "tanh": [f"v{k} = {shape} tanh({a})"],
                "add": [f"v{k} = {shape} add({a}, {b})"],
                "multiply": [f"v{k} = {shape} multiply({a}, {b})"],
                "transpose": [f"v{k} = {shape} transpose({a}), dimensions={{1,0}}"],
                "reverse": [f"v{k} = {shape} reverse({a}), dimensions={{0}}"],
                "clamp": [f"n{k} = {shape} negate({b})", f"v{k} = {shape} maximum({a}, n{k})"],
                "narrow": [f"h{k} = bf16[{n},{n}] convert({a})", f"v{k} = {shape} convert(h{k})"],
                "roll": [
                    f"rest{k} = f32[{n - 1},{n}] slice({a}), slice={{[1:{n}], [0:{n}]}}",
                    f"top{k} = f32[1,{n}] slice({a}), slice={{[0:1], [0:{n}]}}",
                    f"v{k} = {shape} concatenate(rest{k}, top{k}), dimensions={{0}}",
                ],
            }[rng.choice(_OPERATIONS)]
            names.append(f"v{k}")
        results = [names[-1], *rng.sample(names[arguments:-1], rng.randint(0, 2))]
        lines.append(f"ROOT r = ({', '.join([shape] * len(results))}) tuple({', '.join(results)})")
        return (_entry(lines),) * 2

    return made


_OPERATIONS = ("dot", "tanh", "add", "multiply", "transpose", "reverse", "clamp", "narrow", "roll")


def sized(make: Callable[[int], Pair], wanted: int) -> tuple[Pair, int]:
    """The largest program whose comparison takes no more than `wanted` bytes by itself, and what it takes."""

    def taken(n: int) -> int:
        return COPIES * need_of(*map(parse_module, make(n))).memory

    low, high = 128, 1 << 17
    while high - low > 32:
        middle = (low + high) // 64 * 32
        low, high = (middle, high) if taken(middle) <= wanted else (low, middle)
    return make(low), taken(low)


def replayed(pair: Pair, options: list[str]) -> Ran:
    """One replay in processes of its own."""
    with tempfile.TemporaryDirectory(prefix="hlotool-in-place-") as name:
        folder = Path(name, "dump")
        folder.mkdir()
        for stage, text in zip(("before_optimizations", "cpu_after_optimizations"), pair):
            (folder / f"module_0001.m.{stage}.txt").write_text(text)
        command = [sys.executable, "-m", "hlotool", "run", str(folder), "--json", "--no-cache", "--jobs", "1"]
        command += ["--timeout", str(_SECONDS), "--save-outputs", f"{name}/out", "--no-first-divergence"]
        start = time.perf_counter()
        process = subprocess.Popen(
            [*command, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        peaks = _Peaks(process.pid)
        output, _ = process.communicate()
        seconds = time.perf_counter() - start
        peaks.stop()
        row = json.loads(output)["modules"][0]
        files = sorted(Path(name, "out").rglob("*.expected.npy"))
        how = "as it is" if row["leaves"] else "not"
        how = "values on disk" if row["in_place"] else "smaller sizes" if row["scaled"] else how
        # In row-major order: a transposed view is saved column by column, its copy on disk is not.
        results = [np.load(one).tobytes() for one in files] if how != "smaller sizes" else []
        return Ran(row["verdict"], how, peaks.anonymous, peaks.resident, seconds, results)


class _Peaks(threading.Thread):
    """Looks at a process and those that it started, again and again.

    Attributes:
        anonymous: see `Ran`.
        resident: likewise.
    """

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.anonymous = self.resident = 0
        self._pid = pid
        self._ended = threading.Event()
        self.start()

    def stop(self) -> None:
        """No more."""
        self._ended.set()
        self.join()

    def run(self) -> None:
        """See `Thread.run`."""
        while not self._ended.wait(0.02):
            for pid in self._family():
                lines = _text(Path(f"/proc/{pid}/status")).splitlines()
                found = {line.split(":")[0]: line.split()[1] for line in lines if line.endswith("kB")}
                self.anonymous = max(self.anonymous, int(found.get("RssAnon", 0)) << 10)
                self.resident = max(self.resident, int(found.get("VmHWM", 0)) << 10)

    def _family(self) -> Iterator[int]:
        waiting = [self._pid]
        while waiting:
            pid = waiting.pop()
            yield pid
            waiting += map(int, _text(Path(f"/proc/{pid}/task/{pid}/children")).split())


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--limit", default="1G")
    parser.add_argument("--cases", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--factors", default="1,2,3,4")
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    options = parser.parse_args()
    limit = size_of(options.limit) or 0
    factors = [float(factor) for factor in options.factors.split(",")]
    cases = [(name, make, factor) for name, make in OWN.items() for factor in factors]
    for number in range(options.cases):
        seed = f"{options.seed} {number}"
        cases.append((f"drawn {number}", drawn(seed), factors[number % len(factors)]))
    found = []
    sizes = f"{'memory':>10}{'with files':>11}{'s':>7}{'beside':>8}  bytes"
    print(f"{'program':12}{'times':>6}  {'how':16}{'verdict':12}{sizes}")
    for name, make, factor in cases:
        if options.only not in name:
            continue
        pair, taken = sized(make, int(factor * limit))
        tight = replayed(pair, ["--memory-limit", options.limit])
        free = replayed(pair, ["--memory-limit", "none", "--scale", "never", "--no-further-sets"])
        same = "OTHER" if tight.results != free.results else "equal"
        same = same if tight.results else "–"
        print(
            f"{name:12}{taken / limit:6.2f}  {tight.how:16}{tight.verdict:12}{size_text(tight.anonymous):>10}"
            f"{size_text(tight.resident):>11}{tight.seconds:7.1f}{free.seconds:8.1f}  {same}",
            flush=True,
        )
        record = asdict(tight) | {"name": name, "times": taken / limit, "free": free.seconds, "bytes": same}
        found.append({key: value for key, value in record.items() if key != "results"})
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1))
    full = [one for one in found if one["how"] in ("as it is", "values on disk")]
    other = sum(one["bytes"] == "OTHER" for one in found)
    most = max((one["anonymous"] for one in full), default=0)
    summary = f"{len(full)} of {len(found)} at full size, {other} with other bytes"
    print(f"{summary}; at most {size_text(most)} of memory")


if __name__ == "__main__":
    main()
