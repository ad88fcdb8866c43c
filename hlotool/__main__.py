"""`python -m hlotool` and the `hlotool` console script."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from hlotool._python import refuse_before
from hlotool.interface.cli.process import (
    INTERRUPTED,
    collect_rarely,
    end,
    lack_of_address_space,
    open_closed,
    watch,
)

#: `ExitCode.BACKEND_FAILED`, which is not imported yet.
_FAILED = 4


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line, by default that of the process; returns the exit code."""
    refuse_before((3, 11))
    if argv is None:
        collect_rarely()
    watch()
    open_closed()
    try:
        if lack := lack_of_address_space():
            sys.stderr.write(f"hlotool: error: {lack}\n")
            return _FAILED
        # The imports of the command line are a tenth of a second in which Ctrl-C may come, too.
        from hlotool.interface.cli.main import main as run

        return run(argv)
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        end()


if __name__ == "__main__":
    sys.exit(main())
