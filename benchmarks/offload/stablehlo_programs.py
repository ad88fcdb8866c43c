"""Random StableHLO programs that move arrays to the host and back.

Any operation takes any value, wherever it is; loops, branches and called functions hold more of them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

_ONE, _STACK = "tensor<8x128xf32>", "tensor<4x8x128xf32>"
_ROW = "tensor<1x8x128xf32>"
_MOST_DEPTH = 2


@dataclass
class _Region:
    """Operations of one region, and the values that may be used there.

    Attributes:
        values: names, types, and whether the value is moved to the host.
        lines: the operations.
    """

    values: list[tuple[str, str, bool]]
    lines: list[str] = field(default_factory=list)

    def inner(self, *own: tuple[str, str, bool]) -> _Region:
        return _Region([*self.values, *own])


class _Drawn:
    """One program."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.functions: list[str] = []
        self._count = 0
        #: How often operations take what is on the host as if it were on the device.
        self._carelessness = self.rng.choice([0.0, 0.0, 0.05, 0.2])

    def name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def text(self) -> str:
        held = [self.rng.random() < 0.4 for _ in range(4)]
        types = [_ONE, _STACK, _ONE, _STACK]
        region = _Region([(f"%arg{i}", t, h) for i, (t, h) in enumerate(zip(types, held))])
        for _ in range(self.rng.randint(2, 6)):
            self.step(region, 0)
        returned = region.values[4:][-1:] + [v for v in region.values[4:-1] if self.rng.random() < 0.3]
        returned = [v for v in returned if v[1] != _ROW] or [region.values[0]]
        wrong = self.rng.random() < 0.3
        places = [h and not (wrong and self.rng.random() < 0.5) for _, _, h in returned]
        arguments = ", ".join(f"%arg{i}: {t}{_kind(h)}" for i, (t, h) in enumerate(zip(types, held)))
        results = ", ".join(f"{t}{_kind(p)}" for (_, t, _), p in zip(returned, places))
        names, kinds = ", ".join(n for n, _, _ in returned), ", ".join(t for _, t, _ in returned)
        body = "\n".join([*region.lines, f"return {names} : {kinds}"])
        main = f"func.func public @main({arguments}) -> ({results}) {{\n{body}\n}}"
        return "module @m {\n" + "\n".join([main, *self.functions]) + "\n}\n"

    def take(self, region: _Region, on_host: bool, kind: str = _ONE) -> str:
        careless = self.rng.random() < self._carelessness
        found = [n for n, t, h in region.values if t == kind and (h == on_host or careless)]
        if found:
            return self.rng.choice(found)
        constant, made = self.name(), self.name()
        region.lines.append(
            f"{constant} = stablehlo.constant dense<{self.rng.choice(['0.0', '1.0'])}> : tensor<f32>"
        )
        region.lines.append(
            f"{made} = stablehlo.broadcast_in_dim {constant}, dims = [] : (tensor<f32>) -> {kind}"
        )
        return self.move(region, made, kind, True) if on_host else made

    def move(self, region: _Region, value: str, kind: str, to_host: bool) -> str:
        place = "pinned_host" if to_host else "device"
        moved = self.name()
        attributes = f'mhlo.frontend_attributes = {{_xla_buffer_placement = "{place}"}}'
        region.lines.append(
            f"{moved} = stablehlo.custom_call @annotate_device_placement({value}) "
            f"{{has_side_effect = true, {attributes}}} : ({kind}) -> {kind}"
        )
        region.values.append((moved, kind, to_host))
        return moved

    def step(self, region: _Region, depth: int) -> None:
        steps = [self.compute, self.compute, self.to_host, self.to_host, self.to_device, self.to_device]
        steps += [self.slice, self.update, self.update]
        if depth < _MOST_DEPTH:
            steps += [self.loop, self.branches, self.call]
        self.rng.choice(steps)(region, depth)

    def add(self, region: _Region, line: str, kind: str, on_host: bool) -> str:
        made = self.name()
        region.lines.append(f"{made} = {line}")
        region.values.append((made, kind, on_host))
        return made

    def compute(self, region: _Region, depth: int) -> None:
        x, kind = self.take(region, False), self.rng.choice(["sine", "add", "multiply", "transpose"])
        if kind == "transpose":
            turned = self.name()
            region.lines.append(
                f"{turned} = stablehlo.transpose {x}, dims = [1, 0] : ({_ONE}) -> tensor<128x8xf32>"
            )
            self.add(region, f"stablehlo.reshape {turned} : (tensor<128x8xf32>) -> {_ONE}", _ONE, False)
        elif kind == "sine":
            self.add(region, f"stablehlo.sine {x} : {_ONE}", _ONE, False)
        else:
            self.add(region, f"stablehlo.{kind} {x}, {self.take(region, False)} : {_ONE}", _ONE, False)

    def to_host(self, region: _Region, depth: int) -> None:
        kind = self.rng.choice([_ONE, _STACK])
        self.move(region, self.take(region, False, kind), kind, True)

    def to_device(self, region: _Region, depth: int) -> None:
        kind = self.rng.choice([_ONE, _STACK])
        self.move(region, self.take(region, True, kind), kind, False)

    def index(self, region: _Region) -> tuple[str, str]:
        row, zero = self.name(), self.name()
        region.lines.append(f"{row} = stablehlo.constant dense<{self.rng.randrange(4)}> : tensor<i32>")
        region.lines.append(f"{zero} = stablehlo.constant dense<0> : tensor<i32>")
        return row, zero

    def slice(self, region: _Region, depth: int) -> None:
        """A row of a stack on the host, moved to the device at once, after a view, or not at all."""
        stack, (row, zero) = self.take(region, True, _STACK), self.index(region)
        if self.rng.random() < 0.3:
            found = self.add(
                region, f"stablehlo.slice {stack} [1:2, 0:8, 0:128] : ({_STACK}) -> {_ROW}", _ROW, True
            )
        else:
            indices = "tensor<i32>, tensor<i32>, tensor<i32>"
            found = self.add(
                region,
                f"stablehlo.dynamic_slice {stack}, {row}, {zero}, {zero}, sizes = [1, 8, 128] : "
                f"({_STACK}, {indices}) -> {_ROW}",
                _ROW,
                True,
            )
        how = self.rng.random()
        if how < 0.5:
            found = self.move(region, found, _ROW, False)
        view = self.add(region, f"stablehlo.reshape {found} : ({_ROW}) -> {_ONE}", _ONE, how >= 0.5)
        if 0.5 <= how < 0.85:
            self.move(region, view, _ONE, False)

    def update(self, region: _Region, depth: int) -> None:
        """A row of a stack, offloaded; the stack is filled on the device, is on the host, or is computed."""
        kind = self.rng.random()
        if kind < 0.5:
            constant, stack = self.name(), self.name()
            region.lines.append(f"{constant} = stablehlo.constant dense<0.0> : tensor<f32>")
            region.lines.append(
                f"{stack} = stablehlo.broadcast_in_dim {constant}, dims = [] : (tensor<f32>) -> {_STACK}"
            )
        else:
            stack = self.take(region, kind < 0.85, _STACK)
        row = self.name()
        x = self.take(region, False)
        region.lines.append(f"{row} = stablehlo.reshape {x} : ({_ONE}) -> {_ROW}")
        moved = self.move(region, row, _ROW, True)
        first, zero = self.index(region)
        self.add(
            region,
            f"stablehlo.dynamic_update_slice {stack}, {moved}, {first}, {zero}, {zero} : "
            f"({_STACK}, {_ROW}, tensor<i32>, tensor<i32>, tensor<i32>) -> {_STACK}",
            _STACK,
            True,
        )

    def loop(self, region: _Region, depth: int) -> None:
        """Three rounds that carry a value of each kind; the condition seldom looks at one of them."""
        places = [self.rng.random() < 0.4, self.rng.random() < 0.6]
        kinds = [_ONE, _STACK]
        begins = [self.take(region, place, kind) for place, kind in zip(places, kinds)]
        count, zero, three, one = (self.name() for _ in range(4))
        region.lines.append(f"{zero} = stablehlo.constant dense<0> : tensor<i32>")
        carried = [self.name() for _ in range(2)]
        body = region.inner(*((n, k, p) for n, k, p in zip(carried, kinds, places)))
        body.values = body.values[-2:] + ([] if self.rng.random() < 0.7 else body.values[:-2])
        own = len(body.values)
        for _ in range(self.rng.randint(1, 2)):
            self.step(body, depth + 1)
        del own
        ends = [self.take(body, place, kind) for place, kind in zip(places, kinds)]
        looks = self.rng.random() < 0.15
        out = self.name()
        condition = [f"{three} = stablehlo.constant dense<3> : tensor<i32>"]
        low = self.name()
        condition.append(
            f"{low} = stablehlo.compare LT, {count}, {three} : (tensor<i32>, tensor<i32>) -> tensor<i1>"
        )
        if looks:
            condition += self._look(carried[0])
            low, before = self.name(), low
            condition.append(f"{low} = stablehlo.and {before}, {condition[-1].split(' = ')[0]} : tensor<i1>")
        next_count = self.name()
        types = f"tensor<i32>, {_ONE}, {_STACK}"
        region.lines.append(
            f"{out}:3 = stablehlo.while({count} = {zero}, {carried[0]} = {begins[0]}, {carried[1]} = {begins[1]})"  # noqa: E501
            f" : {types} cond {{"
        )
        region.lines += [*condition, f"stablehlo.return {low} : tensor<i1>", "} do {", *body.lines]
        region.lines += [
            f"{one} = stablehlo.constant dense<1> : tensor<i32>",
            f"{next_count} = stablehlo.add {count}, {one} : tensor<i32>",
            f"stablehlo.return {next_count}, {ends[0]}, {ends[1]} : {types}",
            "}",
        ]
        region.values += [(f"{out}#{i + 1}", k, p) for i, (k, p) in enumerate(zip(kinds, places))]

    def _look(self, value: str) -> list[str]:
        """Whether one element of a value is small."""
        part, number, limit, small = (self.name() for _ in range(4))
        return [
            f"{part} = stablehlo.slice {value} [0:1, 0:1] : ({_ONE}) -> tensor<1x1xf32>",
            f"{number} = stablehlo.reshape {part} : (tensor<1x1xf32>) -> tensor<f32>",
            f"{limit} = stablehlo.constant dense<9.0> : tensor<f32>",
            f"{small} = stablehlo.compare LT, {number}, {limit} : (tensor<f32>, tensor<f32>) -> tensor<i1>",
        ]

    def branches(self, region: _Region, depth: int) -> None:
        on_host, x = self.rng.random() < 0.4, self.take(region, False)
        taken = self._look(x)
        region.lines += taken
        out, sides = self.name(), []
        for _ in range(2):
            side = region.inner()
            self.step(side, depth + 1)
            end = self.take(side, on_host)
            sides.append("\n".join([*side.lines, f"stablehlo.return {end} : {_ONE}"]))
        small = taken[-1].split(" = ")[0]
        region.lines.append(
            f'{out} = "stablehlo.if"({small}) ({{\n{sides[0]}\n}}, {{\n{sides[1]}\n}}) : (tensor<i1>) -> {_ONE}'  # noqa: E501
        )
        region.values.append((out, _ONE, on_host))

    def call(self, region: _Region, depth: int) -> None:
        takes, gives = self.rng.random() < 0.4, self.rng.random() < 0.4
        inner = _Region([("%x", _ONE, takes)])
        for _ in range(self.rng.randint(1, 2)):
            self.step(inner, depth + 1)
        end = self.take(inner, gives)
        called = f"@f{len(self.functions)}_{self._count}"
        body = "\n".join([*inner.lines, f"return {end} : {_ONE}"])
        self.functions.append(f"func.func private {called}(%x: {_ONE}) -> {_ONE} {{\n{body}\n}}")
        x = self.take(region, takes)
        self.add(region, f"func.call {called}({x}) : ({_ONE}) -> {_ONE}", _ONE, gives)


def _kind(on_host: bool) -> str:
    return ' {mhlo.memory_kind = "pinned_host"}' if on_host else ""


def drawn(seed: int) -> str:
    """A program in StableHLO, for one device."""
    return _Drawn(seed).text()
