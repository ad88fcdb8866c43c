"""How fast texts are parsed: hlotool beside XLA's own parser (jaxlib), in one run, CPU time.

    python -m benchmarks.speed.parse [DIRECTORY] [--repeat N] [--no-xla] [--inspect]

Every file is parsed with empty caches; the median of N runs counts. Without a directory: ../shared/hlo/models
where that exists, else corpus/. With --inspect our side is all that the command `inspect` does with a text:
it reads and counts, XLA reads.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from statistics import median

from benchmarks import ROOT, SHARED

SUFFIXES = (".txt", ".hlo")


def default_directory() -> Path:
    models = SHARED / "hlo" / "models"
    return models if models.is_dir() else ROOT / "corpus"


def texts(directory: Path) -> list[tuple[Path, str]]:
    """The files of a directory tree that parse, by size; not those made to be wrong, which XLA may die of."""
    from hlotool.errors import HloSyntaxError
    from hlotool.parser.reader import parse_module

    found: list[tuple[Path, str]] = []
    files = (p for p in directory.rglob("*") if p.suffix in SUFFIXES and "malformed" not in p.parts)
    for path in sorted(files):
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        try:
            parse_module(text)
        except HloSyntaxError:
            continue
        found.append((path, text))
    return sorted(found, key=lambda item: len(item[1]))


def seconds(parse: Callable[[str], object], text: str, repeat: int) -> float:
    """Median CPU time of one parse."""
    times = []
    for _ in range(repeat):
        begin = time.process_time()
        parse(text)
        times.append(time.process_time() - begin)
    return median(times)


def xla_parser() -> Callable[[str], object] | None:
    try:
        jaxlib = import_module("jaxlib._hlo")
    except ImportError:
        return None
    parse: Callable[[str], object] = jaxlib.hlo_module_from_text
    return parse


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("directory", nargs="?", type=Path, default=default_directory())
    arguments.add_argument("--repeat", type=int, default=3, help="runs per file (default 3)")
    arguments.add_argument("--no-xla", action="store_true", help="do not compare")
    arguments.add_argument("--inspect", action="store_true", help="read what `inspect` needs, and count")
    options = arguments.parse_args()
    from hlotool.checks.inspect.programs import stage_info
    from hlotool.parser.reader import forget_texts, parse_module
    from hlotool.system.resources import collector_off

    def first(text: str) -> object:
        forget_texts()
        if not options.inspect:
            return parse_module(text)
        with collector_off():
            return stage_info(parse_module(text, reads_literals=False), "", "")

    xla = None if options.no_xla else xla_parser()
    total_bytes = total_ours = total_xla = 0.0
    ratios = []
    print(f"{'bytes':>9}  {'hlotool MB/s':>12}  {'XLA MB/s':>8}  file")
    for path, text in texts(options.directory):
        size = len(text.encode("utf-8", "surrogateescape"))
        ours = seconds(first, text, options.repeat)
        theirs = seconds(xla, text, options.repeat) if xla is not None else 0.0
        total_bytes, total_ours, total_xla = total_bytes + size, total_ours + ours, total_xla + theirs
        ratios.append(theirs / ours)
        rate = f"{size / theirs / 1e6:8.1f}" if theirs else f"{'-':>8}"
        print(f"{size:>9}  {size / ours / 1e6:12.1f}  {rate}  {path.relative_to(options.directory)}")
    if not total_ours:
        print(f"no HLO text below {options.directory}", file=sys.stderr)
        return 2
    print(f"\n{total_bytes / 1e6:.2f} MB: hlotool {total_bytes / total_ours / 1e6:.1f} MB/s", end="")
    if total_xla:
        print(f", XLA {total_bytes / total_xla / 1e6:.1f} MB/s, ratio {total_xla / total_ours:.2f}", end="")
        print(f"; of the files {median(ratios):.2f} at the median, {min(ratios):.2f} at least")
    else:
        print()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
