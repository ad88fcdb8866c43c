"""Damage to files: single bits of every format, and the structure of texts, protos and archives."""

from __future__ import annotations

import io
import random
import tarfile
import zipfile
from collections.abc import Callable

from support.hlo_mutation import mutated

from hlotool.parser.proto.schema import varint

Damage = Callable[[random.Random, bytes], bytes]

#: Numbers at which readers break: signs, widths of types, what exceeds any memory.
_NUMBERS = (
    0,
    1,
    2,
    63,
    127,
    128,
    255,
    1 << 16,
    1 << 31,
    (1 << 31) - 1,
    1 << 32,
    1 << 40,
    (1 << 63) - 1,
    1 << 63,
)
_WORDS = [
    "nan",
    "inf",
    "-inf",
    "0x00zz",
    "1e999",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "1e-400",
    "true",
    "null",
    "{}",
    "[]",
    'dense<"0x00zz">',
    "tensor<0x9223372036854775807xf32>",
    "f32[0,9223372036854775807]",
    "i1",
    "f8E4M3FN",
    "complex<f32>",
    "\\x1b[31m",
]


def bits(generator: random.Random, content: bytes) -> bytes:
    """One to four places changed, cut out, repeated, or the end cut off."""
    data = bytearray(content)
    for _ in range(generator.choice((1, 1, 2, 4))):
        at = generator.randrange(len(data) + 1)
        match generator.randrange(6):
            case 0 if at < len(data):
                data[at] ^= 1 << generator.randrange(8)
            case 1 if at < len(data):
                data[at] = generator.choice((0, 1, 0x7F, 0x80, 0xFF, 0x1B, 0x0A, generator.randrange(256)))
            case 2:
                del data[at : at + generator.choice((1, 2, 8, 64))]
            case 3:
                begin = generator.randrange(len(data) + 1)
                data[at:at] = data[begin : begin + generator.choice((1, 4, 16, 100))]
            case 4 if generator.random() < 0.2:
                del data[at:]
            case _:
                data[at:at] = generator.randbytes(generator.choice((1, 2, 8)))
    return bytes(data)


def text(generator: random.Random, content: bytes) -> bytes:
    """Words and lines of a text changed; now and then its bytes."""
    if generator.random() < 0.1:
        return bits(generator, content)
    changed = mutated(generator, content.decode("utf-8", "replace") or " ")
    if generator.random() < 0.3:
        at = generator.randrange(len(changed) + 1)
        changed = changed[:at] + generator.choice(_WORDS) + changed[at:]
    if generator.random() < 0.2:
        changed = _other_number(generator, changed)
    return changed.encode("utf-8", "replace")


def _other_number(generator: random.Random, changed: str) -> str:
    """One of the numbers of a text replaced by one at which readers break."""
    digits = [
        at for at, c in enumerate(changed) if c.isdigit() and (at == 0 or not changed[at - 1].isdigit())
    ]
    if not digits:
        return changed
    start = end = generator.choice(digits)
    while end < len(changed) and changed[end].isdigit():
        end += 1
    return changed[:start] + str(generator.choice((-1, 1)) * generator.choice(_NUMBERS)) + changed[end:]


def spliced(seeds: Callable[[], list[bytes]]) -> Damage:
    """Damage of a text that, now and then, goes on as another one from somewhere in it."""

    def damage(generator: random.Random, content: bytes) -> bytes:
        if generator.random() < 0.2:
            own, other = content.split(b"\n"), generator.choice(seeds()).split(b"\n")
            kept = own[: generator.randrange(len(own) + 1)]
            return b"\n".join([*kept, *other[generator.randrange(len(other)) :]])
        return text(generator, content)

    return damage


def first_lines(generator: random.Random, content: bytes) -> bytes:
    """Damage of a header: of the rest of a text only where it is cut."""
    header, end, body = content.partition(b"\n")
    if generator.random() < 0.1:
        body = body[: generator.randrange(len(body) + 1)]
    return text(generator, header).replace(b"\n", b" ") + end + body


def proto(generator: random.Random, content: bytes) -> bytes:
    """A field of a message, or of one within it, changed; lengths fit again afterwards."""
    if generator.random() < 0.3:
        return bits(generator, content)
    try:
        fields = _fields(content)
    except ValueError:
        return bits(generator, content)
    if not fields:
        return bits(generator, content)
    at = generator.randrange(len(fields))
    number, kind, value = fields[at]
    match generator.randrange(8):
        case 0:
            del fields[at]
        case 1:
            fields.insert(generator.randrange(len(fields) + 1), fields[at])
        case 2:
            fields[at] = (
                generator.choice((number + 1, max(1, number - 1), generator.randrange(1, 90))),
                kind,
                value,
            )
        case 3 if kind == 0:
            fields[at] = (number, kind, _varint(generator.choice(_NUMBERS) % (1 << 64)))
        case 4:
            fields[at] = (
                number,
                *generator.choice(((0, _varint(3)), (2, b""), (5, b"\0\0\0\x80"), (1, b"\xff" * 8))),
            )
        case _ if kind == 2:
            fields[at] = (number, kind, proto(generator, value) if value else generator.randbytes(3))
        case _:
            fields[at] = (number, kind, _varint(generator.choice(_NUMBERS)) if kind == 0 else value[::-1])
    return b"".join(_written(field) for field in fields)


def _fields(content: bytes) -> list[tuple[int, int, bytes]]:
    """Number, wire type and raw value of the fields of a message; raises ValueError for what is none."""
    fields, at = [], 0
    while at < len(content):
        tag, at = varint(content, at)
        kind, start = tag & 7, at
        match kind:
            case 0:
                _, at = varint(content, at)
            case 1 | 5:
                at += 8 if kind == 1 else 4
            case 2:
                length, start = varint(content, at)
                at = start + length
            case _:
                raise ValueError(kind)
        if at > len(content) or tag < 8:
            raise ValueError(tag)
        fields.append((tag >> 3, kind, content[start:at]))
    return fields


def _written(field: tuple[int, int, bytes]) -> bytes:
    number, kind, value = field
    length = _varint(len(value)) if kind == 2 else b""
    return _varint(number << 3 | kind) + length + value


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value >= 128:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def zipped(generator: random.Random, content: bytes) -> bytes:
    """A member of a zip damaged inside, its name changed, or the archive's own bytes."""
    return _or_bits(_zipped, generator, content)


def tarred(generator: random.Random, content: bytes) -> bytes:
    """A file of a tar damaged, made a link or a device, or its header's bytes."""
    return _or_bits(_tarred, generator, content)


def _or_bits(damage: Damage, generator: random.Random, content: bytes) -> bytes:
    """Damage of the archive's own bytes, too: where it was damaged before, members cannot be had any more."""
    if generator.random() < 0.4:
        return bits(generator, content)
    try:
        return damage(generator, content)
    except Exception:
        return bits(generator, content)


def _zipped(generator: random.Random, content: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(target, "w") as made:
        names = source.namelist()
        chosen = generator.choice(names)
        for name in names:
            data = source.read(name)
            if name == chosen:
                data = bits(generator, data)
                if generator.random() < 0.3:
                    name = generator.choice(
                        ("../../x", "/etc/x", "a\x1b[31mb", "x" * 300, "é\n.npy", name + "/", ".npy")
                    )
            made.writestr(name, data, generator.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))
    return target.getvalue()


def _tarred(generator: random.Random, content: bytes) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(content)) as source, tarfile.open(fileobj=target, mode="w") as made:
        infos = source.getmembers()
        chosen = generator.choice(infos)
        for info in infos:
            file = source.extractfile(info)
            data = file.read() if file else b""
            if info is chosen:
                data = bits(generator, data) if generator.random() < 0.5 else data
                info.name = generator.choice((info.name, "../../x", "/etc/x", "a\x1bb", "n\nl"))
                info.type = generator.choice(
                    (tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE)
                )
                info.linkname = generator.choice(("/etc/passwd", "../x", info.name))
            info.size = len(data)
            made.addfile(info, io.BytesIO(data))
    return target.getvalue()
