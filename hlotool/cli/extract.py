"""`hlotool extract`: cut instructions out of a program, with the values that they got."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from hlotool.cli.numbers import distance
from hlotool.cli.options import add_input_options, add_output_options, add_unknown_options, options_from
from hlotool.cli.output import emit, emit_json, tell, with_configuration
from hlotool.errors import ExitCode

USAGE = "extract [options] FILE INSTRUCTION ..."
ABOUT = "cut instructions out of a program, with the values that they got"
DESCRIPTION = """\
Cut instructions, a fusion or a whole computation out of a program into a program of their own. What they
read becomes parameters; the values that occurred are written beside it as .npz. Of a program for several
devices, what exchanges values gets those of each device, other parts get those of the first.
"""
EXAMPLES = """\
examples:
  hlotool extract FILE.hlo fusion.3               one fusion
  hlotool extract FILE.hlo add.7 --height 2       two steps back along its operands, too
  hlotool extract FILE.hlo body.12 --call 4       the body of a loop at iteration 4
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    parser.add_argument("path", metavar="FILE", help="HLO file, or the dump of one module")
    parser.add_argument("names", nargs="+", metavar="INSTRUCTION", help="names; or of one computation")
    group = parser.add_argument_group("what to cut out")
    group.add_argument("--stage", metavar="LABEL", default="", help="of a dump [the first]")
    group.add_argument(
        "--height", metavar="N", type=distance, default=0, help="steps back along operands [0]"
    )
    group.add_argument(
        "--call", metavar="N", type=distance, default=0, help="iteration of the loop around it [0]"
    )
    add_unknown_options(group)
    group.add_argument("--output", "-o", metavar="FILE", help="the new program [NAME.extracted.hlo]")
    add_input_options(parser)
    add_output_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from hlotool.report.reduce_records import ExtractRecord
    from hlotool.search.extraction import cut_named
    from hlotool.search.reduction.files import default_output, write_case
    from hlotool.search.reduction.task import load_case

    loaded = load_case(arguments.path, options_from(arguments), arguments.stage, may_be_cut=True)
    cut = cut_named(loaded.case, arguments.names, arguments.height, arguments.call)
    output = Path(arguments.output or default_output(arguments.path, "extracted"))
    write_case(cut.case, output)
    inputs_file = str(output.with_suffix(".npz")) if cut.inputs else ""
    record = ExtractRecord(
        path=arguments.path,
        instructions=list(arguments.names),
        program=cut.case.text,
        parameters=[given.name for given in cut.inputs],
        output=str(output),
        inputs_file=inputs_file,
        inputs=loaded.inputs,
        exit_code=ExitCode.AGREE,
    )
    if arguments.json:
        emit_json(with_configuration(record, arguments))
        return record.exit_code
    emit(cut.case.text if arguments.verbose else "")
    if loaded.case.module.cut:
        tell(f"hlotool: note: {arguments.path}: {loaded.case.module.cut}")
    tell(f"{output}: {cut.case.size} instructions, inputs {loaded.inputs.description}")
    if cut.calls > 1:
        print(f"executed {cut.calls} times; values of number {arguments.call}", file=sys.stderr)
    given = ["--inputs", inputs_file] if inputs_file else []
    emit(f"next: {shlex.join(['hlotool', 'run', str(output), *given])}\n")
    return record.exit_code
