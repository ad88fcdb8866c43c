"""What the numbers have to be, and whether they are."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from benchmarks.gpu.cases import Group
from benchmarks.gpu.rulers import COPY

#: What was found of one case, as in the results' JSON.
Found: TypeAlias = Mapping[str, Any]

#: Relative L2 error allowed against the numpy reference, by the end of a case's name. Sums of f32 take other
#: orders; bf16 rounds to 8 bits, and what is summed in bf16 rounds once here and often elsewhere.
ACCURACY = {"f32": 1e-4, "bf16": 3e-2, "step": 1e-4}


@dataclass(frozen=True, slots=True)
class Target:
    """One thing asked for.

    Attributes:
        name: what is asked.
        found: what there is, in words.
        met: None where it cannot be judged.
        part: of the suite that decides it; None where several do.
    """

    name: str
    found: str
    met: bool | None
    part: str | None = "speed"

    @property
    def verdict(self) -> str:
        """For the table."""
        return {True: "met", False: "MISSED", None: "not judged"}[self.met]


def share(found: Found, about: Found) -> float | None:
    """The part of the copy ceiling that a case reaches, by the bytes that it cannot avoid to move."""
    ceiling = about.get("basics", {}).get(COPY)
    if ceiling is None or "median" not in found:
        return None
    return float(found["traffic"] / found["median"] / (ceiling["moved"] / ceiling["seconds"]))


def speedup(found: Found) -> float | None:
    """XLA's time over ours."""
    ratio = found.get("xla", {}).get("speedup")
    return None if ratio is None else float(ratio)


def targets(cases: Mapping[str, Found], about: Found) -> Iterator[Target]:
    """All of them.

    Args:
        cases: what was found, by case.
        about: what was found of the machine.
    """
    fast = bool(about.get("is_hardware"))
    for group in Group:
        if group.target is not None:
            yield _bandwidth(group, cases, about, fast)
    yield _against_xla(cases, fast and about.get("xla_platform") == "gpu")
    beside = {name: found["xla"] for name, found in cases.items() if _is_fused(found) and "xla" in found}
    unlike = [name for name, found in beside.items() if _is_off(name, found, 2)]
    # Twice the error, since each has its own. XLA multiplies f32 in TF32: products are not asked for.
    yield _all("results of the fused cases agree with XLA's at full size", unlike, beside, "relative", "xla")
    yield _all("results agree with the numpy reference", _inaccurate(cases), cases, "relative", "accuracy")
    wrong = [name for name, found in cases.items() if found.get("repeats_bits") is False]
    yield _all("the same bits again over poisoned memory", wrong, cases, "repeats_bits")
    spilling = [name for name, found in cases.items() if found.get("spilled")]
    yield _all("no registers spilled", spilling, cases, "spilled")
    failed = [name for name, found in cases.items() if "failed" in found]
    yield Target("every case was measured", _but(failed), not failed if cases else None, None)


def _bandwidth(group: Group, cases: Mapping[str, Found], about: Found, fast: bool) -> Target:
    assert group.target is not None
    shares = {n: share(f, about) for n, f in cases.items() if f.get("group") == group.title}
    known = {name: part for name, part in shares.items() if part is not None}
    title = f"{group.title}: at least {group.target:.0%} of the copy ceiling"
    if not known:
        return Target(title, "nothing measured", None)
    worst = min(known, key=lambda name: known[name])
    below = sum(part < group.target for part in known.values())
    text = f"{len(known) - below} of {len(known)} cases; worst {worst} {known[worst]:.0%}"
    return Target(title, text, below == 0 if fast else None)


def _against_xla(cases: Mapping[str, Found], fast: bool) -> Target:
    ratios = [r for f in cases.values() if _is_fused(f) and (r := speedup(f)) is not None]
    title = "at least 1.0 x XLA's speed, median of the fused cases"
    if not ratios:
        return Target(title, "nothing measured", None, "xla")
    middle = statistics.median(ratios)
    return Target(title, f"{middle:.2f} x over {len(ratios)} cases", middle >= 1 if fast else None, "xla")


def _is_fused(found: Found) -> bool:
    return found.get("group") in {group.title for group in Group if group.is_fused}


def _inaccurate(cases: Mapping[str, Found]) -> list[str]:
    return [name for name, found in cases.items() if _is_off(name, found)]


def _is_off(name: str, found: Found, times: int = 1) -> bool:
    if "relative" not in found:
        return False
    return bool(found["misfits"]) or found["relative"] > times * ACCURACY[name.rpartition("_")[2]]


def _all(title: str, wrong: list[str], cases: Mapping[str, Found], key: str, part: str = "speed") -> Target:
    """Something that has to hold of every case of which `key` is known."""
    known = sum(found.get(key) is not None for found in cases.values())
    if not known:
        return Target(title, "nothing known", None, part)
    return Target(title, f"{known} cases, {_but(wrong)}", not wrong, part)


def _but(wrong: list[str]) -> str:
    return f"all but {', '.join(wrong)}" if wrong else "all"
