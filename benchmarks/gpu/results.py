"""What the suite has found, in two files that are whole at any moment."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.gpu import machine
from benchmarks.gpu.table import markdown
from benchmarks.gpu.work import Part, Settings


class Results:
    """What goes into the files.

    Args:
        folder: of the files.
        title: of the table.
        settings: of the run.
        budgets: seconds of each part.

    Attributes:
        data: all of it, as in `gpu.json`.
    """

    def __init__(self, folder: Path, title: str, settings: Settings, budgets: Mapping[str, float]) -> None:
        self._folder = folder
        options = {k: v for k, v in asdict(settings).items() if k != "environment"}
        self.data: dict[str, Any] = {
            "title": title,
            "options": options,
            "machine": machine.describe(),
            "budgets": dict(budgets),
            "about": {},
            "cases": {},
            "parts": {},
        }
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def about(self) -> dict[str, Any]:
        """What is known of the machine and the device."""
        about: dict[str, Any] = self.data["about"]
        return about

    @property
    def cases(self) -> dict[str, dict[str, Any]]:
        """What is known of each case."""
        cases: dict[str, dict[str, Any]] = self.data["cases"]
        return cases

    def resume(self, folder: Path) -> None:
        """Take over what an earlier run left; says so where that is nothing."""
        try:
            earlier = json.loads((folder / "gpu.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            print(f"gpu-suite: there is no {folder / 'gpu.json'}: all is run", file=sys.stderr)
            return
        if earlier["machine"].get("GPU") != self.data["machine"].get("GPU"):
            raise SystemExit(
                f"gpu-suite: {folder / 'gpu.json'} is of another machine, {earlier['machine'].get('GPU')}"
            )
        for name in ("about", "cases", "parts"):
            self.data[name] = earlier[name]

    def part(self, name: str) -> Part:
        """Of a part, what an earlier run left; it is unfinished from now on."""
        part: Part = self.data["parts"].setdefault(name, {})
        part.update(state="unfinished", reason="it is under way")
        return part

    def is_passed(self, name: str) -> bool:
        """Whether there is no more to do for a part."""
        return bool(self.data["parts"].get(name, {}).get("state") == "passed")

    def is_good(self, name: str) -> bool:
        """Whether a part passed, or could not be run for a reason that it gives."""
        return self.data["parts"][name]["state"] in ("passed", "skipped")

    def save(self) -> None:
        """Write both files; readers see old or new ones, never half of one."""
        _replace(self._folder / "gpu.json", json.dumps(self.data, indent=1, allow_nan=False) + "\n")
        _replace(self._folder / "gpu.md", markdown(self.data))


def _replace(path: Path, text: str) -> None:
    pending = path.with_suffix(f"{path.suffix}.tmp")
    pending.write_text(text, encoding="utf-8")
    pending.replace(path)
