"""`opt`: passes on a program, and its conversion between text and proto."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hlotool.errors import DumpError, ExitCode, UsageError
from hlotool.interface.api.results import Result
from hlotool.runs.options import declared
from hlotool.runs.options.declared import Arguments, As, File, Folder, Words, option, takes
from hlotool.runs.options.parsers import Program, distance

if TYPE_CHECKING:
    from hlotool.interface.report.listings import OptRecord, PassesRecord
    from hlotool.ir.module import Module
    from hlotool.rewrite.passes.base import Fuel
    from hlotool.rewrite.passes.manager import PassManager
    from hlotool.rewrite.passes.records import PassDescription, PassRecord


class OptResult(Result["PassRecord"]):
    """A program after passes; a row for each of them.

    Args:
        record: of the call, without the text.
        module: the program as it became.
        pieces: that program in the form that was asked for; text is UTF-8, made a piece at a time.

    Attributes:
        module: see above.
        pieces: see above; may be iterated again.
    """

    def __init__(self, record: OptRecord, module: Module, pieces: Iterable[bytes]) -> None:
        self._record = record
        self.module = module
        self.pieces = pieces

    @cached_property
    def record(self) -> OptRecord:
        """The record, with the text unless that went to a file."""
        from msgspec.structs import replace

        return replace(self._record, text="" if self._record.output else self.module.to_text())

    @cached_property
    def content(self) -> bytes:
        """The program in the form that was asked for; text is UTF-8."""
        return b"".join(self.pieces)

    @property
    def exit_code(self) -> ExitCode:
        """The exit status that the command ends with."""
        return ExitCode(self._record.exit_code)

    @property
    def rows(self) -> Sequence[PassRecord]:
        """One record per run of a pass, in order."""
        return self._record.runs

    @property
    def changed(self) -> bool:
        """Whether some pass changed the program."""
        return self._record.changed

    def __repr__(self) -> str:
        return f"<OptResult: {len(self.rows)} passes, {'changed' if self.changed else 'unchanged'}>"


class Passes(Result["PassDescription"]):
    """The passes that `opt` knows."""

    record: PassesRecord

    @property
    def rows(self) -> Sequence[PassDescription]:
        """One record per pass; `record.pipelines` has the names that stand for several."""
        return self.record.passes


class _Program(Arguments):
    path: Program = option(
        "HLO text or proto; - for stdin",
        "a file of HLO, text or proto, or a module, which is not changed",
        kw_only=False,
        nargs="?",
        metavar="FILE",
    )
    form: str | None = option(
        "what FILE is [look inside]",
        "what the file is; None looks inside",
        default=None,
        choices=("text", "proto"),
        flags=("--from",),
    )
    emit: str = option(
        "what to write; filecheck is a test of --passes [text]",
        "form of `OptResult.content`: `text`, `hlo` (the same), `proto`, `stablehlo`, or `filecheck`, a"
        " test of `passes`",
        default="text",
        choices=("text", "hlo", "proto", "stablehlo", "filecheck"),
    )
    output: File = option(
        "write the program here [stdout]",
        "file for that; None writes none",
        default=None,
        once=True,
        flags=("--output", "-o"),
    )


class _Passes(Arguments, group="passes"):
    passes: str = option(
        "a,b{option=value},fix(c,d)",
        "pipeline, such as `inline,fix(simplify,cse,dce),fuse{kind=loop}`",
        default="",
        metavar="PIPELINE",
    )
    list_passes: bool = option("list passes and their options", default=False, init=False, once=True)
    pass_fuel: As[int | Sequence[str], tuple[str, ...]] = option(
        "stop (one pass, or all) after N transformations",
        "transformations after which all passes stop; or texts such as `12` and `fuse=12`",
        default=(),
        kind="list",
        convert=lambda fuel: (str(fuel),) if isinstance(fuel, int) else declared.several(fuel),
        metavar="[PASS=]N",
    )
    verify: bool = option(
        "do not verify between passes", "whether the program is verified, after each pass", default=True
    )
    print_before: Words = option(
        "on stderr; 'all' for every pass",
        "passes before which the program goes to stderr; `all` for every pass",
        default=(),
        kind="list",
        metavar="PASS",
    )
    print_after: Words = option(
        "print the program after these passes, where it changed", default=(), kind="list", metavar="PASS"
    )
    dump_to: Folder = option("write the program after each pass, as XLA does", default=None)


class OptArguments(_Program, _Passes):
    """What `opt` takes, and `hlotool opt`."""


@takes(OptArguments)
def opt(asked: OptArguments) -> OptResult:
    """Run passes on a program.

    Raises:
        DumpError: the file cannot be read.
        UsageError: no such pass or form, a file cannot be written.
        InputError: it is no valid HLO, or a pass made it invalid.
        Unsupported: it cannot be written in that form.
    """
    from hlotool.ir.edit_programs import clone_module
    from hlotool.ir.module import Module
    from hlotool.system.urls import taken_in

    path, emit, passes = asked.path, asked.emit, asked.passes
    module = clone_module(path).module if isinstance(path, Module) else _load(os.fspath(path), asked.form)
    before = module.to_text() if emit == "filecheck" else ""
    manager = _run(module, asked, asked.dump_to)
    pieces = _pieces(module, emit, passes, before)
    if asked.output is not None:
        from hlotool.system.paths import write_file

        write_file(asked.output, pieces)
    shown = module.name if isinstance(path, Module) else taken_in(os.fspath(path))
    return OptResult(_record(shown, passes, manager.runs, asked.output or ""), module, pieces)


def list_passes() -> Passes:
    """The passes that `opt` knows, as `hlotool opt --list-passes` prints them."""
    from hlotool.interface.report.listings import PassesRecord
    from hlotool.rewrite.passes.pipeline import PIPELINES, describe_passes
    from hlotool.rewrite.passes.records import PassDescription

    pipelines = [PassDescription(name=name, about=text) for name, text in PIPELINES.items()]
    return Passes(PassesRecord(passes=describe_passes(), pipelines=pipelines))


def _load(path: str, form: str | None) -> Module:
    """The program, verified; `form` says what it is, None looks inside the file."""
    if form is None:
        from hlotool.interface.api.programs import load

        return load(path)
    from hlotool.ir.verifier import verify_or_raise
    from hlotool.parser.proto.module import parse_module_proto
    from hlotool.parser.reader import parse_module
    from hlotool.system.paths import read_file
    from hlotool.system.urls import taken_in

    content = sys.stdin.buffer.read() if path == "-" else read_file(path, DumpError)
    shown = "<stdin>" if path == "-" else taken_in(path)
    if form == "proto":
        module = parse_module_proto(content, shown)
    else:
        module = parse_module(content.decode("utf-8", "surrogateescape"), shown)
    verify_or_raise(module)
    return module


def _run(module: Module, asked: OptArguments, dump_to: str | None) -> PassManager:
    from hlotool.backends.registry import evaluate_constant
    from hlotool.rewrite.passes.base import Context
    from hlotool.rewrite.passes.manager import ALL, DumpModules, PassManager, PrintModules
    from hlotool.rewrite.passes.pipeline import known_pass, parse_pipeline
    from hlotool.system.store_access import refuse_url

    dump = DumpModules(Path(refuse_url("--dump-to", dump_to))) if dump_to else None
    around = [
        [name if name == ALL else known_pass(name) for name in names]
        for names in (asked.print_before, asked.print_after)
    ]
    printing = PrintModules(sys.stderr.write, *around)
    manager = PassManager(
        Context(fuel=_fuel(asked.pass_fuel), evaluate=evaluate_constant),
        [printing, *([dump] if dump else [])],
        verify=asked.verify,
    )
    if dump:
        dump.begin(module)
    if asked.passes:
        manager.run(module, parse_pipeline(asked.passes))
    if dump:
        dump.end(module)
    return manager


def _fuel(given: Sequence[str]) -> Fuel:
    from hlotool.rewrite.passes.base import Fuel
    from hlotool.rewrite.passes.pipeline import known_pass

    fuel = Fuel()
    for text in given:
        name, _, given_number = text.rpartition("=")
        try:
            left = distance(given_number)
        except argparse.ArgumentTypeError as error:
            raise UsageError(f"--pass-fuel {error}; write it like 12 or fuse=12") from None
        if name:
            fuel.by_pass[known_pass(name)] = left
        else:
            fuel.left = left
    return fuel


class _Text:
    """The text of a module, in pieces."""

    def __init__(self, module: Module) -> None:
        self._module = module

    def __iter__(self) -> Iterator[bytes]:
        from hlotool.ir.printer import module_pieces

        return (piece.encode("utf-8", "surrogateescape") for piece in module_pieces(self._module))


def _pieces(module: Module, emit: str, passes: str, before: str) -> Iterable[bytes]:
    """The program in the form that is asked for; `before` is its text before the passes."""
    if emit == "proto":
        from hlotool.parser.proto.module import write_module_proto

        return [write_module_proto(module)]
    if emit == "stablehlo":
        from hlotool.backends.stablehlo.backend import to_stablehlo

        return [to_stablehlo(module).encode("utf-8", "surrogateescape")]
    if emit == "filecheck":
        from hlotool.ir.filecheck import filecheck_test

        return [filecheck_test(before, module, passes).encode("utf-8", "surrogateescape")]
    return _Text(module)


def _record(path: str, passes: str, runs: list[PassRecord], output: str) -> OptRecord:
    from hlotool.interface.report.listings import OptRecord
    from hlotool.interface.report.records import versions

    return OptRecord(
        versions=versions(),
        path=path,
        passes=passes,
        runs=runs,
        changed=any(run.changes for run in runs),
        output=output,
    )
