"""`opt`: passes on a program, and its conversion between text and proto."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hlotool.api.given import checked, several
from hlotool.api.numbers import distance
from hlotool.api.programs import load
from hlotool.api.results import Result
from hlotool.api.spool import Program
from hlotool.errors import DumpError, ExitCode, UsageError
from hlotool.ir.module import Module

if TYPE_CHECKING:
    from hlotool.passes.base import Fuel
    from hlotool.passes.manager import PassManager, PassRecord
    from hlotool.passes.registry import PassDescription
    from hlotool.report.opt_records import OptRecord, PassesRecord


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


def opt(
    path: Program,
    *,
    form: str | None = None,
    emit: str = "text",
    output: str | os.PathLike[str] | None = None,
    passes: str = "",
    pass_fuel: int | Sequence[str] = (),
    verify: bool = True,
    print_before: Sequence[str] = (),
    print_after: Sequence[str] = (),
    dump_to: str | os.PathLike[str] | None = None,
    compiler: str = "",
) -> OptResult:
    """Run passes on a program, or a compiler's.

    Args:
        path: a file of HLO, text or proto, or a module, which is not changed.
        form: what the file is, `text` or `proto`; None looks inside.
        emit: form of `OptResult.content`: `text`, `hlo` (the same), `proto`, `stablehlo`, or `filecheck`, a
            test of `passes`.
        output: file for that; None writes none.
        passes: pipeline, such as `inline,fix(simplify,cse,dce),fuse{kind=loop}`.
        pass_fuel: transformations after which all passes stop; or texts such as `12` and `fuse=12`.
        verify: the program, after each pass.
        print_before: passes before which the program goes to stderr; `all` for every pass.
        print_after: likewise after it, where something changed.
        dump_to: folder for the program after each pass, as XLA writes it.
        compiler: a backend whose compiler makes something of the program, such as `xla` or `aot:v5e`; the
            result is what that ends with.

    Raises:
        DumpError: the file cannot be read.
        UsageError: no such pass or form, a file cannot be written.
        InputError: it is no valid HLO, or a pass made it invalid.
        Unsupported: it cannot be written in that form.
    """
    checked({"form": form, "emit": emit})
    from hlotool.ir.edit_clone import clone_module
    from hlotool.stores.masks import taken_in

    module = clone_module(path).module if isinstance(path, Module) else _load(os.fspath(path), form)
    before = module.to_text() if emit == "filecheck" else ""
    fuel = [str(pass_fuel)] if isinstance(pass_fuel, int) else several(pass_fuel)
    if compiler and dump_to and passes:
        raise UsageError("one dump holds passes of one compiler: --passes, or --compile, with --dump-to")
    own = None if compiler else dump_to
    manager = _run(module, passes, _fuel(fuel), verify, print_before, print_after, own)
    if compiler:
        from hlotool.search.optimised import optimised

        module = optimised(module, compiler, None if dump_to is None else Path(dump_to))
    pieces = _pieces(module, emit, passes, before)
    if output is not None:
        from hlotool.findings.files import write_file

        write_file(output, pieces)
    shown = module.name if isinstance(path, Module) else taken_in(os.fspath(path))
    written = "" if output is None else taken_in(os.fspath(output))
    return OptResult(_record(shown, passes, manager.runs, written), module, pieces)


def list_passes() -> Passes:
    """The passes that `opt` knows, as `hlotool opt --list-passes` prints them."""
    from hlotool.passes.registry import PIPELINES, PassDescription, describe_passes
    from hlotool.report.opt_records import PassesRecord

    pipelines = [PassDescription(name=name, about=text) for name, text in PIPELINES.items()]
    return Passes(PassesRecord(passes=describe_passes(), pipelines=pipelines))


def _load(path: str, form: str | None) -> Module:
    """The program, verified; `form` says what it is, None looks inside the file."""
    if form is None:
        return load(path)
    from hlotool.findings.files import read_file
    from hlotool.ir.verifier import verify_or_raise
    from hlotool.parse.proto.module import parse_module_proto
    from hlotool.parse.reader import parse_module
    from hlotool.stores.masks import taken_in

    content = sys.stdin.buffer.read() if path == "-" else read_file(path, DumpError)
    shown = "<stdin>" if path == "-" else taken_in(path)
    if form == "proto":
        module = parse_module_proto(content, shown)
    else:
        module = parse_module(content.decode("utf-8", "surrogateescape"), shown)
    verify_or_raise(module)
    return module


def _run(
    module: Module,
    passes: str,
    fuel: Fuel,
    verify: bool,
    print_before: Sequence[str],
    print_after: Sequence[str],
    dump_to: str | os.PathLike[str] | None,
) -> PassManager:
    from hlotool.backends.registry import evaluate_constant
    from hlotool.passes.base import Context
    from hlotool.passes.manager import PassManager
    from hlotool.passes.observers import ALL, DumpModules, PrintModules
    from hlotool.passes.pipeline import known_pass, parse_pipeline
    from hlotool.stores.access import refuse_url

    dump = DumpModules(Path(refuse_url("--dump-to", os.fspath(dump_to)))) if dump_to else None
    around = [
        [name if name == ALL else known_pass(name) for name in several(names)]
        for names in (print_before, print_after)
    ]
    printing = PrintModules(sys.stderr.write, *around)
    manager = PassManager(
        Context(fuel=fuel, evaluate=evaluate_constant),
        [printing, *([dump] if dump else [])],
        verify=verify,
    )
    if dump:
        dump.begin(module)
    if passes:
        manager.run(module, parse_pipeline(passes))
    if dump:
        dump.end(module)
    return manager


def _fuel(given: Sequence[str]) -> Fuel:
    from hlotool.passes.base import Fuel
    from hlotool.passes.pipeline import known_pass

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
        from hlotool.parse.proto.write import write_module_proto

        return [write_module_proto(module)]
    if emit == "stablehlo":
        from hlotool.backends.stablehlo.convert import to_stablehlo

        return [to_stablehlo(module).encode("utf-8", "surrogateescape")]
    if emit == "filecheck":
        from hlotool.ir.printing.filecheck import filecheck_test

        return [filecheck_test(before, module, passes).encode("utf-8", "surrogateescape")]
    return _Text(module)


def _record(path: str, passes: str, runs: list[PassRecord], output: str) -> OptRecord:
    from hlotool.report.opt_records import OptRecord
    from hlotool.report.records import versions

    return OptRecord(
        versions=versions(),
        path=path,
        passes=passes,
        runs=runs,
        changed=any(run.changes for run in runs),
        output=output,
    )
