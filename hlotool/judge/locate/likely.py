"""Which values of the right program most likely belong into which places of the wrong one.

What goes wrong first is made of values that both programs have, in a few steps. So what it should be is made
of the same values in the right program, in a few steps as well. And what makes many results wrong is a part
of them all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from hlotool.facts import thresholds
from hlotool.inputs.frames import Node, made
from hlotool.inputs.recorded_values import Sample
from hlotool.ir.types import ShapeIndex
from hlotool.judge.locate.identity import size_of
from hlotool.judge.locate.likeness import is_uniform
from hlotool.judge.locate.origins import backwards, cone_sizes, is_constant
from hlotool.judge.locate.pairing import Pairing, rounding_of_few

#: Steps from values that both programs have, within which what should be made of them is looked for.
_STEPS = 6
#: Values of the right program that are likely for one place.
_MOST = 8


class Likely:
    """Tells for places of the wrong program.

    Args:
        pairing: of the two executions.
        outputs: shape indices of results that differ.
    """

    def __init__(self, pairing: Pairing, outputs: Sequence[ShapeIndex]) -> None:
        self._pairing = pairing
        root = pairing.after.computation.root
        self._outputs = outputs
        self._ends = [made(Node(pairing.after, root, output)) for output in outputs]
        self._steps_from: dict[Node, dict[Node, int]] = {}

    @cached_property
    def _reach(self) -> dict[Node, int]:
        return self._pairing.flows[1].reach(self._ends)

    def outputs(self) -> list[ShapeIndex]:
        """The outputs, those first that show most clearly what is wrong, and of these what is made of least.

        What is the same everywhere, or apart by little more than rounding, gets right with many values; the
        less there is behind a result, the fewer are tried.
        """
        pairing, root = self._pairing, self._pairing.before.computation.root
        # Outputs times values are many: NumPy counts them.
        width = len(self._ends) // 8 + 1
        bits = b"".join(each.to_bytes(width, "little") for each in self._reach.values())
        rows = np.frombuffer(bits, np.uint8).reshape(-1, width)
        behind = [int((rows[:, n // 8] >> n % 8 & 1).sum()) for n in range(len(self._ends))]

        def key(number: int) -> tuple[bool, bool, int]:
            one = made(Node(pairing.before, root, self._outputs[number]))
            apart = pairing.apart(one, self._ends[number]) or 0.0
            is_near = apart * thresholds.SHOWN.value <= rounding_of_few(one)
            return is_uniform(one.value), is_near, behind[number]

        return [self._outputs[number] for number in sorted(range(len(self._ends)), key=key)]

    def places(self, other: Node, members: Sequence[Node]) -> list[Node]:
        """Where a value may go wrong first, the most likely first.

        Args:
            other: the value that is wrong.
            members: nodes that it is made of, up to values that the right program has, too.
        """
        sizes = cone_sizes(other, members)
        chosen = [m for m in members if m != other and not is_constant(m) and not self._pairing.is_right(m)]

        def key(node: Node) -> tuple[int, bool, int]:
            return -self._reach.get(node, 0).bit_count(), self._pairing.is_known(node), sizes[node]

        return sorted(chosen, key=key)

    def values(self, node: Node, matches: Mapping[Node, Node | None]) -> list[Node]:
        """Values of the right program that may belong in the place of `node`, the most likely first.

        Args:
            node: of the wrong program.
            matches: what such nodes are made of, and what that is in the right program.
        """
        twins = [matches[n] for n in backwards(node, matches) if n in matches and n != node]
        known = dict.fromkeys(twin for twin in twins if twin is not None and not is_uniform(twin.value))
        found: dict[Node, tuple[int, int]] = {}
        for twin in known:
            for one, steps in self._reached(twin).items():
                missing, far = found.get(one, (len(known), 0))
                found[one] = missing - 1, far + steps
        size = size_of(node)
        fitting = (n for n in found if isinstance(n.kept, Sample) and size_of(n) == size)
        return sorted(fitting, key=found.__getitem__)[:_MOST]

    def _reached(self, start: Node) -> dict[Node, int]:
        """What is made of a value of the right program in few steps, up to values that both programs have."""
        if start not in self._steps_from:
            steps, queue = {start: 0}, [start]
            for node in queue:
                if steps[node] == _STEPS or (node != start and self._pairing.is_computed(node)):
                    continue
                for reader in self._pairing.flows[0].readers.get(node, ()):
                    if reader not in steps:
                        steps[reader] = steps[node] + 1
                        queue.append(reader)
            self._steps_from[start] = steps
        return self._steps_from[start]
