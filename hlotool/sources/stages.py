"""From one stage of a dump to a module, as it is."""

from __future__ import annotations

from hlotool.errors import HloSyntaxError
from hlotool.ir.module import Module
from hlotool.sources.file_names import Format
from hlotool.sources.records import Stage


def read_stage(stage: Stage, *, reads_literals: bool = True, entry: str = "") -> Module:
    """Parse a stage as it is: constants may be elided, and a text may be cut.

    Args:
        stage: of a dump.
        reads_literals: see `parse_module`.
        entry: the function of a StableHLO program that is run; see `parse_mlir`.

    Raises:
        DumpError: the file cannot be read.
        HloSyntaxError: its text is not HLO.
        ProtoError: its proto is damaged.
    """
    if stage.text is not None:
        from hlotool.parser.reader import parse_module

        text, path = stage.text.read_text(), stage.text.file_text
        try:
            module = parse_module(text, path, reads_literals=reads_literals)
        except HloSyntaxError as error:
            from hlotool.parser.reader import parse_cut

            return parse_cut(text, path, error)
        if "ENTRY" not in text:
            from hlotool.parser.reader import mark_missing_entry

            mark_missing_entry(module)
        return module
    from hlotool.parser.proto.module import parse_module_proto

    path = str(stage.source)
    if stage.format is Format.MLIR:
        from hlotool.sources.mlir import read_program

        return read_program(stage.source.read_bytes(), path, entry)
    return parse_module_proto(stage.source.read_bytes(), path)
