"""MLIR text of StableHLO into a module: the entry point.

XLA's importer reads whole programs or nothing. This reader ignores what has no effect on values: attributes
and resources of other dialects. It refuses one operation by its name and place, where HLO has none for it.
"""

from __future__ import annotations

from hlotool.errors import HloSyntaxError, VerificationError
from hlotool.ir.module import Module
from hlotool.parser.mlir import (  # noqa: F401 - they register rules
    complex_functions,
    contractions,
    control,
    elementwise,
    expansions,
    gamma_functions,
    older,
    reductions,
)
from hlotool.parser.mlir.attributes import unquoted
from hlotool.parser.mlir.frames import rule_of
from hlotool.parser.mlir.functions import Program
from hlotool.parser.mlir.operations import OperationReader
from hlotool.parser.mlir.pretty import PRETTY
from hlotool.parser.mlir.syntax import RETURNS
from hlotool.parser.mlir.tokens import Text
from hlotool.system.resources import collector_off


def parse_mlir(text: str, path: str | None = None, entry: str = "") -> Module:
    """Read a program.

    Args:
        text: of one module, or of functions alone.
        path: of the file, for messages.
        entry: the function to run; without it `main`, or the only one that is not private.

    Returns:
        the module; constants whose values the text leaves out are elided.

    Raises:
        HloSyntaxError: it is no MLIR, or breaks a rule of StableHLO; with line and column.
        Unsupported: an operation or a type that HLO does not have; likewise.
        UsageError: there is no such entry, or several functions may be meant.
    """
    source = Text(text, path)
    with collector_off():
        reader = OperationReader(source, PRETTY, _is_known)
        found = reader.operations("")
        program = Program(source, reader.scopes, _resources(reader))
        program.collect(found)
        try:
            return program.module(entry)
        except VerificationError as error:
            # What reads a value by its kind says so as of a finished instruction.
            raise HloSyntaxError(error.message, error.location) from error


def _is_known(name: str) -> bool:
    return rule_of(name) is not None or name in PRETTY or name in RETURNS


def _resources(reader: OperationReader) -> dict[str, str]:
    """Blobs of `{-# dialect_resources: { builtin: { name: "0x…" } } #-}`, in hexadecimal."""
    found: dict[str, str] = {}
    while reader.kind != "end":
        name = reader.next()
        if reader.word == ":" and reader.ahead().startswith('"0x'):
            reader.next()
            key = unquoted(name) if name.startswith('"') else name
            found[key] = unquoted(reader.next()).removeprefix("0x")
    return found
