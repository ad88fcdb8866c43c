"""How XLA writes strings of a proto in HLO text: quoted and escaped, or bare when they are brace-balanced."""

from __future__ import annotations

_NAMED_ESCAPES = {0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t", 0x22: '\\"', 0x27: "\\'", 0x5C: "\\\\"}


def escaped(content: str) -> str:
    """`content` as it stands between quotes; everything but printable ASCII becomes an escape."""
    return "".join(_escaped_byte(byte) for byte in content.encode("utf-8", errors="surrogateescape"))


def _escaped_byte(byte: int) -> str:
    if byte in _NAMED_ESCAPES:
        return _NAMED_ESCAPES[byte]
    return chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"


def is_balanced_dictionary(text: str) -> bool:
    """Whether `text` is one `{…}`, braces inside strings not counted: XLA prints it without quotes."""
    depth = 0
    in_string = is_escaped = False
    for at, char in enumerate(text):
        if in_string:
            is_escaped, in_string = char == "\\" and not is_escaped, char != '"' or is_escaped
        elif char == '"':
            in_string = True
        elif char in "{}":
            depth += 1 if char == "{" else -1
            if depth == 0:
                return at == len(text) - 1
        if depth == 0:
            return False
    return False


def as_text(content: bytes) -> str:
    """A `bytes` field that holds text."""
    return content.decode("utf-8", errors="surrogateescape")
