"""Random programs on two arrays of bytes, small enough that all pairs of bytes can be tried."""

from __future__ import annotations

import numpy as np


class _Lines:
    """A program as it grows.

    Args:
        seed: of all that is drawn.
        kind: type of the numbers.
        dims: of all arrays.
    """

    def __init__(self, seed: int, kind: str, dims: str) -> None:
        self.rng = np.random.default_rng(seed)
        self.kind, self.dims = kind, dims
        self.lines: list[str] = []
        self.numbers: list[str] = []
        self.masks: list[str] = []

    def add(self, text: str, kind: str = "") -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {kind or self.kind}[{self.dims}] {text}")
        return name

    def constant(self, values: list[object]) -> str:
        value = values[int(self.rng.integers(len(values)))]
        name = f"k{len(self.lines)}"
        self.lines.append(f"{name} = {self.kind}[] constant({value})")
        return self.add(f"broadcast({name}), dimensions={{}}")

    def number(self) -> str:
        return str(self.rng.choice(self.numbers))

    def mask(self) -> str:
        return str(self.rng.choice(self.masks))

    def text(self, result: str) -> str:
        body = "\n".join(self.lines)
        return f"HloModule m\nENTRY e {{\n{body}\nROOT r = {self.kind}[{self.dims}] copy({result})\n}}"


def low_bits_program(seed: int, dims: str) -> str:
    """Remainders by powers of two as simplifiers write them, and masks of what has zeros at the end."""
    program = _Lines(seed, "s8", dims)
    program.numbers = [program.add(f"parameter({n})") for n in range(2)]
    for _ in range(5):
        power = [1, 2, 4, 8][int(program.rng.integers(4))]
        x, zero = program.number(), program.constant([0])
        is_negative = program.add(f"compare({x}, {zero}), direction=LT", "pred")
        size = program.add(f"select({is_negative}, {program.add(f'negate({x})')}, {x})")
        low = program.add(f"and({size}, {program.constant([power - 1])})")
        signed = program.add(f"select({is_negative}, {program.add(f'negate({low})')}, {low})")
        moved = program.add(f"add({signed}, {program.constant([power])})")
        is_below = program.add(f"compare({signed}, {zero}), direction=LT", "pred")
        is_some = program.add(f"compare({signed}, {zero}), direction=NE", "pred")
        program.masks += [is_below, is_some]
        floored = program.add(
            f"select({program.add(f'and({is_below}, {is_some})', 'pred')}, {moved}, {signed})"
        )
        scaled = program.add(f"multiply({program.number()}, {program.constant([2, 4, 12, 16])})")
        kept = program.add(f"and({scaled}, {program.constant([3, 7, 28, -4, -16])})")
        total = program.add(f"add({program.add(f'add({floored}, {program.constant([1, 2, -3])})')}, {kept})")
        rest = program.add(f"remainder({total}, {program.constant([2, 3, 8])})")
        chosen = program.add(f"select({program.mask()}, {floored}, {rest})")
        program.numbers += [floored, kept, total, rest, chosen]
    return program.text(program.add(f"xor({program.numbers[-1]}, {program.number()})"))


def float_program(seed: int, dims: str) -> str:
    """Choices among all floats of a byte, NaN, infinities and zeros of both signs among them."""
    program = _Lines(seed, "f8e5m2", dims)
    program.numbers = [program.add(f"parameter({n})") for n in range(2)]
    for _ in range(7):
        x, rng = program.number(), program.rng
        other = program.constant([0, 1, -2, "inf", "nan"]) if rng.random() < 0.5 else program.number()
        direction = rng.choice(["LT", "LE", "GT", "GE", "EQ", "NE"])
        asked = f"is-finite({x})" if rng.random() < 0.3 else f"compare({x}, {other}), direction={direction}"
        if rng.random() < 0.3:
            asked = f"compare({x}, {x}), direction=NE"
        mask = program.add(asked, "pred")
        if program.masks and rng.random() < 0.5:
            mask = program.add(f"{rng.choice(['and', 'or'])}({mask}, {program.mask()})", "pred")
        program.masks.append(mask)
        inner = program.add(f"select({mask}, {x}, {other})")
        outer = program.add(
            f"select({program.mask()}, {inner}, {other if rng.random() < 0.5 else program.number()})"
        )
        program.numbers += [inner, outer, program.add(f"{rng.choice(['negate', 'abs'])}({program.number()})")]
    return program.text(program.numbers[-2])


def cases_program(seed: int, dims: str, kind: str = "s8") -> str:
    """Choices within choices of few numbers and masks, sums of them, and remainders that change their signs.

    What is known of a number on one side of a mask is soon asked on the other side, or on both.
    """
    program = _Lines(seed, kind, dims)
    rng = program.rng
    program.numbers = [program.add(f"parameter({n})") for n in range(2)]
    values: list[object] = [0, 1, 2, 3, 5, 100, *([-100, -3, -2, -1] if kind == "s8" else [200])]
    pool = [program.constant(values) for _ in range(3)]
    zero = program.constant([0])

    def operand() -> str:
        return str(rng.choice(pool)) if rng.random() < 0.4 else program.number()

    def recent() -> str:
        return program.numbers[-1 - int(rng.integers(min(4, len(program.numbers))))]

    def mask(text: str) -> str:
        program.masks.append(program.add(text, "pred"))
        return program.masks[-1]

    for _ in range(6):
        other = zero if rng.random() < 0.4 else operand()
        mask(f"compare({recent()}, {other}), direction={rng.choice(['LT', 'LE', 'GT', 'GE', 'EQ', 'NE'])}")
        if rng.random() < 0.5:
            mask(f"{rng.choice(['and', 'or', 'xor'])}({program.mask()}, {program.mask()})")
        if rng.random() < 0.5:
            mask(f"select({program.mask()}, {program.mask()}, {program.mask()})")
        program.numbers.append(program.add(f"select({program.mask()}, {recent()}, {operand()})"))
        opcode = str(rng.choice(["add", "add", "maximum", "negate", "remainder", "subtract", "subtract"]))
        read = recent() if opcode == "negate" else f"{recent()}, {operand()}"
        program.numbers.append(program.add(f"{opcode}({read})"))
        if rng.random() < 0.5:
            divisor = operand()
            rest = program.add(f"remainder({recent()}, {divisor})")
            moves = mask(f"compare({rest}, {zero}), direction={rng.choice(['LT', 'GT', 'NE'])}")
            if rng.random() < 0.5:
                moves = mask(f"{rng.choice(['and', 'xor'])}({moves}, {program.mask()})")
            moved = program.add(f"select({moves}, {program.add(f'add({rest}, {divisor})')}, {rest})")
            mask(f"compare({moved}, {zero}), direction={rng.choice(['NE', 'EQ'])}")
            program.numbers += [rest, moved]
        one, chosen, step = program.number(), program.mask(), operand()
        inner = program.add(f"select({chosen}, {one}, {program.number()})")
        sums = [program.add(f"add({number}, {step})") for number in (inner, one)]
        program.numbers.append(program.add(f"select({chosen}, {', '.join(sums)})"))
    return program.text(program.numbers[-1])


_LOOP = """HloModule m
body {{
  s = (s8[], {kind}[4,{dims}], {kind}[{dims}]) parameter(0)
  i = s8[] get-tuple-element(s), index=0
  rows = {kind}[4,{dims}] get-tuple-element(s), index=1
  y = {kind}[{dims}] get-tuple-element(s), index=2
  step = s8[] constant({step})
  next = s8[] add(i, step)
  zero = s8[] constant(0)
  at = s8[] {place}
  row = {kind}[1,{dims}] dynamic-slice(rows, at, zero), dynamic_slice_sizes={{1,{dims}}}
  x = {kind}[{dims}] reshape(row)
  mask = pred[{dims}] compare(y, x), direction={direction}
  {update}
  back = {kind}[1,{dims}] reshape(made)
  all = {kind}[4,{dims}] dynamic-update-slice(rows, back, i, zero)
  ROOT r = (s8[], {kind}[4,{dims}], {kind}[{dims}]) tuple(next, all, y)
}}
condition {{
  s = (s8[], {kind}[4,{dims}], {kind}[{dims}]) parameter(0)
  i = s8[] get-tuple-element(s), index=0
  end = s8[] constant({end})
  ROOT more = pred[] compare(i, end), direction={more}
}}
ENTRY e {{
  a = {kind}[{dims}] parameter(0)
  y = {kind}[{dims}] parameter(1)
  one = {kind}[1,{dims}] reshape(a)
  two = {kind}[1,{dims}] reshape(y)
  rows = {kind}[4,{dims}] concatenate(one, two, one, two), dimensions={{0}}
  start = s8[] constant({start})
  state = (s8[], {kind}[4,{dims}], {kind}[{dims}]) tuple(start, rows, y)
  loop = (s8[], {kind}[4,{dims}], {kind}[{dims}]) while(state), condition=condition, body=body
  end = {kind}[4,{dims}] get-tuple-element(loop), index=1
  row = {kind}[1,{dims}] slice(end), slice={{[{row}:{row}+1], [0:{dims}]}}
  ROOT r = {kind}[{dims}] reshape(row)
}}
"""


def loop_program(seed: int, dims: str) -> str:
    """A loop over four rows, some of which are read again, or written beyond the end, at the last one."""
    rng = np.random.default_rng(seed)
    is_upward = rng.random() < 0.6
    before = "subtract(i, step)" if rng.random() < 0.5 else "add(i, zero)"
    row = int(rng.integers(4))
    updates = [
        "made = s8[{dims}] select(mask, y, x)",
        "made = s8[{dims}] maximum(x, y)",
        "made = s8[{dims}] and(x, y)",
        "made = s8[{dims}] add(x, y)",
        "made = s8[{dims}] copy(x)",
    ]
    text = _LOOP.format(
        kind="s8",
        dims=dims,
        step=1 if is_upward else -1,
        start=int(rng.integers(0, 3)) if is_upward else int(rng.integers(2, 5)),
        end=int(rng.integers(2, 6)) if is_upward else int(rng.integers(-2, 2)),
        more=rng.choice(["LT", "LE"] if is_upward else ["GT", "GE"]),
        place=before,
        direction=rng.choice(["LT", "LE", "NE"]),
        update=str(rng.choice(updates)).format(dims=dims),
        row=row,
    )
    return text.replace(f"[{row}:{row}+1]", f"[{row}:{row + 1}]")
