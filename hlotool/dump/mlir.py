"""Programs as frontends hand them over: StableHLO as text or bytecode, which jaxlib makes HLO.

XLA may abort on a program, so it reads it in a process of its own.
"""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from hlotool.errors import BackendUnavailable, DumpError

_logger = logging.getLogger(__name__)

#: Seconds that a conversion may take.
TIMEOUT = 300.0

_CHILD = Path(__file__).with_name("mlir_child.py")
#: The first bytes of MLIR bytecode. `jax.export` wraps it, after its length, in a message of its own.
BYTECODE = b"ML\xefR"
_MLIR = re.compile(
    rb"(?>(?:\s|//[^\n]*+\n)*)"
    rb"(?:#\w+ ?=|!\w+ ?=|(?:builtin\.)?module\b[^\n]*\{|\"builtin\.module\"|func\.func\b)"
)
_STABLEHLO = re.compile(rb"\b(?:stablehlo|mhlo|chlo|vhlo|func\.func|sdy)\b")


def is_mlir(head: bytes) -> bool:
    """Whether a file that begins with `head` is StableHLO: text, bytecode, or what `jax.export` writes."""
    if b"\0" in head:
        return _bytecode_start(head) >= 0
    return _MLIR.match(head) is not None and _STABLEHLO.search(head) is not None


def _bytecode_start(content: bytes) -> int:
    """Where bytecode begins, at the start or behind the length that a flatbuffer gives it; -1 for nowhere."""
    at = content.find(BYTECODE)
    if at == 0:
        return 0
    while at >= 4:
        length = int.from_bytes(content[at - 4 : at], "little")
        if 16 < length < 1 << 31:
            return at
        at = content.find(BYTECODE, at + 1)
    return -1


def _bytecode(content: bytes) -> bytes:
    at = _bytecode_start(content)
    if at <= 0:
        return content
    length = int.from_bytes(content[at - 4 : at], "little")
    return content[at : at + length]


def hlo_proto(content: bytes, name: str) -> bytes:
    """The HloModuleProto of a StableHLO program.

    Args:
        content: text or bytecode.
        name: of the file, for messages.

    Raises:
        BackendUnavailable: there is no jaxlib.
        DumpError: XLA does not take the program; the message is XLA's own.
    """
    if find_spec("jaxlib") is None:
        raise BackendUnavailable(f"{name}: StableHLO is read by jaxlib: pip install 'hlotool[xla]'")
    if b"\0" in content:
        content = _bytecode(content)
    return _converted(content, name)


@lru_cache(maxsize=2)
def _converted(content: bytes, name: str) -> bytes:
    _logger.info("run %s for %s, %g s at most", _CHILD.name, name, TIMEOUT)
    try:
        child = subprocess.run(
            # -P: what lies beside the child is no library; Python 3.14 has a package `compression`, too.
            [sys.executable, "-P", str(_CHILD)],
            input=content,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise DumpError(f"{name}: XLA did not read this StableHLO within {TIMEOUT:g} s") from error
    if child.returncode:
        raise DumpError(f"{name}: XLA does not read this StableHLO: {_reason(child.stderr)}")
    return child.stdout


def _reason(stderr: bytes) -> str:
    """The last line that says something."""
    lines = [line.strip() for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    told = [line for line in lines if "error:" in line or "Error" in line]
    return (told or lines or ["no reason given"])[-1]
