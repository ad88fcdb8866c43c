"""Are the dumps of many versions of jaxlib and of libtpu read? One program of each kind, and what `run` says.

    python -m benchmarks.dumps --jaxlib PYTHON ... [--tpu PYTHON=LIBTPU.so ...] [--folder F] [--json]

Each interpreter needs JAX (0.4.13 or newer, with numpy and scipy of its age, absl-py and flatbuffers); of
`--tpu` a second part names the libtpu that it loads, which compiles without a TPU. A version dumps each kind
(`programs.py`) in a process of its own, with plain flags, then `hlotool run` reads its dumps. Records
are kept as they come, and nothing known is measured again (unless with `--again`). The table has a column for
each version and a row for each kind; below it stand the reasons why a program is not replayed, and every
difference.

A TPU multiplies numbers of 32 bits in 16 unless a program asks for more, so a program that is `wrong` there
is compiled again with precision highest: where that is healthy, the cell says `bf16`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.common.units import UnitDone, measured
from benchmarks.dumps.measure import Work
from benchmarks.dumps.table import Cell, Column, table


def main() -> int:
    """Run, print the table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jaxlib", nargs="+", default=[], metavar="PYTHON")
    parser.add_argument("--tpu", nargs="+", default=[], metavar="PYTHON=LIBTPU.so")
    parser.add_argument("--folder", type=Path, default=Path("dump_versions"))
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    records = _records(options.folder, [*options.jaxlib, *options.tpu], options.again)
    columns = [r for r in records if isinstance(r, Column)]
    cells = [r for r in records if isinstance(r, Cell)]
    if options.json:
        sys.stdout.buffer.write(msgspec.json.encode([*columns, *cells]))
    else:
        print(table(columns, cells))
    return 0 if all(cell.is_read for cell in cells) else 1


def _records(folder: Path, units: Sequence[str], again: bool) -> list[Column | Cell]:
    folder.mkdir(parents=True, exist_ok=True)
    decoder = msgspec.json.Decoder(Column | Cell | UnitDone)
    path = folder / "versions.jsonl"
    found = measured(path, decoder, units, Work(folder), again=again)
    return [record for record in found if not isinstance(record, UnitDone)]


if __name__ == "__main__":
    raise SystemExit(main())
