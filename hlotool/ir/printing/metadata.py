"""Text of what annotates a program: metadata, frontend attributes, backend configs, stack-frame tables.

XLA: hlo_op_metadata.cc, hlo_lexer.cc (LexJsonDict), hlo_module.cc.
"""

from __future__ import annotations

import re
from dataclasses import fields

from hlotool.ir.attributes import BackendConfig, FrontendAttributes, Ints, Metadata, StackFrameTables

_ESCAPES = {0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t", 0x22: '\\"', 0x27: "\\'", 0x5C: "\\\\"}
_ESCAPE_TABLE = [
    _ESCAPES.get(byte, chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}") for byte in range(256)
]
_NEEDS_ESCAPE = re.compile(r"[^ -!#-&(-\[\]-~]")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
#: In XLA's order, which is that of the fields.
_METADATA_KEYS = tuple(field.name for field in fields(Metadata) if field.name != "obsolete")
_BRACE_OR_QUOTE = re.compile(r'[{}"]')


def c_escape(text: str) -> str:
    """C escapes for all but printable ASCII; other characters become the octal bytes of their UTF-8."""
    if not _NEEDS_ESCAPE.search(text):
        return text
    return "".join(_ESCAPE_TABLE[byte] for byte in text.encode("utf-8", "surrogateescape"))


def quote(text: str) -> str:
    """`text` in quotes, escaped as XLA escapes it."""
    return f'"{c_escape(text)}"'


def lexes_as_dictionary(text: str) -> bool:
    """Whether `text` may stand without quotes: balanced braces around anything, strings respected."""
    if not text.startswith("{"):
        return False
    depth, at = 0, 0
    while found := _BRACE_OR_QUOTE.search(text, at):
        at = found.end()
        if found[0] == '"':
            string = _QUOTED.match(text, found.start())
            if string is None:
                return False
            at = string.end()
            continue
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return at == len(text)
    return False


def metadata_text(metadata: Metadata) -> str:
    """`op_name="…" source_line=3 …`, no braces; keys that current XLA rejects are left out."""
    values = ((key, getattr(metadata, key)) for key in _METADATA_KEYS)
    return " ".join(f"{key}={_metadata_value(value)}" for key, value in values if value)


def _metadata_value(value: str | int | Ints) -> str:
    if isinstance(value, str):
        return quote(value)
    return f"{{{','.join(map(str, value))}}}" if isinstance(value, tuple) else str(value)


def frontend_text(attributes: FrontendAttributes) -> str:
    """`{a="x",b={json}}`, sorted by key."""
    return "{" + ",".join(f"{key}={value}" for key, value in sorted(attributes.entries)) + "}"


def backend_config_text(config: BackendConfig) -> str:
    """The bare text where the lexer can find its end, else a quoted string."""
    return config.text if lexes_as_dictionary(config.text) else quote(config.text)


def stack_frame_tables_text(tables: StackFrameTables) -> str:
    """The four tables after the HloModule line, each followed by a blank line."""
    parts: list[str] = []
    for title, names in (("FileNames", tables.file_names), ("FunctionNames", tables.function_names)):
        parts.append(
            "".join([f"{title}\n", *(f"{row} {quote(name)}\n" for row, name in names.items()), "\n"])
        )
    locations = (
        f"{row} {{file_name_id={at.file_name_id} function_name_id={at.function_name_id} line={at.line}"
        f" end_line={at.end_line} column={at.column} end_column={at.end_column}}}\n"
        for row, at in tables.file_locations.items()
    )
    parts.append("".join(["FileLocations\n", *locations, "\n"]))
    frames = (
        f"{row} {{file_location_id={frame.file_location_id} parent_frame_id={frame.parent_frame_id}}}\n"
        for row, frame in tables.stack_frames.items()
    )
    parts.append("".join(["StackFrames\n", *frames, "\n"]))
    return "".join(parts)
