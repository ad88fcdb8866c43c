"""HLO text as lines that can be edited: what planting needs of it, with no help of hlotool's own reader."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

_LINE = re.compile(
    r"^(\s+)(ROOT )?(%[\w.\-]+) = (\([^=]*?\)|[a-z][\w]*\[[^\]]*\](?:\{[^}]*\})?) ([a-z][\w\-]*)\((.*)$"
)
_HEADER = re.compile(r"^(ENTRY )?(%[\w.\-]+) \(.*\{\s*$")
_SHAPE = re.compile(r"^([a-z]\w*)\[([\d,]*)\](\{[^}]*\})?$")

#: Shape, opcode, operands and attributes of an instruction that is put in.
Step = tuple[str, str, tuple[str, ...], str]

FLOATS = ("f64", "f32", "bf16", "f16")


@dataclass(frozen=True)
class Line:
    """One instruction.

    Attributes:
        root: whether it is its computation's result.
        name: with `%`.
        shape: as it stands, with its layout.
        opcode: of HLO.
        operands: names with `%`; of a constant or a parameter what stands in the parentheses.
        attributes: everything behind the operands, with the leading comma.
    """

    root: bool
    name: str
    shape: str
    opcode: str
    operands: tuple[str, ...]
    attributes: str

    def __str__(self) -> str:
        return (
            f"  {'ROOT ' if self.root else ''}{self.name} = {self.shape} "
            f"{self.opcode}({', '.join(self.operands)}){self.attributes}"
        )

    @property
    def type(self) -> str:
        """Element type; `tuple` of a tuple."""
        match = _SHAPE.match(self.shape)
        return match[1] if match else "tuple"

    @property
    def dims(self) -> tuple[int, ...]:
        """Dimensions of an array."""
        match = _SHAPE.match(self.shape)
        return tuple(int(d) for d in match[2].split(",")) if match and match[2] else ()

    @property
    def layout(self) -> str:
        """Of an array, with its braces."""
        match = _SHAPE.match(self.shape)
        return (match[3] or "") if match else ""

    def attribute(self, key: str) -> str:
        """The text behind `key=`; empty where it is missing."""
        match = re.search(rf"\b{key}=(\{{[^{{}}]*\}}|%?[\w.\-]+)", self.attributes)
        return match[1] if match else ""

    def numbers(self, key: str) -> list[int]:
        """An attribute that is a list of integers."""
        return [int(n) for n in re.findall(r"-?\d+", self.attribute(key))]

    def retyped(self, element: str) -> str:
        """The shape with another element type."""
        return re.sub(r"^[a-z]\w*", element, self.shape)


@dataclass(frozen=True)
class Place:
    """Where an instruction stands.

    Attributes:
        at: number of the line in the text.
        line: the instruction.
        computation: name with `%`.
        entry: it is in the entry computation.
    """

    at: int
    line: Line
    computation: str
    entry: bool


class Text:
    """A module's text.

    Args:
        text: as dumped.
    """

    def __init__(self, text: str) -> None:
        # Comments as /*index=5*/ count operands and fields.
        self.lines = re.sub(r"/\*.*?\*/", "", text).splitlines()
        self.places: list[Place] = []
        computation, entry = "", False
        self.heads: dict[str, int] = {}
        for at, raw in enumerate(self.lines):
            if header := _HEADER.match(raw):
                entry, computation = bool(header[1]), header[2]
                self.heads[computation] = at
            elif line := _read(raw):
                self.places.append(Place(at, line, computation, entry))
        self._by_name = {(p.computation, p.line.name): p for p in self.places}
        self.uses: dict[tuple[str, str], list[Place]] = {}
        for p in self.places:
            for operand in p.line.operands:
                self.uses.setdefault((p.computation, operand), []).append(p)

    def operand(self, place: Place, number: int) -> Place | None:
        """Where operand `number` is defined."""
        operands = place.line.operands
        return self._by_name.get((place.computation, operands[number])) if number < len(operands) else None

    def of(self, *opcodes: str) -> list[Place]:
        """All instructions of these opcodes."""
        return [p for p in self.places if p.line.opcode in opcodes]

    def inside(self, computation: str) -> list[Place]:
        """The instructions of one computation."""
        return [p for p in self.places if p.computation == computation]

    def constant(self, place: Place | None) -> float | None:
        """The value of a scalar constant, also through broadcasts and conversions."""
        while place is not None and place.line.opcode in ("broadcast", "convert", "bitcast", "reshape"):
            place = self.operand(place, 0)
        if place is None or place.line.opcode != "constant" or place.line.dims:
            return None
        try:
            return float(place.line.operands[0])
        except ValueError:
            return {"true": 1.0, "false": 0.0}.get(place.line.operands[0])

    def read(self, place: Place) -> bool:
        """Whether anything reads it, or it is a result."""
        return place.line.root or bool(self.uses.get((place.computation, place.line.name)))

    # Edits: each returns the whole new text.

    def replaced(self, place: Place, *lines: Line | str) -> str:
        """These lines in the place of an instruction."""
        return (
            "\n".join(self.lines[: place.at] + [str(line) for line in lines] + self.lines[place.at + 1 :])
            + "\n"
        )

    def changed(self, place: Place, **fields: object) -> str:
        """An instruction with other fields."""
        return self.replaced(place, replace(place.line, **fields))  # type: ignore[arg-type]

    def reworded(self, place: Place, old: str, new: str) -> str:
        """An instruction in whose attributes `new` stands in place of `old`."""
        return self.changed(place, attributes=place.line.attributes.replace(old, new))

    def wrapped(self, place: Place, *steps: Step) -> str:
        """An instruction whose value goes through further ones.

        In operands `@` is the value before all steps, `@0`, `@1`, … are the results of the steps. The last
        step takes the name.
        """
        line = place.line
        inner = f"{line.name}.adv"
        names = {"@": inner} | {f"@{k}": f"{line.name}.adv{k}" for k in range(len(steps) - 1)}
        out: list[Line | str] = [replace(line, root=False, name=inner)]
        for k, (shape, opcode, operands, attributes) in enumerate(steps):
            last = k == len(steps) - 1
            name = line.name if last else names[f"@{k}"]
            out.append(
                Line(
                    last and line.root,
                    name,
                    shape,
                    opcode,
                    tuple(names.get(o, o) for o in operands),
                    attributes,
                )
            )
        return self.replaced(place, *out)

    def before(self, place: Place, number: int, *steps: Step) -> str:
        """Operand `number` of an instruction goes through further ones first (`@` is the operand)."""
        line = place.line
        names = {"@": line.operands[number]} | {f"@{k}": f"{line.name}.pre{k}" for k in range(len(steps))}
        out: list[Line | str] = []
        for k, (shape, opcode, operands, attributes) in enumerate(steps):
            out.append(
                Line(
                    False, names[f"@{k}"], shape, opcode, tuple(names.get(o, o) for o in operands), attributes
                )
            )
        operands = list(line.operands)
        operands[number] = names[f"@{len(steps) - 1}"]
        return self.replaced(place, *out, replace(line, operands=tuple(operands)))

    def forwarded(self, place: Place, number: int) -> str:
        """An operation that does nothing but return operand `number`."""
        return self.changed(place, opcode="copy", operands=(place.line.operands[number],), attributes="")


def _read(raw: str) -> Line | None:
    match = _LINE.match(raw)
    if match is None:
        return None
    depth, rest = 1, match[6]
    quoted = False
    end = 0
    for end, letter in enumerate(rest):  # noqa: B007
        if letter == '"':
            quoted = not quoted
        if quoted:
            continue
        depth += (letter in "({") - (letter in ")}")
        if depth == 0:
            break
    else:
        return None
    inside = rest[:end]
    if match[5] in ("constant", "parameter"):
        operands = (inside,)
    else:
        operands = tuple(o.strip() for o in inside.split(",") if o.strip())
    return Line(bool(match[2]), match[3], match[4], match[5], operands, rest[end + 1 :])


def filled(line: Line, value: object, at: int = 0) -> tuple[Step, Step]:
    """Two steps, the first of them step `at`: an array of a line's shape that is filled with a constant."""
    scalar = (f"{line.type}[]", "constant", (str(value),), "")
    if not line.dims:
        return scalar, (line.shape, "copy", (f"@{at}",), "")
    return scalar, (line.shape, "broadcast", (f"@{at}",), ", dimensions={}")


def swept(text: str) -> str:
    """Without instructions in fusions that nothing reads: XLA allows none there."""
    while True:
        found = Text(text)
        dead = {
            p.at
            for p in found.places
            if not found.read(p)
            and not p.entry
            and p.line.opcode not in ("parameter", "while", "custom-call")
        }
        if not dead:
            return text
        text = "\n".join(line for at, line in enumerate(found.lines) if at not in dead) + "\n"
