"""`python -m hlotool` and the `hlotool` console script."""

from __future__ import annotations

import sys

from hlotool.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
