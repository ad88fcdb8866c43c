"""The results as Markdown, for RESULTS.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.gpu.targets import Found, share, speedup, targets

_HEADER = (
    "case", "ms", "least–most", "GB/s", "copy", "launches", "registers", "compile s, cached", "error", "ulp",
    "XLA ms", "XLA kernels", "XLA / ours",
)  # fmt: skip


def markdown(results: Mapping[str, Any]) -> str:
    """All of it: the machine, the targets, the cases, the parts."""
    return "\n".join(_lines(results)) + "\n"


def _lines(results: Mapping[str, Any]) -> Iterator[str]:
    measured = results["parts"].get("measure", {})
    about, cases = measured.get("about", {}), measured.get("cases", {})
    yield f"## {results['title']}"
    yield ""
    yield from (f"* {line}" for line in _machine(results, about))
    yield ""
    if cases:
        yield from _table(("target", "found", "verdict"), _targets(cases, about))
        yield ""
        yield from _table(_HEADER, [_row(name, found, about) for name, found in cases.items()])
        yield ""
        yield from _notes(cases)
        yield ""
    yield from _table(("part", "state", "seconds"), [_part(n, p) for n, p in results["parts"].items()])


def _machine(results: Mapping[str, Any], about: Found) -> Iterator[str]:
    machine = results["machine"]
    yield ", ".join(f"{name} {value}" for name, value in machine.items() if value)
    yield f"ours: {about.get('device', 'nothing ran')}; XLA: {about.get('xla', 'left out')}"
    for name, basic in about.get("basics", {}).items():
        speed = f", {basic['moved'] / basic['seconds'] / 1e9:.1f} GB/s" if basic["moved"] else ""
        yield f"{name}: {_time(basic['seconds'])}{speed}"
    if "basics_failed" in about:
        yield f"the machine could not be measured any further: {one_line(about['basics_failed'])}"


def _targets(cases: Mapping[str, Found], about: Found) -> Iterator[tuple[str, ...]]:
    for target in targets(cases, about):
        yield target.name, target.found, target.verdict


def _row(name: str, found: Found, about: Found) -> tuple[str, ...]:
    if "median" not in found:
        return (name, *("-" for _ in _HEADER[1:]))
    xla = found.get("xla", {})
    part, ratio = share(found, about), speedup(found)
    speed = f"{found['traffic'] / found['median'] / 1e9:.0f}"
    if found["operations"]:
        speed += f" ({found['operations'] / found['median'] / 1e12:.1f} TFLOP/s)"
    return (
        name,
        f"{found['median'] * 1e3:.4f}",
        f"{found['least'] * 1e3:.4f}–{found['most'] * 1e3:.4f}",
        speed,
        "-" if part is None else f"{part:.0%}",
        _number(found.get("launches")),
        _number(found.get("registers")) + (f", {found['spilled']} B spilled" if found.get("spilled") else ""),
        f"{found['compile_cold']:.2f}, {found['compile_cached']:.3f}",
        _error(found),
        _number(found.get("ulps")),
        f"{xla['median'] * 1e3:.4f}" if "median" in xla else "-",
        _number(xla.get("launches")),
        "-" if ratio is None else f"{ratio:.2f}",
    )


def _error(found: Found) -> str:
    if "relative" not in found:
        return "-"
    misfits = f", {found['misfits']} not finite" if found["misfits"] else ""
    again = "" if found.get("repeats_bits") else ", BITS DIFFER"
    return f"{found['relative']:.1e}{misfits}{again}"


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _notes(cases: Mapping[str, Found]) -> Iterator[str]:
    """What the columns have no place for."""
    for name, found in cases.items():
        notes = list(found.get("notes", []))
        xla = found.get("xla", {})
        notes += [f"XLA: {xla[key]}" for key in ("missing", "unknown") if key in xla]
        if "failed" in found:
            notes.append(f"FAILED: {found['failed']}")
        yield from (f"* {name}: {one_line(note)}" for note in notes)


def _part(name: str, part: Mapping[str, Any]) -> tuple[str, str, str]:
    reason = f": {one_line(part['reason'])}" if part.get("reason") else ""
    return name, part["state"] + reason, f"{part.get('seconds', 0):.0f}"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms" if seconds >= 1e-4 else f"{seconds * 1e6:.2f} us"


def one_line(text: str) -> str:
    """Short enough for a table, with nothing that would end its cell."""
    return " ".join(text.replace("|", "/").split())[:300]


def _table(header: tuple[str, ...], rows: Any) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield "|" + "---|" * len(header)
    yield from (f"| {' | '.join(row)} |" for row in rows)
