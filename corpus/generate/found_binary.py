"""Forms that are no plain text: protos, profiles, StableHLO as text, bytecode and exports of JAX."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from hlotool.parser.proto.module import write_module_proto
from hlotool.parser.proto.schema import fields
from hlotool.parser.reader import parse_module
from hlotool.sources.classify import is_profile, programs_in

#: Names that modules have in the wild, or could have.
_NAMES = {
    "blanks": "a model, with (blanks) & more",
    "unicode": "modèle_été",
    "cluster": "cluster_0__XlaCompiledKernel_true__XlaHasReferenceVars_false_.6",
    "marks": 'ns::f<int>@a/b\t"c"',
}
_PROGRAM = """
import sys
import jax, jax.numpy as jnp
from jax import export
jax.config.update("jax_include_full_tracebacks_in_locations", False)

def step(x, w):
    return jnp.tanh(x @ w).sum(axis=0), jnp.arange(12.0).reshape(3, 4) * x[:, :1]

x, w = jnp.linspace(-1, 1, 12).reshape(3, 4), jnp.linspace(0, 1, 20).reshape(4, 5)
stablehlo = jax.jit(step).lower(x, w).as_text()
exported = export.export(jax.jit(step))(x, w)
open("step.mlir", "w").write(stablehlo)
open("step.mlirbc", "wb").write(exported.mlir_module_serialized)
open("step.jax_export", "wb").write(exported.serialize())
compiled = jax.jit(step).lower(x, w).compile()
with jax.profiler.trace("profile"):
    compiled(x, w)[0].block_until_ready()
"""


def write(folder: Path, sources: dict[str, Path]) -> list[str]:
    """Write the files; returns the tables of `EXPECTED.toml`."""
    expected = [
        table
        for number, name in enumerate(_NAMES)
        for table in _proto(folder, sources, name, number % 2 == 0)
    ]
    with tempfile.TemporaryDirectory() as scratch:
        variables = {"JAX_PLATFORMS": "cpu", "JAX_HLO_SOURCE_FILE_CANONICALIZATION_REGEX": "^.*/"}
        subprocess.run([sys.executable, "-c", _PROGRAM], cwd=scratch, env=os.environ | variables, check=True)
        made = Path(scratch)
        stablehlo = (made / "step.mlir").read_text(encoding="utf-8")
        files = {
            "stablehlo.mlir": stablehlo.encode(),
            "stablehlo_fence.md": f"Lowered:\n\n```mlir\n{stablehlo}```\n".encode(),
            "stablehlo_string.py": f'MODULE = """{stablehlo}"""\n'.encode(),
            "stablehlo_console.txt": f">>> print(lowered.as_text())\n{stablehlo}>>> \n".encode(),
            "stablehlo_prefixed.log": _prefixed(stablehlo).encode(),
            "bytecode.mlirbc": (made / "step.mlirbc").read_bytes(),
            "exported.jax_export": (made / "step.jax_export").read_bytes(),
            "profile.xplane.pb": _programs_of(next(made.rglob("*.xplane.pb")).read_bytes()),
        }
    for name, content in files.items():
        (folder / name).write_bytes(content)
        form = name.partition(".")[0]
        count = len(programs_in(content)) if is_profile(content) else 1
        needs = "" if is_profile(content) else 'needs = "jaxlib"\n'
        expected.append(f'[[file]]\nname = "{name}"\nform = "{form}"\n{needs}programs = {count}\n')
    return expected


def _proto(folder: Path, sources: dict[str, Path], name: str, bare: bool) -> list[str]:
    """A program under another name, as HloModuleProto and as HloProto around it."""
    module = parse_module(sources["loop"].read_text(encoding="utf-8"))
    module.name = _NAMES[name]
    message = write_module_proto(module)
    wrapped = next(message[slice(*span)] for number, span in fields(message, 0, len(message)) if number == 1)
    tables = []
    for form, content in (("hlo_proto", message), ("module_proto", wrapped)):
        path = folder / f"{form}.{name}.{'pb' if bare else 'hlo.pb'}"
        path.write_bytes(content)
        tables.append(f'[[file]]\nname = "{path.name}"\nform = "{form}"\nprograms = 1\n')
    return tables


def _prefixed(text: str) -> str:
    """A log that writes a time before each line, and other messages around them."""
    lines = ["start {", *text.splitlines(), "end }"]
    return "".join(f"2026-11-22T10:{n:02d}:00.{n:07d}Z {line}\n" for n, line in enumerate(lines))


def _programs_of(profile: bytes) -> bytes:
    """The planes of a profile that hold programs; the others tell of the machine."""
    assert is_profile(profile)
    kept = bytearray()
    at = 0
    for _, (start, end) in fields(profile, 0, len(profile)):
        if b"/host:metadata" in profile[start : start + 64]:
            kept += profile[at:end]
        at = end
    return bytes(kept)


if __name__ == "__main__":
    raise SystemExit("run found.py")
