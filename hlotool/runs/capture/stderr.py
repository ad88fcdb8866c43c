"""What a program writes to stderr: it goes where it went before, and its end is kept.

A process that dies in the compiler says why in its last words, and nowhere else.
"""

from __future__ import annotations

import os
import pty
import shutil
import sys
import termios
import threading
import tty
from contextlib import suppress

#: Bytes of the end that are kept: an alarm of XLA may come with the text of a program.
_KEPT = 1 << 18
#: Seconds that are waited for the rest when the program has ended: a process that it left behind may go on.
_REST = 1.0


class Stderr:
    """A descriptor for the program's stderr, a terminal where this process's own is one.

    Attributes:
        descriptor: for the program.
    """

    def __init__(self) -> None:
        is_terminal = os.isatty(2)
        self._source, self.descriptor = pty.openpty() if is_terminal else os.pipe()
        if is_terminal:
            tty.setraw(self.descriptor)
            columns, rows = shutil.get_terminal_size()
            with suppress(OSError):
                termios.tcsetwinsize(self.descriptor, (rows, columns))
        self._end = b""
        self._copier = threading.Thread(target=self._copy, name="stderr of the program", daemon=True)

    def start(self) -> None:
        """The program has the descriptor: this process lets go of it, and copies."""
        os.close(self.descriptor)
        self._copier.start()

    def text(self) -> str:
        """The end of what was written, once the program has ended."""
        if self._copier.is_alive():
            self._copier.join(_REST)
        return self._end.decode(errors="backslashreplace")

    def _copy(self) -> None:
        sys.stderr.flush()
        # A terminal whose last writer is gone is an error of reading.
        with suppress(OSError):
            while piece := os.read(self._source, 1 << 16):
                self._end = (self._end + piece)[-_KEPT:]
                with suppress(OSError):
                    _write_all(piece)
        os.close(self._source)


def _write_all(piece: bytes) -> None:
    """Write to the stderr that this process has."""
    while piece:
        piece = piece[os.write(2, piece) :]
