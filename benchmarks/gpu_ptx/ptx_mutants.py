"""Mutants of one PTX instruction: kinds of changes, and where a text has places for them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

#: What the other operation, or comparison, or rounding is.
_OTHER_OPCODES = {
    "add": "sub", "sub": "add", "mul.lo": "mul.hi", "and": "or", "or": "xor", "xor": "and", "shl": "shr",
    "shr": "shl", "min": "max", "max": "min", "mul.rn": "add.rn", "fma.rn": "mul.rn", "ex2": "lg2",
    "sqrt": "rsqrt", "mul.wide": "mul.lo",
}  # fmt: skip
_OTHER_COMPARISONS = {
    "lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "eq": "ne", "ne": "eq", "ltu": "leu", "gtu": "geu",
    "equ": "neu", "neu": "equ", "leu": "ltu", "geu": "gtu", "nan": "num", "num": "nan",
    "lo": "ls", "hi": "hs",
}  # fmt: skip
_OTHER_ROUNDINGS = {
    "rn": "rz",
    "rz": "rn",
    "rm": "rp",
    "rp": "rm",
    "rni": "rzi",
    "rzi": "rni",
    "rmi": "rpi",
    "rpi": "rmi",
}
_OTHER_TYPES = {
    "s16": "u16", "u16": "s16", "s32": "u32", "u32": "s32", "s64": "u64", "u64": "s64", "s8": "u8",
    "u8": "s8", "b32": "b16", "b16": "b8", "b64": "b32", "f32": "f16", "bf16": "f16",
}  # fmt: skip

#: A statement of a body: an optional predicate, the opcode with its modifiers, operands.
_STATEMENT = re.compile(r"(?P<guard>@!?%\w+\s+)?(?P<opcode>[a-z][\w.:]*)\s+(?P<operands>[^;]+);")
_NOT_CODE = ("ld.param", "ret", "cvta")
_MEMORY = ("ld.", "st.", "ldmatrix", "stmatrix", "cp.async", "atom", "red")


@dataclass(frozen=True)
class Statement:
    """One instruction: where it stands in the text, and its parts."""

    begin: int
    end: int
    guard: str
    opcode: str
    operands: str


def statements(text: str) -> Iterator[Statement]:
    """The instructions of all kernels of a text, but for what reads parameters."""
    for found in _STATEMENT.finditer(text, text.find("{")):
        if not found["opcode"].startswith(_NOT_CODE) and not found["opcode"].startswith("."):
            yield Statement(
                found.start(), found.end(), found["guard"] or "", found["opcode"], found["operands"]
            )


def _written(
    s: Statement, guard: str | None = None, opcode: str | None = None, operands: str | None = None
) -> str:
    return f"{s.guard if guard is None else guard}{opcode or s.opcode} {operands or s.operands};"


def _opcode(s: Statement, rng: random.Random) -> str | None:
    for name, other in _OTHER_OPCODES.items():
        if not (s.opcode + ".").startswith(name + "."):
            continue
        operands, opcode = s.operands, other + s.opcode[len(name) :]
        if other.startswith("mul.rn"):
            operands = ",".join(operands.split(",")[:3])
        if name in ("shl", "shr"):
            opcode = (
                other
                + "."
                + s.opcode.rsplit(".", 1)[1].replace(
                    "b" if other == "shr" else "s", "u" if other == "shr" else "b"
                )
            )
            opcode = opcode.replace("shl.u", "shl.b")
        if name == "mul.wide":
            return None
        return _written(s, opcode=opcode, operands=operands)
    return None


def _constant(s: Statement, rng: random.Random) -> str | None:
    """An integer one more or less, a float twice as large."""
    if s.opcode.startswith(("bar", "barrier", "shfl")) or "[" in s.operands:
        return None
    places = list(
        re.finditer(r"(?<=[\s,{])(-?\d+|0x[0-9a-fA-F]+|0[fF][0-9a-fA-F]{8})(?=\s*(?:,|$|\}))", s.operands)
    )
    if not places:
        return None
    at = rng.choice(places)
    if at[0][:2] in ("0f", "0F"):
        bits = int(at[0][2:], 16)
        new = f"0f{(bits + (1 << 23)) & 0xFFFFFFFF if bits else 0x3F800000:08X}"
    else:
        new = str(int(at[0], 0) + rng.choice([-1, 1]))
    return _written(s, operands=s.operands[: at.start()] + new + s.operands[at.end() :])


def _predicate(s: Statement, rng: random.Random) -> str | None:
    if not s.guard:
        return None
    return _written(s, guard=s.guard.replace("@", "@!") if "!" not in s.guard else s.guard.replace("!", ""))


def _word(
    words: dict[str, str], opcodes: tuple[str, ...]
) -> Callable[[Statement, random.Random], str | None]:
    """One modifier is another one."""

    def changed(s: Statement, rng: random.Random) -> str | None:
        parts = s.opcode.split(".")
        places = [n for n, part in enumerate(parts) if n and part in words]
        if parts[0] not in opcodes or not places:
            return None
        at = rng.choice(places)
        parts[at] = words[parts[at]]
        return _written(s, opcode=".".join(parts))

    return changed


def _offset(s: Statement, rng: random.Random) -> str | None:
    """An address some bytes further on, or less far."""
    found = re.search(r"\[\s*(%?\w+)\s*(?:\+\s*(-?\d+))?\s*\]", s.operands)
    if found is None or not s.opcode.startswith(_MEMORY):
        return None
    width = re.search(r"[bsuf](\d+)$", s.opcode)
    step = max(1, int(width[1]) // 8) if width else 16
    new = f"[{found[1]}+{int(found[2] or 0) + rng.choice([-1, 1]) * step}]"
    return _written(s, operands=s.operands[: found.start()] + new + s.operands[found.end() :])


def _barrier(s: Statement, rng: random.Random) -> str | None:
    """Some of the threads wait at another barrier."""
    return _written(s, operands="1") if s.opcode == "bar.sync" and s.operands.strip() == "0" else None


def _lane(s: Statement, rng: random.Random) -> str | None:
    if not s.opcode.startswith("shfl"):
        return None
    parts = s.operands.split(",")
    place = parts[2].strip()
    if not place.isdigit():
        return None
    parts[2] = f" {int(place) ^ rng.choice([1, 2, 4])}"
    return _written(s, operands=",".join(parts))


def _missing(s: Statement, rng: random.Random) -> str | None:
    return "" if not s.opcode.startswith(("bra", "bar")) else None


KINDS: dict[str, Callable[[Statement, random.Random], str | None]] = {
    "opcode": _opcode,
    "constant": _constant,
    "predicate": _predicate,
    "comparison": _word(_OTHER_COMPARISONS, ("setp", "set")),
    "rounding": _word(_OTHER_ROUNDINGS, ("cvt", "add", "mul", "fma", "sub", "div", "sqrt", "rcp")),
    "type": _word(
        _OTHER_TYPES, ("setp", "shr", "cvt", "div", "rem", "mul", "mad", "min", "max", "ld", "st", "bfe")
    ),
    "offset": _offset,
    "barrier": _barrier,
    "lane": _lane,
    "missing": _missing,
}
#: Registers of one type in PTX of LLVM have the same letters.
_REGISTER = re.compile(r"%(?:r|rd|f|fd|rs|p|h)(?=\d)\d+")


@dataclass(frozen=True)
class Mutant:
    """A text with one instruction changed.

    Attributes:
        kind: of the change; see `KINDS`, and `register`.
        line: of the text.
        before, after: the instruction.
        text: all of it.
    """

    kind: str
    line: int
    before: str
    after: str
    text: str


def _register(s: Statement, others: list[str], rng: random.Random) -> str | None:
    """A source is another register of the same type, which was written before."""
    first = s.operands.find(",")
    places = [f for f in _REGISTER.finditer(s.operands) if f.start() > first]
    if not places or first < 0:
        return None
    at = rng.choice(places)
    prefix = at[0].rstrip("0123456789")
    same = [one for one in others if one.rstrip("0123456789") == prefix and one != at[0]]
    if not same:
        return None
    return _written(s, operands=s.operands[: at.start()] + rng.choice(same) + s.operands[at.end() :])


def mutants(text: str, rng: random.Random) -> Iterator[Mutant]:
    """Mutants of a text without end, of kinds and at places that are drawn; none where there is no code."""
    found = list(statements(text))
    while found:
        kind = rng.choice([*KINDS, "register"])
        for s in rng.sample(found, len(found)):
            if kind == "register":
                new = _register(s, _written_before(s, found, text), rng)
            else:
                new = KINDS[kind](s, rng)
            if new is not None:
                changed = text[: s.begin] + new + text[s.end :]
                line = text.count("\n", 0, s.begin) + 1
                yield Mutant(kind, line, " ".join(text[s.begin : s.end].split()), new, changed)
                break


def _written_before(s: Statement, found: list[Statement], text: str) -> list[str]:
    """The registers that earlier instructions of the same kernel name first."""
    entry = text.rfind(".entry", 0, s.begin)
    earlier = [o for o in found if entry < o.begin < s.begin]
    return [name for o in earlier for name in _REGISTER.findall(o.operands)[:1]]
