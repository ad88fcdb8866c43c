"""The dump that `hlotool demo` shows: a training step of which a pass has doubled a learning rate.

Usage: `python corpus/generate/demo.py` with jax 0.10.2; then `generate.py --manifest`. `corpus/demo/train.py`
is run in a scratch directory. Of its dump stay the two programs that it compiles, before and after
optimization, and a few passes of the first; the fault is planted from the fusion on.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from collect import ROOT, write

FOLDER = ROOT / "corpus" / "demo"
FLAGS = (
    "--xla_dump_to=dump --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.* --xla_dump_hlo_module_re=train_step"
)
PROGRAMS = r"\.(before|cpu_after)_optimizations\.txt$"
PASSES = r"\.after_(gemv-rewriter|cse|fusion)\.|\.before_pipeline-end\."
WRONG = r"\.after_fusion\.|\.cpu_after_optimizations\.txt$"
RIGHT_RATE, WRONG_RATE = r"(constant\.2 = f32\[\] constant\()0\.1\)", r"\g<1>0.2)"


def main() -> None:
    """Run the program, choose files, plant the fault."""
    variables = {
        "JAX_HLO_SOURCE_FILE_CANONICALIZATION_REGEX": "^.*/",
        "XLA_FLAGS": FLAGS,
        "JAX_PLATFORMS": "cpu",
    }
    command = [sys.executable, str(FOLDER / "train.py")]
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(command, cwd=scratch, env=os.environ | variables, check=True)
        dumped = sorted(path for path in Path(scratch, "dump").iterdir() if path.is_file())
        first = dumped[0].name.partition(".")[0]
        files = {}
        for path in dumped:
            is_first = path.name.startswith(first)
            if not re.search(f"{PROGRAMS}|{PASSES}" if is_first else PROGRAMS, path.name):
                continue
            text = path.read_text(encoding="utf-8")
            if is_first and re.search(WRONG, path.name):
                text, count = re.subn(RIGHT_RATE, WRONG_RATE, text)
                assert count == 1, path.name
            files[path.name] = text.encode()
    write(files, FOLDER / "dump")


if __name__ == "__main__":
    main()
