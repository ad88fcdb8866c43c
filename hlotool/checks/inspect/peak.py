"""The peak of memory as records, with the lines of the user's program."""

from __future__ import annotations

from hlotool.checks.inspect_records import LiveInfo, PeakInfo, SavingInfo
from hlotool.facts.buffers import Sizes
from hlotool.facts.dataflow import source_of
from hlotool.facts.memory_kinds import Change
from hlotool.facts.peak import Live, Saving, peak_of
from hlotool.ir.module import Module


def peak_info(module: Module, sizes: Sizes) -> PeakInfo:
    """What is alive when `module` needs the most memory; `sizes` are those of its shapes."""
    peak = peak_of(module, sizes)
    return PeakInfo(
        at=source_of(module, peak.at),
        within=[call.name for call in peak.at[:-1]],
        lost=peak.lost,
        live=[_live_info(module, live) for live in peak.live],
        savings=[_saving_info(module, saving) for saving in peak.savings],
    )


def _live_info(module: Module, live: Live) -> LiveInfo:
    return LiveInfo(
        source=source_of(module, live.chain),
        index=list(live.index),
        shape=str(live.shape),
        bytes=live.size,
        kind=live.kind,
        space=live.space,
    )


def _saving_info(module: Module, saving: Saving) -> SavingInfo:
    return SavingInfo(
        change=saving.change,
        value=_live_info(module, saving.live),
        bytes=saving.saved,
        unused=saving.last - saving.first - 1,
        result=list(saving.result) if saving.change is Change.DONATE else None,
        peak=saving.peak,
    )
