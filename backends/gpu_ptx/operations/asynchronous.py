"""`cp.async` and its groups (PTX ISA, "Asynchronous copy", "Non-bulk copy")."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hlotool.backends.gpu_ptx.lowering import Reader, Site, Step, executes
from hlotool.backends.gpu_ptx.model import Immediate
from hlotool.backends.gpu_ptx.operations.bulk import bulk
from hlotool.backends.gpu_ptx.operations.moves import CACHING, checked_addresses, load_words
from hlotool.backends.gpu_ptx.types import type_of

if TYPE_CHECKING:
    from hlotool.backends.gpu_ptx.machine import Machine

U32 = type_of("u32")


@executes("cp")
def copy(site: Site) -> Step:
    """A copy from global to shared memory, or a word about groups of them."""
    if site.instruction.has("bulk"):
        return bulk(site)
    words = site.accept(
        "async", "commit_group", "wait_group", "wait_all", "shared", "shared::cta", "global", *CACHING
    )
    if "commit_group" in words:
        return lambda machine: machine.copies.commit()
    if "wait_all" in words:
        return _wait_all
    if "wait_group" in words:
        left = _literal(site, 0)
        return lambda machine: machine.copies.wait(left)
    size = _literal(site, 2)
    target, source = site.address(site.operands[0]), site.address(site.operands[1])
    extra = list(site.operands[3:])
    if "L2::cache_hint" in words:
        extra.pop()
    given: Reader | None = site.reader(extra[0], U32) if extra else None

    def step(machine: Machine) -> None:
        to = machine.spread(checked_addresses(machine, target(machine), size))
        origin = machine.spread(checked_addresses(machine, source(machine), size))
        length = machine.spread(given(machine)) if given is not None else np.full(len(to), size, np.uint32)
        data = np.zeros((len(to), size), np.uint8)
        everyone, threads = machine.active, machine.active_threads
        for begin in range(0, size, 4):
            # What is beyond the length is not read, and zeros are written there.
            reads = np.flatnonzero(length > begin)
            if not reads.size:
                break
            machine.active = threads[reads]
            data[reads, begin : begin + 4] = load_words(machine, "global", origin[reads] + begin, 32)[
                :, None
            ].view(np.uint8)
        machine.active = everyone
        data[np.arange(size) >= length[:, None]] = 0
        _, offsets = machine.locate("shared", to, size)
        machine.copies.begin(offsets, data)

    return step


def _wait_all(machine: Machine) -> None:
    machine.copies.commit()
    machine.copies.wait(0)


def _literal(site: Site, place: int) -> int:
    operand = site.operands[place]
    if not isinstance(operand, Immediate):
        raise site.unsupported("a number that is not known before it runs")
    return operand.value
