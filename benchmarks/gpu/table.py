"""The results as Markdown, for results/gpu.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.gpu.projection import KINDS, Projected, projected
from benchmarks.gpu.targets import Found, share, speedup, targets

_HEADER = (
    "case", "ms", "least–most", "GB/s", "copy", "launches", "registers", "compile s, cached", "error", "ulp",
    "XLA ms", "XLA kernels", "XLA / ours", "beside XLA",
)  # fmt: skip


def markdown(results: Mapping[str, Any]) -> str:
    """All of it: the machine, the smoke, the targets, the cases, the parts, and what a dry run foresees."""
    return "\n".join(_lines(results)) + "\n"


def _lines(results: Mapping[str, Any]) -> Iterator[str]:
    about, cases, parts = results["about"], results["cases"], results["parts"]
    yield f"## {results['title']}"
    yield ""
    yield from (f"* {line}" for line in _machine(results, about))
    yield ""
    if rows := parts.get("smoke", {}).get("rows"):
        yield from _table(("smoke", "state", "what it says"), _smoke(rows))
        yield ""
    if cases:
        yield from _table(("target", "found", "verdict"), _targets(cases, about))
        yield ""
        yield from _table(_HEADER, [_row(name, found, about) for name, found in cases.items()])
        yield ""
        yield from _notes(cases)
        yield ""
    yield from _table(("part", "state", "seconds"), [_part(n, p) for n, p in parts.items()])
    if results["options"].get("project"):
        yield ""
        yield from _projection(parts, results["budgets"])


def _machine(results: Mapping[str, Any], about: Found) -> Iterator[str]:
    machine = results["machine"]
    yield ", ".join(f"{name} {value}" for name, value in machine.items() if value)
    yield f"ours: {about.get('device', 'nothing ran')}; XLA: {about.get('xla', 'left out')}"
    for name, basic in about.get("basics", {}).items():
        speed = f", {basic['moved'] / basic['seconds'] / 1e9:.1f} GB/s" if basic["moved"] else ""
        yield f"{name}: {_time(basic['seconds'])}{speed}"
    if size := results["options"].get("size") or about.get("size"):
        yield f"cases move {size / 1e6:.1f} MB at least, but for products, sorts and the training step"


def _smoke(rows: Mapping[str, Found]) -> Iterator[tuple[str, ...]]:
    for name, row in rows.items():
        yield name, str(row.get("state", "unfinished")), one_line(row.get("said", ""))


def _projection(parts: Mapping[str, Any], budgets: Mapping[str, float]) -> Iterator[str]:
    """Seconds of processors by part, and what the first call will take."""
    rows = list(projected(parts, budgets))
    header = ("seconds of processors", *KINDS, "rest", "sum", "on a GPU", "budget")
    yield from _table(header, [_projected(row) for row in rows])
    seconds, most = sum(row.seconds for row in rows), sum(budgets.values())
    missing = [name for name in budgets if name not in parts]
    verdict = "fits" if seconds <= most else "DOES NOT FIT"
    yield ""
    yield (
        f"The first call on a GPU is expected to take {seconds:.0f} s of {most:.0f} s: {verdict}"
        + (f", without {', '.join(missing)}" if missing else "")
        + "."
    )


def _projected(row: Projected) -> tuple[str, ...]:
    numbers = [*row.kinds.values(), sum(row.kinds.values()), row.seconds, row.budget]
    return row.name, *(f"{number:.1f}" for number in numbers)


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
        _error(xla),
    )


def _error(found: Found) -> str:
    if "relative" not in found:
        return "-"
    misfits = f", {found['misfits']} not finite" if found["misfits"] else ""
    again = ", BITS DIFFER" if found.get("repeats_bits") is False else ""
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
