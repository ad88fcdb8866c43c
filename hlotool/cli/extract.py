"""`hlotool extract`: cut instructions out of a program, with the values that they got."""

from __future__ import annotations

import argparse

from hlotool.api.numbers import distance
from hlotool.cli.calling import keywords
from hlotool.cli.finishing import finish
from hlotool.cli.options import add_input_options, add_output_options, add_unknown_options
from hlotool.cli.output import tell

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
    add_input_options(parser, outputs=False)
    add_output_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from hlotool.api.extract import extract
    from hlotool.search.reduction.files import default_output

    given = keywords(extract, arguments)
    given["output"] = arguments.output or default_output(arguments.path, "extracted")
    record = extract(arguments.path, arguments.names, **given).record
    if not arguments.json:
        of = f", inputs {record.inputs.description}" if record.inputs is not None else ""
        tell(f"{record.output}: {record.size} instructions{of}")
        if record.calls > 1:
            tell(f"executed {record.calls} times; values of number {arguments.call}")
    return finish(record, arguments)
