"""Texts that end too early, with the line after which something is missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def _cuts(text: str) -> Iterator[tuple[str, str, str]]:
    """Name of the form, its suffix, and the content."""
    lines = text.splitlines(keepends=True)
    entry = next(n for n, line in enumerate(lines) if line.startswith("ENTRY"))
    inside = "".join(lines[: entry + 4])
    yield "cut_in_a_line", "txt", inside + lines[entry + 4][:12]
    yield "cut_after_a_line", "hlo", inside
    yield "cut_with_a_mark", "md", f"Output:\n\n```\n{inside}... [truncated]\n"
    if "entry_computation_layout" in text:
        # Without it the last computation is the entry, for XLA, too.
        yield "cut_before_the_entry", "txt", "".join(lines[:entry])
    yield "cut_in_a_string", "cc", f'auto text = R"(\n{inside}'


def write(folder: Path, sources: dict[str, Path]) -> list[str]:
    """Write the files; returns the tables of `EXPECTED.toml`."""
    tables = []
    for source in ("model", "loop"):
        for form, suffix, content in _cuts(sources[source].read_text(encoding="utf-8")):
            path = folder / f"{form}.{source}.{suffix}"
            path.write_text(content, encoding="utf-8")
            tables.append(f'[[file]]\nname = "{path.name}"\nform = "{form}"\nprograms = 1\nis_cut = true\n')
    return tables
