"""Dumps with a known fault: a copy of a real dump whose text is changed from one pass on.

The fault is what a wrong pass would leave behind. The files before it and `before_optimizations` stay as they
were.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import manifest
from collect import write

BEFORE, AFTER = ".before_optimizations.txt", "_after_optimizations.txt"


@dataclass(frozen=True)
class Fault:
    """One planted fault.

    Attributes:
        name: of the directory below `folder`.
        source: the directory below `jax/` it is made from.
        first_pass: number of the first dump that is wrong; None when the optimised module alone is changed,
            and the dumps of the passes are left out.
        pattern: what to change: a regular expression that matches once in each wrong file.
        replacement: as for `re.sub`.
        about: the fault in words.
        folder: that gets the directory.
        stated: what later passes state of the right program, and what they would state of the wrong one.
    """

    name: str
    source: str
    first_pass: int | None
    pattern: str
    replacement: str
    about: str
    folder: str = "planted"
    stated: tuple[str, str] = ("", "")


FAULTS = (
    Fault(
        "model_fn_opcode",
        "model_fn",
        13,
        r"\bmultiply\(",
        "add(",
        "fusion turns the product into a sum",
    ),
    Fault(
        "dynamic_rnn_trip_count",
        "dynamic_rnn",
        8,
        r"s32\[\] constant\(6\)",
        "s32[] constant(5)",
        "algsimp makes the loop end one step early",
        stated=('"known_trip_count":{"n":"6"}', '"known_trip_count":{"n":"5"}'),
    ),
    Fault(
        "int8_dot_rounding",
        "int8_dot",
        11,
        r"\bround-nearest-even\(",
        "floor(",
        "algsimp rounds down instead of to nearest",
    ),
    Fault(
        "cumulative_window",
        "cumulative",
        8,
        r"(reduce_window_max.*pad=)0_0x0_8",
        r"\g<1>0_0x8_0",
        "cse pads the reversed running maximum at the wrong end",
    ),
    Fault(
        "train_mnist_mlp_constant",
        "train_mnist_mlp",
        None,
        r"(constant\.17 = f32\[\] constant\()0\.1\)",
        r"\g<1>0.2)",
        "one of five results is updated with twice the learning rate",
    ),
    Fault(
        "slices_off_by_one",
        "slices",
        None,
        r"slice=\{\[0:8\], \[1:8\]\}",
        "slice={[0:8], [0:7]}",
        "a slice starts one column early",
    ),
    Fault(
        "nested_calls_epsilon",
        "nested_calls",
        None,
        r"(constant\.158 = f32\[\] constant\()1e-05\)",
        r"\g<1>0)",
        "the epsilon of the last of four layer norms is lost, which changes a few ulps",
        "below_rounding",
    ),
)


def _wrong(name: str, fault: Fault) -> bool:
    number = re.search(r"\.(\d{4})\.", name)
    if number and fault.first_pass is not None:
        return int(number[1]) >= fault.first_pass
    return name.endswith(AFTER)


def _plant(text: str, fault: Fault, name: str) -> str:
    changed, count = re.subn(fault.pattern, fault.replacement, text)
    if count != 1:
        raise ValueError(f"{fault.name}: {fault.pattern} matches {count} times in {name}")
    right, wrong = fault.stated
    return changed.replace(right, wrong) if right else changed


def plant(fault: Fault, source: Path) -> dict[str, bytes]:
    """The files of a planted directory, from those of its source."""
    files: dict[str, bytes] = {}
    for path in sorted(source.iterdir()):
        is_pass = re.search(r"\.\d{4}\..*\.txt$", path.name)
        if path.name.endswith((BEFORE, AFTER)) or (is_pass and fault.first_pass is not None):
            text = path.read_text(encoding="utf-8")
            if _wrong(path.name, fault):
                text = _plant(text, fault, path.name)
            files[path.name] = text.encode()
        elif path.name == "inputs.npz":
            files[path.name] = path.read_bytes()
    return files


def make(corpus: Path) -> Iterator[dict[str, Any]]:
    """Write all planted directories; yields their manifest tables."""
    for fault in FAULTS:
        files = plant(fault, corpus / "jax" / fault.source)
        target = corpus / fault.folder / fault.name
        write(files, target)
        first = min(name for name in files if _wrong(name, fault))
        yield {
            "path": f"{fault.folder}/{fault.name}",
            "source": f"jax/{fault.source}",
            "about": fault.about,
            "first_wrong": first,
            "pattern": fault.pattern,
            "replacement": fault.replacement,
            **manifest.digest(target),
        }
