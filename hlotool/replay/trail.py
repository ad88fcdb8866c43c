"""From something bad in a result backwards to where it begins."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hlotool.alignment.ports import Port, Ports

#: Ports between two that are known, at most.
_MOST_UNKNOWN = 20_000


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is known of a port.

    Attributes:
        bad: True, False, or None when nothing is known.
        order: when it first was bad, in the order of execution; 0 when it is not.
    """

    bad: bool | None
    order: float = 0.0


GOOD = Judgement(False)
UNKNOWN = Judgement(None)


@dataclass(frozen=True, slots=True)
class Origin:
    """A bad port; one without a bad source is where it begins.

    Attributes:
        port: the value.
        order: when it first was bad.
        unknown: ports between it and those that are good or bad, of which nothing is known.
        has_bad_source: another port was bad before.
    """

    port: Port
    order: float
    unknown: tuple[Port, ...]
    has_bad_source: bool = False


def origins(ports: Ports, starts: Iterable[Port], judge: Callable[[Port], Judgement]) -> list[Origin]:
    """Where what is bad about `starts` begins, the earliest first.

    A source that turns bad only after the value that reads it cannot be the cause: so the trail through a
    loop leads from the first bad iteration to the one before.

    Args:
        ports: of the program.
        starts: bad parts of the result.
        judge: tells what is bad; called once per port.
    """
    found = _walked(ports, starts, judge)
    return sorted((origin for origin in found if not origin.has_bad_source), key=_order)


def bad_ports(ports: Ports, starts: Iterable[Port], judge: Callable[[Port], Judgement]) -> list[Origin]:
    """Every bad port on the way from `starts` to their origins, the earliest first."""
    return sorted(_walked(ports, starts, judge), key=_order)


def _walked(ports: Ports, starts: Iterable[Port], judge: Callable[[Port], Judgement]) -> list[Origin]:
    walker = _Walker(ports, judge)
    for start in starts:
        walker.enter(start)
    walker.walk()
    return walker.found


def _order(origin: Origin) -> float:
    return origin.order


class _Walker:
    def __init__(self, ports: Ports, judge: Callable[[Port], Judgement]) -> None:
        self.found: list[Origin] = []
        self._ports = ports
        self._judge = judge
        self._known: dict[Port, Judgement] = {}
        self._pending: list[tuple[Port, float]] = []
        self._seen: set[Port] = set()

    def enter(self, start: Port) -> None:
        """Begin at a part of the result, or at the bad values behind it if it is not known itself."""
        judged = self._of(start)
        if judged.bad:
            self._push(start, judged.order)
        elif judged.bad is None:
            for port, order in self._bad_sources(start, math.inf)[0]:
                self._push(port, order)

    def walk(self) -> None:
        """Follow every trail to its end."""
        while self._pending:
            port, order = self._pending.pop()
            bad, unknown = self._bad_sources(port, order)
            for source, earlier in bad:
                self._push(source, earlier)
            self.found.append(Origin(port, order, tuple(unknown), bool(bad)))

    def _push(self, port: Port, order: float) -> None:
        if port not in self._seen:
            self._seen.add(port)
            self._pending.append((port, order))

    def _of(self, port: Port) -> Judgement:
        if port not in self._known:
            self._known[port] = self._judge(port)
        return self._known[port]

    def _bad_sources(self, port: Port, order: float) -> tuple[list[tuple[Port, float]], list[Port]]:
        """The nearest bad ports behind `port` that were bad no later, and the unknown ones on the way."""
        bad: list[tuple[Port, float]] = []
        unknown: dict[Port, None] = {}
        pending = list(self._ports.sources(port))
        while pending and len(unknown) < _MOST_UNKNOWN:
            source = pending.pop()
            if source == port or source in unknown:
                continue
            judged = self._of(source)
            if judged.bad is None:
                unknown[source] = None
                pending += self._ports.sources(source)
            elif judged.bad and judged.order <= order:
                bad.append((source, judged.order))
        return bad, list(unknown)
