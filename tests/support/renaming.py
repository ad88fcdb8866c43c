"""The same program as another compilation would write it: other names, other source lines, other channels."""

from __future__ import annotations

import random
import re

_STRING = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")')


def renamed(text: str, tag: str, seed: int) -> str:
    """HLO text with other names.

    Args:
        text: with `%` before names, as XLA dumps it.
        tag: goes into the module's name, the frontend's names and the paths of sources.
        seed: of the numbers in names.
    """
    rng = random.Random(f"{tag} {seed}")
    shift, lines = rng.randrange(100, 900), rng.randrange(1, 50)
    names: dict[str, str] = {}

    def name(match: re.Match[str]) -> str:
        base, _, number = match[0].rpartition(".")
        is_numbered = bool(base) and number.isdigit()
        names[match[0]] = f"{base}.{int(number) + shift}" if is_numbered else f"{match[0]}.{shift}"
        return names[match[0]]

    def parameter(match: re.Match[str]) -> str:
        return f"{names.get('%' + match[1], match[1]).removeprefix('%')}: "

    parts = _STRING.split(text)
    parts[::2] = [re.sub(r"%[A-Za-z_][\w.-]*", name, part) for part in parts[::2]]
    made = "".join(parts)
    made = re.sub(
        r"^(?:ENTRY )?%\S+ \(.*\) -> .*\{$",
        lambda line: re.sub(r"(?<=[(\s])([A-Za-z_][\w.-]*): ", parameter, line[0]),
        made,
        flags=re.MULTILINE,
    )
    made = re.sub(r"\A(HloModule )([^\s,]+)", rf"\1\2_{tag}", made)
    made = made.replace('op_name="jit(', f'op_name="jit({tag}_').replace(
        'source_file="', f'source_file="{tag}/'
    )
    made = re.sub(r'^(\d+ ")([^"]+\.py")', rf"\1{tag}/\2", made, flags=re.MULTILINE)
    made = re.sub(r"( line=|source_line=)(\d+)", lambda m: m[1] + str(int(m[2]) + lines), made)
    return re.sub(r"\bchannel_id=([1-9]\d*)", lambda m: f"channel_id={int(m[1]) + shift}", made)
