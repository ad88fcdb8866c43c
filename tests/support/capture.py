"""A stand-in for jaxlib in programs below `hlotool exec`: dies of flags as XLA does, writes real dumps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

#: The message is XLA's (parse_flags_from_env.cc), as jaxlib 0.10.2 prints it.
_XLA_CLIENT = """
import os, sys

def CompileOptions():
    flags = os.environ.get("XLA_FLAGS", "").split()
    unknown = [flag for flag in flags if flag.partition("=")[0] not in {known!r}]
    if unknown:
        plural = "s" if len(unknown) > 1 else ""
        sys.exit("F1123 02:53:07.8 31021 parse_flags_from_env.cc:234] Unknown flag%s in XLA_FLAGS: %s"
                 % (plural, " ".join(unknown)))
    if {fatal!r} in flags:
        os.abort()

def compile(*names, source={dumps!r}):
    import shutil
    flags = dict(flag.partition("=")[::2] for flag in os.environ["XLA_FLAGS"].split())
    folder = flags["--xla_dump_to"]
    os.makedirs(folder, exist_ok=True)
    for name in names:
        for file in os.listdir(os.path.join(source, name)):
            path = os.path.join(source, name, file)
            if file.startswith("module_") and os.path.isfile(path):
                shutil.copy(path, folder)
"""

_DUMPS = Path(__file__).resolve().parents[2] / "corpus"


def stub_of_jaxlib(folder: Path, known: Sequence[str] = (), fatal: str = "") -> Path:
    """A folder for PYTHONPATH with a `jaxlib` whose XLA knows some flags, and dies of one.

    Its `xla_client.compile("jax/model_fn", …)` writes dumps of the corpus as if it compiled these programs.

    Args:
        folder: gets the package.
        known: flags without `--xla_`, beside those that tell where to dump.
        fatal: a flag among them, likewise.
    """
    package = folder / "jaxlib"
    package.mkdir(parents=True)
    names = {f"--xla_{name}" for name in ("dump_to", "dump_hlo_as_text", *known)}
    (package / "__init__.py").write_text("")
    (package / "xla_client.py").write_text(
        _XLA_CLIENT.format(known=names, fatal=f"--xla_{fatal}", dumps=str(_DUMPS)), encoding="utf-8"
    )
    return folder
