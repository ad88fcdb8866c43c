"""hlotool in notebooks: `%load_ext hlotool` brings `%%hlotool`, which is `hlotool exec` for a cell.

The cell is a program of its own. What it needs of others is named: the numbers of cells that run before it,
and the names of values that it gets.

IPython calls this module, and this module needs nothing of it but what its shell is given as.
"""

from __future__ import annotations

import argparse
import codecs
import io
import os
import pickle
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from hlotool.errors import BackendFailed, ExitCode, UsageError
from hlotool.interface.api.results import Result
from hlotool.system.user_input import did_you_mean

if TYPE_CHECKING:
    from hlotool.interface.report.command_records import ExecRecord
    from hlotool.runs.records import ModuleRecord

MAGIC = "hlotool"

#: Seconds after which an interrupt is noticed that came while a cell writes nothing.
LOOKS_UP = 0.5


class DisplayHook(Protocol):
    """What IPython's shell displays values with."""

    @property
    def prompt_count(self) -> int:
        """Number of the cell that is executed; the shell's own count may be ahead by one."""


class Shell(Protocol):
    """What is used of IPython's shell."""

    displayhook: DisplayHook
    #: The names of the notebook; `In` has the texts of its cells by number.
    user_ns: dict[str, Any]

    def register_magic_function(self, func: Callable[..., Any], magic_kind: str, magic_name: str) -> None:
        """Make a function a magic."""


#: A place in a cell, as Python and reports write it.
_PLACE = re.compile(r"[^\s\"'=>]*hlotool-cells-\w+[/\\]cell_(\d+)\.py(?::(\d+))?")


def _with_numbers(text: str) -> str:
    """Places in cells as the notebook shows their numbers: `cell [7], line 3`."""
    return _PLACE.sub(lambda found: f"cell [{found[1]}]" + (f", line {found[2]}" if found[2] else ""), text)


class ExecResult(Result["ModuleRecord"]):
    """What became of a program and of what it compiled: a row for each comparison.

    Args:
        record: as `hlotool exec` prints it.
        quiet: the report is to show only what disagrees.
        verbose: it is to show every detail.
    """

    record: ExecRecord

    def __init__(self, record: ExecRecord, quiet: bool = False, verbose: bool = False) -> None:
        super().__init__(record)
        self._shown = {"quiet": quiet, "verbose": verbose}

    @property
    def rows(self) -> Sequence[ModuleRecord]:
        """One record per comparison, by process and module."""
        return self.record.run.modules

    def report(self, *, quiet: bool = False, verbose: bool = False, width: int | None = None) -> str:
        """The report as plain text, as of other results, with cells by their numbers."""
        return _with_numbers(super().report(quiet=quiet, verbose=verbose, width=width))

    def to_html(self, *, quiet: bool = False, verbose: bool = False) -> str:
        """The report as a fragment of HTML, likewise."""
        return _with_numbers(super().to_html(quiet=quiet, verbose=verbose))

    def _repr_html_(self) -> str:
        return self.to_html(**self._shown)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """IPython on a terminal shows the report, too: it is what the cell was run for."""
        printer.text(self.report(**self._shown))


def register(shell: Shell) -> None:
    """Give a shell the magic."""
    shell.register_magic_function(CellMagic(shell).run, "cell", MAGIC)


class CellMagic:
    """Runs cells as programs; their files last as long as the kernel, for reports name them.

    Args:
        shell: that executes the cells.
    """

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._folder = Path(tempfile.mkdtemp(prefix="hlotool-cells-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def run(self, line: str, cell: str) -> ExecResult | None:
        """Run the cell as a program of its own, and replay what it compiles.

        `%%hlotool [options]` takes the options of `hlotool exec` (`%%hlotool --help`). The program runs in
        this kernel's interpreter and folder, in another process: of other cells it knows what `--cells` and
        `--names` say, and it gives them nothing.
        """
        before, words = _split(_words(line))
        shown = _parsed(words)
        if shown is None:
            print(_HELP)
            return None
        script = self._program(cell, before)
        own = [sys.executable, "-m", "hlotool", "exec", "--json", *words]
        with tempfile.TemporaryFile() as out:
            status = _run([*own, "--", sys.executable, str(script)], _environment(os.environ), out)
            out.seek(0)
            content = out.read()
        if not content:
            raise _failure(status)
        return _result(content, **shown)

    def _program(self, cell: str, before: argparse.Namespace) -> Path:
        """The script that runs the cell, after others and with values where it is to have these."""
        number = self._shell.displayhook.prompt_count
        own = self._written(number, cell)
        if not before.cells and not before.names:
            return own
        texts = self._shell.user_ns.get("In", [])
        for other in before.cells:
            if not 0 < other < min(len(texts), number):
                raise UsageError(f"--cells: there is no cell [{other}] before this one")
        cells = [self._written(other, texts[other]) for other in before.cells]
        values = self._folder / f"values_{number}"
        values.write_bytes(_pickled(before.names, self._shell.user_ns))
        script = self._folder / f"cells_to_{number}.py"
        script.write_text(
            _DRIVER.format(str(values), [str(path) for path in (*cells, own)]), encoding="utf-8"
        )
        return script

    def _written(self, number: int, text: str) -> Path:
        path = self._folder / f"cell_{number}.py"
        path.write_text(text, encoding="utf-8")
        return path


#: Runs cells one after the other in one module; each keeps its own file and lines.
_DRIVER = """\
import pickle
with open({!r}, "rb") as file:
    globals().update(pickle.load(file))
for path in {!r}:
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec"))
"""

_HELP = """
of the cell:
  --cells 1,3-5         cells that run before it, by number
  --names NAME,...      values of the notebook that it gets, by name"""


def _split(words: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """What is said of the cell, and the options of `hlotool exec`."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--cells", type=_numbers, default=[])
    parser.add_argument("--names", type=lambda text: [name for name in text.split(",") if name], default=[])
    try:
        return parser.parse_known_args(words)
    except argparse.ArgumentError as error:
        raise UsageError(f"%%{MAGIC}: {error}") from error


def _numbers(text: str) -> list[int]:
    """`1,3-5`, in this order."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        try:
            found += range(int(first), int(last or first) + 1)
        except ValueError as error:
            raise argparse.ArgumentTypeError(
                f"{part!r} is no number of a cell, and no range of them"
            ) from error
    return found


def _pickled(names: Sequence[str], known: Mapping[str, Any]) -> bytes:
    """Values by name, for the process of the cell."""
    for name in names:
        if name not in known:
            raise UsageError(f"--names {name}: the notebook has no such value{did_you_mean(name, known)}")
        try:
            pickle.dumps(known[name])
        except Exception as error:  # whatever a class of the user's raises
            raise UsageError(f"--names {name}: it cannot be handed to another process: {error}") from error
    return pickle.dumps({name: known[name] for name in names})


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(f"%%{MAGIC} {line}: {error}") from error


def _parsed(words: Sequence[str]) -> dict[str, bool] | None:
    """How much the report is to show; None where the options ask for help.

    Raises:
        UsageError: they are wrong, which the parser has explained on stderr.
    """
    from hlotool.interface.cli.configured import with_configuration
    from hlotool.interface.cli.main import build_parser

    line = ["exec", *words, "--", "cell"]
    try:
        options = build_parser().parse_args(line)
    except SystemExit as end:
        if end.code:
            raise UsageError(f"%%{MAGIC} {shlex.join(words)}: what is wrong stands above") from None
        return None
    if options.program != line[-2:]:
        raise UsageError(f"%%{MAGIC} takes options alone, for the cell is the program")
    options = with_configuration(options, line, build_parser)
    return {"quiet": options.quiet, "verbose": options.verbose}


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    """The program finds modules beside the notebook, as the kernel does, and its output comes at once."""
    paths = [os.getcwd(), *filter(None, [given.get("PYTHONPATH")])]
    return {**given, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}


def _run(command: Sequence[str], environment: Mapping[str, str], stdout: IO[bytes]) -> int:
    """Run a command whose stderr appears below the cell; returns its exit status.

    Jupyter interrupts the whole group of the kernel's processes. The command passes an interrupt on to the
    program, which would get two; so it has a group of its own, and gets what comes to the kernel.
    """
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            while not _is_shown(process):
                process.send_signal(signal.SIGINT)
        except BaseException:
            process.terminate()
            raise
    return process.returncode


def _is_shown(process: subprocess.Popen[bytes]) -> bool:
    """Show what a process writes to its stderr until the end of that; False where the user interrupts it."""
    assert isinstance(process.stderr, io.BufferedReader)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    try:
        while True:
            # An interrupt that another thread of this process takes ends no read of this one: so it looks up.
            if not select.select([process.stderr], [], [], LOOKS_UP)[0]:
                continue
            if not (chunk := process.stderr.read1()):
                break
            sys.stdout.write(decoder.decode(chunk))
            sys.stdout.flush()
    except KeyboardInterrupt:
        return False
    return True


def _failure(status: int) -> BaseException:
    """Why a command that has said on stderr what is wrong gave no record."""
    if status == ExitCode.INTERRUPTED:
        return KeyboardInterrupt()
    told = f"ended with {status}; what it said stands above"
    if status == ExitCode.USAGE:
        return UsageError(f"hlotool exec: {told}")
    return BackendFailed("hlotool exec", told)


def _result(content: bytes, quiet: bool, verbose: bool) -> ExecResult:
    """The result that a record in JSON is; its notes go to stderr, as those of the command do."""
    import msgspec

    from hlotool.interface.cli.process import tell
    from hlotool.interface.report.command_records import ExecRecord

    result = ExecResult(msgspec.json.decode(content, type=ExecRecord), quiet, verbose)
    for note in result.notes:
        tell(f"hlotool: note: {note}")
    return result
