"""Which stages of a module are compared with which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from hlotool.dump.names import Kind
from hlotool.dump.records import DumpModule, Stage
from hlotool.errors import UsageError
from hlotool.names import did_you_mean


@dataclass(frozen=True, slots=True)
class Selection:
    """Stages of one module.

    Attributes:
        reference: gives the expected values; None when the module has no stage at all.
        tested: are judged by it; empty when there is nothing to compare with.
    """

    reference: Stage | None
    tested: tuple[Stage, ...] = ()


def select_stages(module: DumpModule, patterns: Sequence[str] = ()) -> Selection:
    """Choose the stages to compare.

    Args:
        module: of a dump.
        patterns: shell patterns of stage labels, the reference's first; of a single one the first stage that
            it matches is the reference of the others. Without any, the program as the frontend gave it
            against what was compiled for each platform.

    Raises:
        UsageError: no stage matches a pattern.
    """
    if patterns:
        return _matching(module, patterns)
    if not module.stages:
        return Selection(None)
    reference, *later = module.stages
    if module.pair is None:
        return Selection(reference)
    final = {stage.platform: stage for stage in later if stage.kind is Kind.AFTER_OPTIMIZATIONS}
    return Selection(reference, tuple(final.values()) or tuple(later[-1:]))


def _matching(module: DumpModule, patterns: Sequence[str]) -> Selection:
    known = [*module.stages, *module.others]
    reference = _first_match(module, known, patterns[0])
    tested: list[Stage] = []
    for pattern in patterns[1:] or patterns:
        _first_match(module, known, pattern)
        tested += [s for s in known if s not in (reference, *tested) and fnmatchcase(s.label, pattern)]
    # An extracted fusion is a program of its own, whatever the pattern.
    is_part = reference.kind is Kind.FUSION
    return Selection(reference, tuple(s for s in tested if (s.kind is Kind.FUSION) == is_part))


def _first_match(module: DumpModule, known: Sequence[Stage], pattern: str) -> Stage:
    for stage in known:
        if fnmatchcase(stage.label, pattern):
            return stage
    labels = ", ".join(stage.title for stage in known[:8]) or "none"
    more = f", … ({len(known)} in all)" if len(known) > 8 else ""
    meant = did_you_mean(pattern, (stage.label for stage in known))
    raise UsageError(f"{module.title}: no stage matches --stages {pattern!r}; it has: {labels}{more}{meant}")
