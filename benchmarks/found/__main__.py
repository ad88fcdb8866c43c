"""HLO as it is found: what each command makes of each form, forms drawn at random, elided constants.

    python -m benchmarks.found forms [--json]      corpus/found, form by form, command by command
    python -m benchmarks.found elided [--json]     every pair of the corpus with its large constants left out,
                                                   run with --elided generate: none may be called wrong
    python -m benchmarks.found drawn --count 1000 --seed 7 [--keep DIR]    forms that nobody wrote down

`forms` counts files that a command reads and answers for; where something is missing (the end of a cut text)
it has to say so. `elided` prints verdicts; the true ones are agreement, for XLA compiled these programs
correctly, but for the faults that the corpus keeps, which are left out. `drawn` puts texts into random
combinations of containers (`drawn`) and counts where another program is read than from the plain text.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import ROOT

FOUND = ROOT / "corpus" / "found"
COMMANDS = ("run", "inspect", "check", "diff", "opt", "extract")
#: What `extract`, which has to run what stands before, cannot do with some, and says.
REFUSALS = ("a parameter alone is no program", "custom calls without a model", "elided in the dump")
#: Directories of the corpus in which XLA computes something wrong.
FAULTS = ("int4_product",)


def call(*arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command line, run in this process."""
    from hlotool.interface.cli.main import main

    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        code = main(arguments)
    return int(code), out.getvalue(), error.getvalue()


def answers(command: str, path: Path, is_cut: bool, scratch: Path) -> bool:
    """Whether a command does what it is for with the file, or says what is missing of a text that is cut."""
    several = "one program" in call("opt", str(path))[2]
    if command in ("opt", "extract"):
        if several:
            return "here are" in call(command, str(path), *(["x"] if command == "extract" else []))[2]
        if command == "opt":
            code, out, error = call("opt", str(path))
            return "the text ends" in error if is_cut else code == 0 and out.startswith("HloModule")
        name = _last_instruction(path)
        code, _, error = call("extract", str(path), name, "-o", str(scratch / "cut.hlo"))
        return code == 0 or any(reason in error for reason in REFUSALS)
    if command == "diff":
        return call("diff", str(path), str(path))[0] == 0
    options = ["--opaque", "--elided", "generate"] if command == "run" else []
    code, out, _ = call(command, str(path), *options, "--json")
    record = json.loads(out)
    if command == "run":
        wanted = "bad input" if is_cut else "not compared"
        rows = record["modules"]
        return bool(rows) and all(row["verdict"] == wanted for row in rows)
    if command == "inspect":
        return code == 0 and all(bool(s["cut"]) == is_cut for m in record["modules"] for s in m["stages"])
    return not record["failures"] and any(f["rule"] == "cut-text" for f in record["findings"]) == is_cut


def _last_instruction(path: Path) -> str:
    from hlotool.sources.directory import open_dump
    from hlotool.sources.stages import read_stage

    [owner] = open_dump(path).modules
    return read_stage(owner.stages[0]).entry.root.name


def forms() -> dict[str, dict[str, str]]:
    """By form and command: how many of the files are answered for."""
    files = tomllib.loads((FOUND / "EXPECTED.toml").read_text(encoding="utf-8"))["file"]
    found: dict[str, dict[str, list[bool]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for file in files:
            rows = found.setdefault(file["form"], {command: [] for command in COMMANDS})
            for command in COMMANDS:
                is_cut = file.get("is_cut", False)
                rows[command].append(answers(command, FOUND / file["name"], is_cut, Path(scratch)))
    return {
        form: {command: f"{sum(done)}/{len(done)}" for command, done in rows.items()}
        for form, rows in found.items()
    }


def without_constants(folder: Path, target: Path) -> int:
    """A dump's first and last stages with their large constants left out; returns how many that are."""
    from hlotool.errors import HlotoolError
    from hlotool.ir.printer import PrintOptions, print_module
    from hlotool.parser.reader import parse_module
    from hlotool.sources.directory import open_dump
    from hlotool.sources.elided import elided_constants
    from hlotool.sources.loading import load_stage

    count = 0
    for number, module in enumerate(open_dump(folder).modules):
        if module.pair is None:
            continue
        for stage, label in zip(
            module.pair, ("before_optimizations", "cpu_after_optimizations"), strict=True
        ):
            with contextlib.suppress(HlotoolError):
                text = print_module(load_stage(module, stage), PrintOptions(large_constants=False))
                (target / f"module_{number:04d}.{module.name[:80]}.{label}.txt").write_text(
                    text, encoding="utf-8"
                )
                count += len(elided_constants(parse_module(text)))
    return count


def elided() -> dict[str, Any]:
    """Verdicts of the corpus' dumps without their large constants; those that have none are left out."""
    verdicts: Counter[str] = Counter()
    wrong: list[str] = []
    constants = dumps = 0
    for folder in _dumps():
        with tempfile.TemporaryDirectory() as scratch:
            count = without_constants(folder, Path(scratch))
            if not count:
                continue
            dumps, constants = dumps + 1, constants + count
            rows = json.loads(call("run", scratch, "--elided", "generate", "--json")[1])["modules"]
            rows = [row for row in rows if row["generated_constants"] or row["verdict"] == "unsupported"]
            verdicts.update(row["verdict"] for row in rows)
            wrong += [
                f"{folder.name}: {row['name']}" for row in rows if row["verdict"] in ("wrong", "structural")
            ]
    return {"dumps": dumps, "constants": constants, "verdicts": dict(verdicts), "wrong": wrong}


def _dumps() -> Iterator[Path]:
    for framework in ("jax", "tf"):
        for folder in sorted((ROOT / "corpus" / framework).iterdir()):
            if folder.name not in FAULTS and any(folder.glob("*before_optimizations.txt")):
                yield folder


def drawn(count: int, seed: int, keep: Path | None) -> int:
    """Print what became of drawn files, and the errors; keep the files that were not read."""
    from benchmarks.found import drawn as found_drawn

    results = []
    for number, result in enumerate(found_drawn.measure(count, seed)):
        results.append(result)
        file, what, error = result
        if what not in found_drawn.OUTCOMES[:2]:
            print(f"{number} {what}: {' in '.join(file.form)}: {file.name}: {error}")
            if keep is not None:
                (keep / f"{number}.{what.replace(' ', '_')}.{file.name}").write_bytes(file.content)
    print(found_drawn.table(results))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("forms", "elided", "drawn"))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--count", type=int, default=1000, help="files that `drawn` makes")
    parser.add_argument("--seed", type=int, default=0, help="of `drawn`")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="write what `drawn` finds to be wrong to DIR"
    )
    options = parser.parse_args()
    if options.what == "drawn":
        return drawn(options.count, options.seed, options.keep)
    found: dict[str, Any] = forms() if options.what == "forms" else elided()
    if options.json:
        print(json.dumps(found))
    elif options.what == "forms":
        print(f"| form | {' | '.join(COMMANDS)} |\n|---|{'---|' * len(COMMANDS)}")
        for form, row in found.items():
            print(f"| {form.replace('_', ' ')} | {' | '.join(row[command] for command in COMMANDS)} |")
    else:
        print("\n".join(f"{name}: {value}" for name, value in found.items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
