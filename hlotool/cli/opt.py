"""`hlotool opt`: run passes on a program, and convert between text and proto."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hlotool.cli.numbers import distance
from hlotool.cli.options import add_output_options
from hlotool.cli.output import emit_bytes, emit_json, finish
from hlotool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from hlotool.ir.module import Module
    from hlotool.passes.base import Fuel
    from hlotool.passes.manager import PassManager, PassRecord
    from hlotool.report.opt_records import OptRecord, PassesRecord

USAGE = "opt [options] FILE"
ABOUT = "run passes on a program; convert between text and proto"
DESCRIPTION = """\
Run passes on an HLO program and print it. Without --passes it is printed as it is: in XLA's form, verified,
as text or as a proto.
"""
EXAMPLES = """\
examples:
  hlotool opt FILE --passes 'inline,fix(simplify,cse,dce),fuse{kind=loop}'
  hlotool opt FILE --passes despecialize -o plain.hlo
  hlotool opt FILE --passes fuse --pass-fuel 12           only the first 12 transformations
  hlotool opt FILE --passes simplify,fuse --dump-to DIR   a dump that hlotool run and bisect take
  hlotool opt FILE.hlo.pb --emit text                     a proto as text
  hlotool opt --list-passes                               passes and their options
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    parser.add_argument("path", nargs="?", metavar="FILE", help="HLO text or proto; - for stdin")
    parser.add_argument("--from", dest="form", choices=("text", "proto"), help="what FILE is [look inside]")
    parser.add_argument(
        "--emit",
        choices=("text", "hlo", "proto", "stablehlo", "filecheck"),
        default="text",
        help="what to write; filecheck is a test of --passes [text]",
    )
    parser.add_argument("--output", "-o", metavar="FILE", help="write the program here [stdout]")
    group = parser.add_argument_group("passes")
    group.add_argument("--passes", metavar="PIPELINE", default="", help="a,b{option=value},fix(c,d)")
    group.add_argument("--list-passes", action="store_true", help="list passes and their options")
    group.add_argument(
        "--pass-fuel",
        metavar="[PASS=]N",
        action="append",
        default=[],
        help="stop (one pass, or all) after N transformations",
    )
    group.add_argument("--no-verify", action="store_true", help="do not verify between passes")
    group.add_argument(
        "--print-before", metavar="PASS", action="append", default=[], help="on stderr; 'all' for every pass"
    )
    group.add_argument(
        "--print-after", metavar="PASS", action="append", default=[], help="likewise, where something changed"
    )
    group.add_argument("--dump-to", metavar="DIR", help="write the program after each pass, as XLA does")
    add_output_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    if arguments.list_passes:
        return finish(_passes(), arguments)
    if not arguments.path:
        raise UsageError("which program? hlotool opt FILE, or hlotool opt --list-passes")
    module = _load(arguments.path, arguments.form)
    before = module.to_text() if arguments.emit == "filecheck" else ""
    manager = _run(module, arguments)
    if arguments.json and arguments.emit == "proto" and not arguments.output:
        raise UsageError("--json and --emit proto both write to stdout; say --output FILE")
    if not arguments.json or arguments.output:
        _write(_content(module, arguments, before), arguments.output)
    if arguments.json:
        emit_json(_record(module, arguments, manager.runs))
    elif arguments.verbose:
        from hlotool.report.console import console_for, render
        from hlotool.report.opt import pass_table

        sys.stderr.write(render(console_for(sys.stderr), pass_table(manager.runs)))
    return ExitCode.AGREE


def _load(path: str, form: str | None) -> Module:
    """The program, verified; `form` says what it is, None looks inside the file."""
    if form is None:
        from hlotool.api import load

        return load(path)
    from hlotool.errors import DumpError
    from hlotool.findings.files import read_whole
    from hlotool.ir.verifier import verify_or_raise
    from hlotool.parse.proto.module import parse_module_proto
    from hlotool.parse.reader import parse_module

    content = sys.stdin.buffer.read() if path == "-" else read_whole(Path(path), DumpError)
    shown = "<stdin>" if path == "-" else path
    if form == "proto":
        module = parse_module_proto(content, shown)
    else:
        module = parse_module(content.decode("utf-8", "surrogateescape"), shown)
    verify_or_raise(module)
    return module


def _run(module: Module, arguments: argparse.Namespace) -> PassManager:
    from hlotool.backends.registry import evaluate_constant
    from hlotool.passes.base import Context
    from hlotool.passes.manager import PassManager
    from hlotool.passes.observers import DumpModules, PrintModules
    from hlotool.passes.pipeline import parse_pipeline

    dump = DumpModules(Path(arguments.dump_to)) if arguments.dump_to else None
    printing = PrintModules(sys.stderr.write, arguments.print_before, arguments.print_after)
    manager = PassManager(
        Context(fuel=_fuel(arguments.pass_fuel), evaluate=evaluate_constant),
        [printing, *([dump] if dump else [])],
        verify=not arguments.no_verify,
    )
    if dump:
        dump.begin(module)
    if arguments.passes:
        manager.run(module, parse_pipeline(arguments.passes))
    if dump:
        dump.end(module)
    return manager


def _fuel(given: Sequence[str]) -> Fuel:
    from hlotool.passes.base import Fuel

    fuel = Fuel()
    for text in given:
        name, _, given_number = text.rpartition("=")
        try:
            left = distance(given_number)
        except argparse.ArgumentTypeError as error:
            raise UsageError(f"--pass-fuel {error}; write it like 12 or fuse=12") from None
        if name:
            fuel.by_pass[name] = left
        else:
            fuel.left = left
    return fuel


def _content(module: Module, arguments: argparse.Namespace, before: str) -> Iterable[bytes]:
    """The program in the form that is asked for, in pieces; `before` is its text before the passes."""
    if arguments.emit == "proto":
        from hlotool.parse.proto.write import write_module_proto

        return [write_module_proto(module)]
    if arguments.emit == "stablehlo":
        from hlotool.backends.stablehlo.convert import to_stablehlo

        return [to_stablehlo(module).encode("utf-8", "surrogateescape")]
    if arguments.emit == "filecheck":
        from hlotool.ir.printing.filecheck import filecheck_test

        return [filecheck_test(before, module, arguments.passes).encode("utf-8", "surrogateescape")]
    from hlotool.ir.printer import module_pieces

    return (piece.encode("utf-8", "surrogateescape") for piece in module_pieces(module))


def _write(content: Iterable[bytes], output: str | None) -> None:
    if output:
        from hlotool.findings.files import writing

        with writing(output), Path(output).open("wb") as file:
            file.writelines(content)
    else:
        emit_bytes(content)


def _record(module: Module, arguments: argparse.Namespace, runs: list[PassRecord]) -> OptRecord:
    from hlotool.report.opt_records import OptRecord
    from hlotool.report.records import versions

    return OptRecord(
        versions=versions(),
        path=arguments.path,
        passes=arguments.passes,
        runs=runs,
        changed=any(run.changes for run in runs),
        text="" if arguments.output else module.to_text(),
        output=arguments.output or "",
    )


def _passes() -> PassesRecord:
    from hlotool.passes.registry import PIPELINES, PassDescription, describe_passes
    from hlotool.report.opt_records import PassesRecord

    pipelines = [PassDescription(name=name, about=text) for name, text in PIPELINES.items()]
    return PassesRecord(passes=describe_passes(), pipelines=pipelines)
