"""Legal pairs: what several versions of XLA make of the drawn programs, under flags.

Nothing in them is to be accused.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

from benchmarks.adversary.cases import subjects
from benchmarks.adversary.measure import Said, ask, write_pair

#: Flags of XLA, in turn.
FLAGS = (
    "",
    "--xla_backend_optimization_level=0",
    "--xla_backend_optimization_level=3 --xla_allow_excess_precision=false",
    "--xla_cpu_enable_fast_math=true --xla_cpu_fast_math_honor_nans=false"
    " --xla_cpu_fast_math_honor_infs=false --xla_cpu_fast_math_honor_division=false"
    " --xla_cpu_fast_math_honor_functions=false",
    "--xla_allow_excess_precision=false",
    "--xla_cpu_enable_fast_min_max=true",
)


def legal(folder: Path, seed: int, wanted: int, pythons: list[str], record: Path | None) -> int:
    """Compile, replay, count accusations.

    Args:
        folder: for texts; those of accused pairs stay there.
        seed: of the first draw; further ones follow it.
        wanted: pairs.
        pythons: interpreters with the jaxlibs, in turn, as flags are: five and six of them meet in all pairs.
        record: file for what was said of the accused.
    """
    pairs, turn = 0, 0
    accused: list[dict[str, object]] = []
    verdicts: Counter[str] = Counter()
    while pairs < wanted:
        python, flags = pythons[turn % len(pythons)], FLAGS[(turn + 1) % len(FLAGS)]
        dump, batch = folder / f"dump-{turn}", folder / f"legal{turn:03d}"
        for subject in subjects(dump, seed + turn, python=python, flags=flags)[: wanted - pairs]:
            write_pair(
                batch,
                f"module_{pairs:04d}.{subject.name.replace('.', '_s')}",
                subject.before,
                subject.after,
                subject,
            )
            pairs += 1
        shutil.rmtree(dump)
        said = ask(batch)
        verdicts.update(s.verdict for s in said.values())
        accused += [_accused(name, s, python, flags, batch) for name, s in said.items() if s.seen]
        print(f"{pairs} pairs, {len(accused)} accused: {dict(verdicts)} ({python} {flags})", flush=True)
        turn += 1
        keep = {str(a["name"]) for a in accused}
        for file in batch.iterdir():
            if file.is_file() and not any(file.name.startswith(name) for name in keep):
                file.unlink()
    for entry in accused:
        print(f"- {entry['name']} {entry['verdict']}: {entry['reason']} ({entry['python']} {entry['flags']})")
    if record is not None:
        record.write_text(
            json.dumps({"pairs": pairs, "verdicts": dict(verdicts), "accused": accused}, indent=1)
        )
    return int(bool(accused))


def _accused(name: str, said: Said, python: str, flags: str, batch: Path) -> dict[str, object]:
    return {
        "name": name,
        "verdict": said.verdict,
        "reason": said.reason,
        "python": python,
        "flags": flags,
        "folder": str(batch),
    }
