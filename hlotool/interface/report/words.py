"""How numbers, verdicts and names read in a report: one way everywhere."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, Decimal

from hlotool.judge.records import output_name
from hlotool.judge.verdicts import AGREEING, DIFFERING, Answer, Verdict
from hlotool.runs.records import REALITY, LeafRecord, ModuleRecord, ToleranceRecord

#: What a set of inputs that is none of these was no use for.
_TELLING = AGREEING | DIFFERING | {Verdict.DIFFERS}

_GOOD, _NEUTRAL, _WARNING, _FAILED, _BAD = "green", "dim", "yellow", "magenta", "bold red"

#: Sign and style of each verdict; the sign tells it apart where there is no colour.
LOOKS: dict[Verdict, tuple[str, str]] = {
    Verdict.IDENTICAL: ("✓", _GOOD),
    Verdict.AGREE: ("✓", _GOOD),
    Verdict.ROUNDING: ("✓", _GOOD),
    Verdict.NOT_COMPARED: ("·", _NEUTRAL),
    Verdict.NOT_COMPARABLE: ("·", _WARNING),
    Verdict.DIFFERS: ("≠", _WARNING),
    Verdict.UNSTABLE: ("~", _WARNING),
    Verdict.RANGE: ("~", _WARNING),
    Verdict.SEMANTICS: ("~", _WARNING),
    Verdict.UNSUPPORTED: ("?", _WARNING),
    Verdict.BAD_INPUT: ("!", _WARNING),
    Verdict.CRASHED: ("!", _FAILED),
    Verdict.TIMEOUT: ("!", _FAILED),
    Verdict.OUT_OF_MEMORY: ("!", _FAILED),
    Verdict.NOT_COMPILED: ("!", _FAILED),
    Verdict.STRUCTURAL: ("✗", _BAD),
    Verdict.UNEQUAL: ("✗", _BAD),
    Verdict.WRONG: ("✗", _BAD),
}

#: Why a result says nothing for or against a program, behind a number of results.
UNDECIDED: dict[Verdict, str] = {
    Verdict.NOT_COMPARED: "with one side only",
    Verdict.NOT_COMPARABLE: "with random numbers",
    Verdict.UNSTABLE: "too sensitive to rounding",
    Verdict.RANGE: "with overflow on one side",
    Verdict.SEMANTICS: "with a known difference of XLA",
    Verdict.UNSUPPORTED: "unsupported",
    Verdict.BAD_INPUT: "with bad input",
    Verdict.CRASHED: "crashed",
    Verdict.TIMEOUT: "timed out",
    Verdict.OUT_OF_MEMORY: "out of memory",
    Verdict.NOT_COMPILED: "not compiled to the end",
}

#: Outputs named of those with one verdict.
_NAMED = 4
_NOT_IN_A_DUMP = "code generation and run-time libraries are not in a dump: add"
#: Names that TensorFlow gives to programs. Some versions die of the flag for snapshots.
_OF_TENSORFLOW = re.compile(r"(?:^|\.|_)inference_|XlaMustCompile|XlaCompiledKernel|(?:^|\.)cluster_\d")


#: What TensorFlow puts behind the name of a function: its configuration as numbers.
_CONFIGURATION = re.compile(r"__XlaMustCompile_\w*executor_type_\d+_(?:\.\d+)?$")


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Each name without the configuration that TensorFlow puts behind it, where that leaves them apart."""
    short = {name: _CONFIGURATION.sub("", name) for name in names}
    count = Counter(short.values())
    return {name: text if count[text] == 1 else name for name, text in short.items()}


def not_in_a_dump(names: Iterable[str]) -> str:
    """What agreeing stages leave open, and how to see it; a command's own option stands behind it.

    Args:
        names: of the programs.
    """
    snapshots = "" if any(map(_OF_TENSORFLOW.search, names)) else "--xla_dump_hlo_snapshots, "
    return f"{_NOT_IN_A_DUMP} {snapshots}--outputs or"


def is_silent(verdict: Verdict) -> bool:
    """Whether a set of inputs says nothing: it overflows, amplifies rounding, or takes too long."""
    return verdict not in _TELLING


def style_of(verdict: Verdict) -> str:
    """The rich style of a verdict."""
    return LOOKS[verdict][1]


def verdict_text(verdict: Verdict) -> str:
    """`✗ mismatch`."""
    return f"{LOOKS[verdict][0]} {verdict.value}"


def is_wrong(rows: Sequence[ModuleRecord]) -> bool:
    """Whether some row of a module shows a fault."""
    return any(row.verdict.answer is Answer.BAD for row in rows)


def row_verdict(module: ModuleRecord) -> tuple[str, str]:
    """The verdict on a module and its style; agreement on nothing but NaN is no plain success."""
    if module.verdict in AGREEING and module.nothing_but_nan:
        return f"~ {module.verdict.value}, all NaN", _WARNING
    return verdict_text(module.verdict), style_of(module.verdict)


def number(value: float | None, digits: int = 3) -> str:
    """`1.25e-05`; a dash for None."""
    return "–" if value is None else f"{value:.{digits}g}"


def sufficient(value: float | None) -> str:
    """A tolerance in three digits, rounded up: what is printed must be enough."""
    if not value:
        return "–" if value is None else "0"
    nearest = f"{value:.3g}"
    if float(nearest) >= value:
        return nearest
    step = Decimal(1).scaleb(Decimal(value).adjusted() - 2)
    return f"{float(Decimal(value).quantize(step, ROUND_CEILING)):.3g}"


def ulps(value: int | None) -> str:
    """`1 ulp`, `37 ulps`, `4.19e+06 ulps`; empty for None."""
    if value is None:
        return ""
    amount = str(value) if value < 100_000 else f"{value:.3g}"
    return f"{amount} ulp" if value == 1 else f"{amount} ulps"


def at(index: Sequence[int]) -> str:
    """` at [1, 7]`; empty for a scalar."""
    return f" at {position(index)}" if index else ""


def share(part: int, total: int) -> str:
    """`3 of 8192 (0.037 %)`."""
    return f"{part} of {total} ({100 * part / total:.3g} %)" if total else f"{part} of {total}"


def plural(count: int, noun: str) -> str:
    """`1 module`, `2 modules`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def in_halves(left: int) -> str:
    """`7 left, about 3 steps`: how many points are open, and how often these can be halved."""
    return f"{left} left, about {plural(left.bit_length(), 'step')}"


def amount(count: int) -> str:
    """`383`, `12.3 k`, `1.54 M`, `2 G`, `1e+18`."""
    value = float(count)
    for unit in ("", " k", " M", " G", " T", " P"):
        if value < 999.5:
            return f"{value:.3g}{unit}"
        value /= 1000
    return f"{count:.3g}"


def seconds(value: float) -> str:
    """`0.02 s`, `12.3 s`, `4 min 05 s`."""
    if value < 10:
        return f"{value:.2f} s"
    if value < 100:
        return f"{value:.1f} s"
    return f"{int(value) // 60} min {int(value) % 60:02d} s"


def position(index: Sequence[int]) -> str:
    """`[1, 7]`."""
    return f"[{', '.join(map(str, index))}]"


def accepted(tolerance: ToleranceRecord) -> str:
    """The tolerance as an inequality with its origin."""
    if not tolerance.relative and not tolerance.absolute:
        return "none: the values must be equal"
    absolute, relative = number(tolerance.absolute), number(tolerance.relative)
    if tolerance.either:
        bound = f"|expected − actual| ≤ {absolute}, or ≤ {relative} · |expected|"
    else:
        bound = f"|expected − actual| ≤ {absolute} + {relative} · magnitude"
    return f"{bound}  ({tolerance.origin})" if tolerance.origin else bound


def compared_stages(module: ModuleRecord) -> str:
    """The tested stage, and the backend where it is not the reference's."""
    tested = module.stage_tested or module.stage_reference or ""
    if tested == REALITY:
        return f"{tested} {module.tested}"
    same = module.tested in (module.reference, None)
    return tested if same else f"{tested} on {module.tested}".lstrip()


def distance(module: ModuleRecord) -> str:
    """How far the outputs of a module are apart, in a few words; empty when nothing was compared."""
    if module.verdict is Verdict.WRONG:
        return _worst_leaf(module.leaves)
    if module.verdict is Verdict.STRUCTURAL:
        return module.reason
    if module.verdict is Verdict.ROUNDING:
        return _legal_share(module.leaves)
    if module.verdict in (Verdict.DIFFERS, Verdict.UNEQUAL):
        return _other_functions(module)
    measured = [leaf.max_ulp for leaf in module.leaves if leaf.max_ulp is not None]
    if module.verdict is Verdict.AGREE and measured:
        return within(max(measured))
    return ""


def _other_functions(module: ModuleRecord) -> str:
    """Which outputs are other functions."""
    names = [output_name(leaf.index) for leaf in module.leaves if leaf.verdict is module.verdict]
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{names[0]}{more}: not equivalent" if names else ""


def output_counts(module: ModuleRecord) -> str:
    """`113 of 117 outputs agree; 4 unstable: {2}, {5}, …`; empty where all are alike in that."""
    others: dict[str, list[str]] = {}
    for leaf in module.leaves:
        if leaf.verdict not in AGREEING:
            others.setdefault(leaf.verdict.value, []).append(output_name(leaf.index))
    open_ones = sum(map(len, others.values()))
    if open_ones in (0, len(module.leaves)):
        return ""
    agreeing = len(module.leaves) - open_ones
    parts = [f"{agreeing} of {len(module.leaves)} outputs {'agrees' if agreeing == 1 else 'agree'}"]
    for verdict, names in others.items():
        more = ", …" if len(names) > _NAMED else ""
        parts.append(f"{len(names)} {verdict}: {', '.join(names[:_NAMED])}{more}")
    return "; ".join(parts)


def within(distance: int) -> str:
    """`≤ 2 ulps`; at no distance, bits differ that do not count: signs of zero, NaN payloads, denormals."""
    return f"≤ {ulps(distance)}" if distance else "equal values"


def _worst_leaf(leaves: Sequence[LeafRecord]) -> str:
    wrong = [leaf for leaf in leaves if leaf.verdict is Verdict.WRONG]
    if not wrong:
        return "a promise that is not kept" if leaves else ""
    leaf = max(wrong, key=lambda leaf: wrong_elements(leaf) / leaf.total if leaf.total else 1.0)
    pattern = f", {leaf.evidence.pattern}" if leaf.evidence and leaf.evidence.pattern else ""
    return f"{output_name(leaf.index)}: {wrong_elements(leaf)} of {leaf.total}{pattern}"


def wrong_elements(leaf: LeafRecord) -> int:
    """How many elements are out of reach of legal executions, or else outside of the tolerance."""
    return leaf.evidence.beyond if leaf.evidence is not None else leaf.mismatched


def _legal_share(leaves: Sequence[LeafRecord]) -> str:
    """How much of what legal executions differ by was made use of; empty where ties flipped."""
    ratios = [leaf.evidence.ratio for leaf in leaves if leaf.evidence and leaf.evidence.ratio is not None]
    worst = max(ratios, default=0.0)
    return f"{number(worst, 2)} of rounding error" if 0 < worst <= 1 else ""
