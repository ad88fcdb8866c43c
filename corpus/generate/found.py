"""HLO in the forms in which people have it: `corpus/found`, made from programs of this corpus.

    python corpus/generate/found.py          # with jax 0.10.2; then generate.py --manifest

Every form wraps the same programs, so that what is read can be compared with the program itself:
`EXPECTED.toml` names for each file the texts that it holds, or how much of one was cut off.
"""

from __future__ import annotations

import gzip
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

import found_binary  # noqa: E402
import found_cut  # noqa: E402
import found_logs  # noqa: E402
import found_pasted  # noqa: E402
import found_quoted  # noqa: E402
import found_tools  # noqa: E402

FOUND = ROOT / "corpus" / "found"

#: The programs: as XLA dumps them, as tests are written, short, and TensorFlow's.
SOURCES = {
    "model": next((ROOT / "corpus/jax/model_fn").glob("*.before_optimizations.txt")),
    "loop": ROOT / "corpus/modules/while.counter.hlo",
    "short": next((ROOT / "corpus/jax/short_text").glob("*.before_optimizations.txt")),
    "tf": next((ROOT / "corpus/tf/model_fn").glob("*.before_optimizations.txt")),
}

#: A form makes the content of a file of some programs.
Form = Callable[[list[str]], bytes]


def write_forms(forms: dict[str, Form], wanted: dict[str, list[list[str]]], expected: list[str]) -> None:
    """Each form of each group of programs as a file, and what it holds."""
    for name, form in forms.items():
        stem, _, suffix = name.partition(".")
        for group in wanted.get(name, [["model"], ["loop"]]):
            path = FOUND / f"{stem}.{'_'.join(group)}.{suffix}"
            path.write_bytes(form([SOURCES[one].read_text(encoding="utf-8").strip() + "\n" for one in group]))
            sources = ", ".join(f'"{SOURCES[one].relative_to(ROOT).as_posix()}"' for one in group)
            expected.append(f'[[file]]\nname = "{path.name}"\nform = "{stem}"\nsources = [{sources}]\n')


def main() -> None:
    """Write the folder anew."""
    shutil.rmtree(FOUND, ignore_errors=True)
    FOUND.mkdir()
    expected: list[str] = []
    pair, all_of_them = ["model", "loop"], ["model", "loop", "short"]
    several = {
        "fences.md": [pair, all_of_them],
        "modules.txt": [pair, all_of_them],
        "headings.txt": [["model", "tf"]],
        "test_file.cc": [pair],
        "notebook.ipynb": [["model"], pair],
    }
    write_forms(found_quoted.FORMS, several, expected)
    write_forms(found_logs.FORMS, {"ranks.log": [pair]}, expected)
    pasted = {name: [["model"]] for name in found_pasted.FORMS}
    write_forms(found_pasted.FORMS, pasted | {"both_sides.diff": [["short", "model"]]}, expected)
    expected += found_pasted.write(FOUND, SOURCES)
    write_forms({"gzip.hlo.gz": lambda texts: gzip.compress(texts[0].encode(), mtime=0)}, {}, expected)
    expected += found_binary.write(FOUND, SOURCES)
    expected += found_cut.write(FOUND, SOURCES)
    expected += found_tools.write(FOUND)
    (FOUND / "EXPECTED.toml").write_text("\n".join(expected), encoding="utf-8")
    print(f"{len(expected)} files")


if __name__ == "__main__":
    main()
