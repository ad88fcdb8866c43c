"""Values of one execution that are those of another: by name, by the user's names, or by their bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from math import isinf
from typing import Any

import numpy as np

from hlotool.backends.field.values import numbered
from hlotool.errors import HlotoolError
from hlotool.facts import thresholds
from hlotool.facts.sharding import assemble, split
from hlotool.inputs.frames import (
    Frame,
    Node,
    Parts,
    Spread,
    iteration_of,
    same_place,
)
from hlotool.inputs.infer_sharding import infer_sharding, part_counts
from hlotool.inputs.recorded_values import Sample
from hlotool.ir.arrays import Array
from hlotool.ir.attributes import Mesh, Sharding
from hlotool.ir.types import subshape
from hlotool.judge.locate.flow import Flow
from hlotool.judge.locate.identity import (
    Dims,
    Name,
    Path,
    by_bits,
    by_name,
    digests,
    dims_of,
    name_of,
    operations,
    path_of,
    same_call,
    size_of,
)
from hlotool.judge.locate.likeness import distance, is_uniform, rounding, significant_bits
from hlotool.judge.locate.origins import backwards, is_parameter
from hlotool.judge.locate.sketches import Sketches

#: Values that what devices hold is arranged like, for one value.
_MOST_ARRANGED = 100


@dataclass(slots=True)
class Pairing:
    """Two executions.

    Attributes:
        before: of the program that is right.
        after: of the program that is wrong.
        seen: how far their results are apart.
        is_wide: both were computed in f64.
        meshes: of devices, along which values of the wrong program may be spread.
        is_far: so few names of the wrong program are in the right one that a name says nothing.
        elsewhere: both programs on other arguments; run when they are first asked for.
    """

    before: Frame
    after: Frame
    seen: float
    is_wide: bool = False
    meshes: Sequence[Mesh] = ()
    is_far: bool = field(init=False)
    elsewhere: Callable[[], tuple[Pairing, ...]] = tuple
    _others: tuple[Pairing, ...] | None = None
    _is_assembled: bool = field(init=False)
    _names_before: frozenset[tuple[str, str]] = field(init=False)
    _by_path: dict[Path, list[Node]] = field(default_factory=dict)
    _named_before: dict[Name, list[Node]] = field(init=False)
    _named_after: dict[Name, list[Node]] = field(init=False)
    _by_shape: dict[Dims, list[Node]] = field(default_factory=dict)
    _sketches: dict[Dims, Sketches] = field(default_factory=dict)
    _by_bits: dict[Any, list[Node]] = field(default_factory=dict)
    _bits_after: dict[Any, list[Node]] = field(default_factory=dict)
    _distances: dict[tuple[Any, Any], float | None] = field(default_factory=dict)
    _flows: tuple[Flow, Flow] | None = None

    def __post_init__(self) -> None:
        self._is_assembled = len(self.before.trace.stores) < len(self.after.trace.stores)
        self._names_before, names = operations(self.before), operations(self.after)
        surviving = len(self._names_before & names) / max(len(names), 1)
        self.is_far = not self._is_assembled and surviving < thresholds.SURVIVING_NAMES.value
        self._named_before = by_name(self.before)
        self._named_after = by_name(self.after)
        self._by_bits, self._bits_after = by_bits(self._named_before), by_bits(self._named_after)
        for node in self._all_before():
            if path := path_of(node):
                self._by_path.setdefault(path, []).append(node)
            if size_of(node) >= thresholds.TELLING_SIZE.value or self.is_far:
                self._by_shape.setdefault(dims_of(node), []).append(node)

    @property
    def others(self) -> tuple[Pairing, ...]:
        """Both programs on other arguments."""
        if self._others is None:
            self._others = self.elsewhere()
        return self._others

    @property
    def flows(self) -> tuple[Flow, Flow]:
        """What values are made of, in the right program and in the wrong one."""
        if self._flows is None:
            before, after = self._named_before.values(), self._named_after.values()
            self._flows = Flow(chain(*before)), Flow(chain(*after))
        return self._flows

    def _all_before(self) -> Iterator[Node]:
        return (node for named in self._named_before.values() for node in named)

    def apart(self, one: Node, other: Node) -> float | None:
        """How far two values are apart (see `distance`); None where that is not known."""
        left, right = one.kept, other.kept
        if left is None or right is None:
            return None
        key = digests(left), digests(right)
        if key not in self._distances:
            same = key[0] == key[1] and dims_of(one) == dims_of(other)
            self._distances[key] = 0.0 if same else self._measured(one, other)
        return self._distances[key]

    def _measured(self, one: Node, other: Node) -> float | None:
        left, right = one.value, other.value
        if left is None or right is None:
            return None
        if isinstance(left, Parts) and isinstance(right, Parts):
            return max((distance(a, b) for a, b in zip(left, right)), default=0.0)
        if isinstance(left, Parts):
            return None
        if isinstance(right, Parts):
            right = assembled(right, left, self.meshes)
        return None if right is None else distance(left, right)

    def first_device(self, expected: Array | Parts | None, actual: Parts) -> int | None:
        """The first device whose part of a value is wrong; None where that cannot be told."""
        if expected is None:
            return None
        if not isinstance(expected, Parts) and actual[0].shape != expected.shape:
            try:
                sharding = _arrangement(actual, expected, self.meshes)
                expected = Parts(split(expected, sharding, len(actual)))
            except (ValueError, HlotoolError):
                return None
        parts = expected if isinstance(expected, Parts) else [expected] * len(actual)
        limit = self.seen * thresholds.SHOWN.value
        apart = (distance(one, other) for one, other in zip(parts, actual))
        return next((n for n, each in enumerate(apart) if each > limit or isinf(each)), None)

    def differ(self, one: Node, other: Node) -> bool:
        """Whether two values are known to be further apart than rounding can put them."""
        apart = self.apart(one, other)
        return apart is not None and apart > self._limit(one)

    def agree(self, one: Node, other: Node) -> bool:
        """Whether two values are known to be the same, or within what rounding may do."""
        apart = self.apart(one, other)
        return apart is not None and apart <= self._limit(one)

    def is_near(self, value: Any, wanted: Node) -> bool:
        """Whether a value is that of `wanted`, in whatever dimensions, or within what rounding may do."""
        expected = wanted.value
        if isinstance(expected, np.ndarray) and isinstance(value, np.ndarray) and value.size == expected.size:
            value = value.reshape(expected.shape)
        return distance(expected, value) <= self._limit(wanted)

    def is_far_off(self, one: Node, other: Node) -> bool:
        """Whether what one operation gives in both programs is apart by more than rounding, however little
        of it the results show.
        """
        apart = self.apart(one, other)
        return self.twin_before(other) == one and apart is not None and apart > rounding_of_few(one)

    def _limit(self, one: Node) -> float:
        limit = rounding_of_few(one)
        if self.is_wide and limit:
            limit = thresholds.ROUNDED_CONSTANTS.value
        return min(limit, self.seen * thresholds.SHOWN.value)

    def first_difference(self) -> tuple[Node, Node] | None:
        """The first values of one name, in the order of execution, that are known to differ."""
        nodes = (node for named in self._named_after.values() for node in named)
        for other in sorted(nodes, key=lambda node: node.order):
            one = self.twin_before(other)
            if one is not None and self.differ(one, other):
                return one, other
        return None

    def fit(self, one: Node, other: Node) -> bool:
        """Whether two nodes can be the same array: of one shape and type, or parts of it and the whole."""
        left, right = one.kept, other.kept
        if left is None or right is None:
            return False
        if isinstance(left, Sample) and isinstance(right, Spread):
            local, count = right.samples[0].dims, len(right.samples)
            return local == left.dims or any(True for _ in part_counts(local, left.dims, count))
        return dims_of(one) == dims_of(other)

    def twin_before(self, node: Node) -> Node | None:
        """What the right program computed under the same name, in the same iteration, of the same shape."""
        named = self._named_before.get(name_of(node), [])
        if not named and self._is_assembled and (path := path_of(node)):
            # The partitioner renames; what the user called it stays.
            return self._called(path, node)
        twin = same_call(named, node)
        return twin if twin is not None and self.fit(twin, node) else None

    def _called(self, path: Path, node: Node) -> Node | None:
        """The only value of that path that a node can be: of the same opcode, else of as many operands."""
        wanted = node.instruction
        fitting = [other for other in self._by_path.get(path, ()) if self.fit(other, node)]
        alike = [other for other in fitting if other.instruction.opcode == wanted.opcode]
        alike = alike or [o for o in fitting if len(o.instruction.operands) == len(wanted.operands)]
        return alike[0] if len(alike) == 1 else None

    def twin_after(self, node: Node) -> Node | None:
        """The same for the wrong program."""
        twin = same_call(self._named_after.get(name_of(node), []), node)
        return twin if twin is not None and self.fit(node, twin) else None

    def is_right(self, node: Node) -> bool:
        """Whether the right program has this value under the same name, or computes it in the same way."""
        twin = self.twin_before(node)
        return (twin is not None and self.agree(twin, node)) or self._is_alike(node)

    def candidates(self, one: Node) -> list[Node]:
        """Values of the right program: what `one` is made of, then the others."""
        own = list(backwards(one, {}))
        return list(dict.fromkeys((*own, *self._all_before())))

    def _is_alike(self, node: Node) -> bool:
        """Whether operations of the same kind give this value in the right program, under any name.

        There must be as many of them: another one is a wrong operation that gives a value twice.
        """
        if not self.is_telling(node):
            return False
        opcode, dims = node.instruction.opcode, dims_of(node)
        counts = [
            sum(
                n.instruction.opcode == opcode and dims_of(n) == dims and _may_be_one(n, node)
                for n in known.get(digests(node.kept), ())
            )
            for known in (self._by_bits, self._bits_after)
        ]
        return 0 < counts[1] <= counts[0]

    def equal_value(self, node: Node, but: Node) -> Node | None:
        """A value of the right program that is this one of the wrong one by its content, and is not `but`."""
        if not self.is_telling(node):
            return None
        if self._is_assembled:
            return self._whole(node, but)
        same = self._by_bits.get(digests(node.kept), ())
        exact = [other for other in same if dims_of(other) == dims_of(node)]
        for candidate in (*exact, *self._near(node)):
            is_like = candidate != but and _may_be_one(candidate, node) and self.agree(candidate, node)
            if is_like and self.agree_elsewhere(candidate, node):
                return candidate
        return None

    def _near(self, node: Node) -> Sequence[Node]:
        """Values of the right program that a value of the same dimensions may agree with."""
        dims = dims_of(node)
        if not (alike := self._by_shape.get(dims, ())):
            return ()
        if dims not in self._sketches:
            self._sketches[dims] = Sketches(alike)
        return self._sketches[dims].near(node, self._limit(alike[0]))

    def _whole(self, node: Node, but: Node) -> Node | None:
        """A value of the right program that devices hold the parts of."""
        like = (one for one in self._all_before() if one != but and self.fit(one, node))
        near = islice((one for one in like if dims_of(one)[0] == dims_of(node)[0]), _MOST_ARRANGED)
        found = (one for one in near if not is_uniform(one.value) and self.agree(one, node))
        return next(found, None)

    def is_new(self, node: Node) -> bool:
        """Whether the right program has no operation of that name and kind."""
        return (node.instruction.name, node.instruction.opcode) not in self._names_before

    def is_computed(self, node: Node) -> bool:
        """Whether the wrong program has these bits of the right one somewhere, in whatever dimensions."""
        return node.kept is not None and digests(node.kept) in self._bits_after

    def is_known(self, node: Node) -> bool:
        """Whether the right program has these bits somewhere, in whatever dimensions."""
        return node.kept is not None and digests(node.kept) in self._by_bits

    def has_bits(self, node: Node, but: Node) -> bool:
        """Whether a value that is no coincidence has these bits in the right program, in any dimensions."""
        return self.is_telling(node) and self.has_same_bits(node, but)

    def has_same_bits(self, node: Node, but: Node) -> bool:
        """Whether a value of the right program, be it by chance, has these bits on all arguments."""
        if node.kept is None:
            return False
        same = self._by_bits.get(digests(node.kept), ())
        return any(
            other != but and _may_be_one(other, node) and self.agree_elsewhere(other, node, True)
            for other in same
        )

    def is_telling(self, node: Node) -> bool:
        """Whether a value is so particular that another one is hardly equal to it by chance."""
        if node.kept is None:
            return False
        if node.is_exact:
            # One word is one of some 10^9, unless it is a constant.
            return any(map(is_parameter, backwards(node, ())))
        if not is_uniform(node.value) and (
            size_of(node) >= thresholds.TELLING_SIZE.value
            or significant_bits(node.value) >= thresholds.TELLING_BITS.value
        ):
            return True
        if not self.is_far:
            return False
        places = [same_place(other.after, node) for other in self.others]
        bits = {digests(place.kept) for place in places if place is not None and place.kept is not None}
        return len(bits | {digests(node.kept)}) > 2

    def agree_elsewhere(self, one: Node, other: Node, bits: bool = False) -> bool:
        """Whether two values agree on other arguments, too, as far as that is known."""
        for pairing in self.others:
            left, right = same_place(pairing.before, one), same_place(pairing.after, other)
            if left is None or right is None or left.kept is None or right.kept is None:
                continue
            if digests(left.kept) != digests(right.kept) and (bits or not pairing.agree(left, right)):
                return False
        return True


def _may_be_one(one: Node, other: Node) -> bool:
    """Whether equal values can be one value: what another iteration of a loop computes is another one."""
    at, there = iteration_of(one.frame), iteration_of(other.frame)
    return at == there or len(at) != len(there)


def rounding_of_few(node: Node) -> float:
    """How far few operations may put a value off."""
    return rounding(subshape(node.instruction.shape, node.index), thresholds.FEW_OPERATIONS.value)


def assembled(parts: Parts, expected: Array, meshes: Sequence[Mesh]) -> Array | None:
    """The global array that devices hold parts or copies of, in the arrangement that fits `expected` best.

    None where they hold what fits nowhere, such as the parts of a sum.
    """
    if parts[0].shape == expected.shape:
        return parts[0] if all(part.tobytes() == parts[0].tobytes() for part in parts[1:]) else None
    try:
        return assemble(parts, expected.shape, _arrangement(parts, expected, meshes))[0]
    except (ValueError, HlotoolError):
        return None


def _arrangement(parts: Parts, expected: Array, meshes: Sequence[Mesh]) -> Sharding:
    """See `infer_sharding`; exact words are compared as numbers, whose sizes mean nothing."""
    return infer_sharding([numbered(part) for part in parts], numbered(expected), meshes)
