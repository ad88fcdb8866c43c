"""Whether anything has become slower or larger than the committed table says.

    python -m benchmarks.run_all --quick [--write] [--repeat N]

Prints, for each row of `benchmarks.speed.first_verdict`, what was measured in units of the ruler, in the
table and now, and ends with 1 where a row takes 20 % more of the processor or of memory. A row that is worse
is measured once more: other processes may have taken the caches. `--write` writes the table, with the load.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
from collections.abc import Mapping
from datetime import date

from benchmarks import ROOT
from benchmarks.speed.first_verdict import Measured, measure

TABLE = ROOT / "benchmarks" / "results" / "first_verdict.md"
#: How much more is worse, and not the machine.
_WORSE = 1.2

_ROW = re.compile(r"^\| (.+?) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", re.MULTILINE)


def table_of(rows: Mapping[str, Measured], load: float) -> str:
    """The table, as it is committed."""
    lines = [
        f"| {title} | {found.rulers:.2f} | {found.seconds:.2f} | {found.megabytes:.0f} |"
        for title, found in rows.items()
    ]
    python = platform.python_version()
    return "\n".join(
        [
            "# First verdicts\n",
            "## How soon commands answer: `python -m benchmarks.run_all --quick --write`\n",
            f"{date.today():%d %B %Y}, Python {python}, {os.cpu_count()} cores, one of them used;"
            f" load average {load:.1f}.",
            "Processor time of all processes, the least of several runs, in seconds and in units of",
            "`python -c 'import numpy'`, measured in between; memory of the largest process.\n",
            "| command | rulers | s | MB |",
            "|---|---|---|---|",
            *lines,
            "",
        ]
    )


def read_table(text: str) -> dict[str, Measured]:
    """The rows of the first table."""
    own, _ = _sections(text)
    return {
        title: Measured(float(seconds), float(rulers), float(megabytes))
        for title, rulers, seconds, megabytes in _ROW.findall(own)
    }


def _sections(text: str) -> tuple[str, str]:
    """The section with the table, and all others."""
    own, *others = re.split(r"^(?=## )", text.partition("\n## ")[2], flags=re.MULTILINE)
    return own, "".join(others)


def worse(now: Measured, before: Measured) -> bool:
    """Whether a command takes more than the machine explains."""
    return now.rulers > _WORSE * before.rulers or now.megabytes > _WORSE * before.megabytes


def compared(found: Mapping[str, Measured], known: Mapping[str, Measured]) -> list[str]:
    """Print each row beside the table's; the titles of those that are worse."""
    print(f"{'':40}{'rulers':>8}{'table':>8}{'ratio':>8}{'MB':>8}{'table':>8}{'ratio':>8}")
    failed = []
    for title, now in found.items():
        before = known.get(title)
        if before is None:
            print(f"{title:40}{now.rulers:8.2f}{'new':>8}{'':8}{now.megabytes:8.0f}", flush=True)
            continue
        if is_worse := worse(now, before):
            failed.append(title)
        print(
            f"{title:40}{now.rulers:8.2f}{before.rulers:8.2f}{now.rulers / before.rulers:8.2f}"
            f"{now.megabytes:8.0f}{before.megabytes:8.0f}{now.megabytes / before.megabytes:8.2f}"
            f"{'  WORSE' if is_worse else ''}",
            flush=True,
        )
    return failed


def main() -> int:
    """Measure, compare; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", required=True, help="the only size there is")
    parser.add_argument("--write", action="store_true", help="write the table")
    parser.add_argument("--repeat", type=int, default=6)
    asked = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"load average {load:.1f} on {os.cpu_count()} cores")
    known = read_table(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    found = {row.title: now for row, now in measure(asked.quick, asked.repeat)}
    if slow := {title for title, now in found.items() if title in known and worse(now, known[title])}:
        found |= {row.title: now for row, now in measure(asked.quick, asked.repeat, slow)}
    failed = compared(found, known)
    if asked.write:
        old = TABLE.read_text(encoding="utf-8") if TABLE.exists() else ""
        TABLE.write_text("\n".join([table_of(found, load), _sections(old)[1]]), encoding="utf-8")
        return 0
    print(f"load average {os.getloadavg()[0]:.1f} at the end")
    if failed:
        print(f"worse by more than a fifth: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
