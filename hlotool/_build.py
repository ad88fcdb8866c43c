"""How a wheel is built: with the manual page and what shells complete, made from the parsers.

They go where such files are looked for below the prefix of an installation, which is that of the system or of
a virtual environment. An installation in place (`pip install -e`) has none of them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools.command.build import build


class Build(build):
    """Setuptools' command `build`, and the files that are made from the parsers."""

    def run(self) -> None:
        """Build, and add the files to those that the wheel installs below its prefix."""
        super().run()
        sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
        from hlotool.interface.cli.main import build_parser
        from hlotool.interface.cli.reference import SHELLS, manual_page

        parser = build_parser()
        texts = {
            "share/man/man1/hlotool.1": manual_page(parser),
            "share/bash-completion/completions/hlotool": SHELLS["bash"](parser),
            "share/zsh/site-functions/_hlotool": SHELLS["zsh"](parser),
            "share/fish/vendor_completions.d/hlotool.fish": SHELLS["fish"](parser),
        }
        files = []
        for place, text in texts.items():
            file = Path(self.build_base, place)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            files.append((str(Path(place).parent), [str(file)]))
        self.distribution.data_files = [*(self.distribution.data_files or ()), *files]
