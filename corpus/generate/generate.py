"""Make the corpus: run each program in its own process with XLA's dump flags, keep what belongs in git.

Usage:
    python corpus/generate/generate.py --framework jax|tf|tpu|gpu|gpu_ptx|miscompiles [--only NAME]...
    python corpus/generate/generate.py --planted
    python corpus/generate/generate.py --manifest

Run it with a Python that has the framework; for `tpu`, `gpu`, `gpu_ptx` and what libtpu compiles wrongly
hlotool and the compiler, with which `hlotool compile` makes the dump. `--only` makes the named directories;
without it, all directories of the framework are made, and those no longer listed are deleted. `--planted`
makes the dumps with known faults out of the JAX ones. `--manifest` only brings the tables of the hand-written
directories up to date.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import manifest
import plant
from collect import LOG, ROOT, collect, write
from directories import Directory, directories
from programs import MODULES, Fault, Program, load

HAND_WRITTEN = {
    "modules": "one opcode or corner each",
    "malformed": "texts that a reader must refuse",
    "demo": "a program and its dump with a planted fault, for `hlotool demo`; written by demo.py",
    "found": "HLO in the forms in which people have it; written by found.py",
    "undumped": "small programs that a compiler dies of, or gets wrong where no dump shows it",
    "verdicts": "small programs, each with a verdict that no other directory gives",
}
PACKAGES = {
    "jax": ("jax", "jaxlib", "numpy"),
    "tf": ("tensorflow", "keras", "numpy"),
    "miscompiles": ("jax", "jaxlib", "numpy"),
}
TIMEOUT_SECONDS = 300


class RunError(Exception):
    """A program failed, or its dump has nothing that belongs in the corpus."""


def environment(directory: Directory, program: Program) -> dict[str, str]:
    """The variables of the child process."""
    flags = list(directory.flags)
    if program.devices > 1:
        flags.append(f"--xla_force_host_platform_device_count={program.devices}")
    return {
        **os.environ,
        "XLA_FLAGS": " ".join(flags),
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_X64": str(int(program.x64)),
        "JAX_HLO_SOURCE_FILE_CANONICALIZATION_REGEX": "^.*/(?=site-packages/|corpus/generate/)",
        "CUDA_VISIBLE_DEVICES": "",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "PYTHONDONTWRITEBYTECODE": "1",
        **dict(program.environment),
    }


def run(directory: Directory, program: Program, framework: str) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Make a dump in a scratch directory; the files to keep, and what the manifest says of how it was made.

    Raises:
        RunError: the program failed or left nothing behind.
    """
    with tempfile.TemporaryDirectory() as scratch:
        if directory.target:
            facts = _compiled(directory, program, scratch)
        else:
            facts = _executed(directory, program, framework, scratch)
        files = collect(directory, Path(scratch))
    if not files:
        raise RunError(f"{directory.name}: the run left no file that matches {directory.keep}")
    return files, facts


def _executed(directory: Directory, program: Program, framework: str, scratch: str) -> dict[str, Any]:
    """By the framework, on the CPU."""
    script = Path(__file__).with_name("run_program.py")
    command = [sys.executable, str(script), framework, program.name]
    if directory.values:
        command.append(scratch)
    child = _child(directory, program, command, scratch)
    if child.returncode != 0:
        raise RunError(f"{directory.name}: exit code {child.returncode}\n{child.stderr[-4000:]}")
    versions = {package: importlib.import_module(package).__version__ for package in PACKAGES[framework]}
    return {"versions": versions, "xla_flags": environment(directory, program)["XLA_FLAGS"]}


def _compiled(directory: Directory, program: Program, scratch: str) -> dict[str, Any]:
    """By the compiler of a device that need not be here."""
    given = f"{Path(__file__).with_name(program.body.__module__)}.py:{program.name}"
    if program.text:
        Path(scratch, given := f"{program.name}.hlo").write_text(program.body(), encoding="utf-8")
    command = [sys.executable, "-m", "hlotool", "compile", given, "--json"]
    command += ["--for", directory.target, "--out", "dump", *(["--passes"] if directory.passes else [])]
    child = _child(directory, program, command, scratch)
    record = json.loads(Path(scratch, LOG).read_text(encoding="utf-8"))
    [made] = record["programs"]
    if made["outcome"] != "compiles":
        raise RunError(f"{directory.name}: {made['outcome']}: {made['error']}\n{child.stderr[-4000:]}")
    compiler, version = made["compiler"].split()[:2]
    versions = {package: importlib.import_module(package).__version__ for package in ("jax", "jaxlib")}
    return {
        "versions": {**versions, compiler: version},
        "target": directory.target,
        "verdict": made["verdict"],
    }


def _child(
    directory: Directory, program: Program, command: list[str], scratch: str
) -> subprocess.CompletedProcess[str]:
    with open(Path(scratch, LOG), "wb") as log:
        return subprocess.run(
            command,
            cwd=scratch,
            env=environment(directory, program),
            stdout=log,
            stderr=subprocess.PIPE,
            timeout=TIMEOUT_SECONDS,
            encoding="utf-8",
        )


def entry(
    directory: Directory, program: Program, framework: str, target: Path, facts: dict[str, Any]
) -> dict[str, Any]:
    """The manifest table of a generated directory."""
    variables = dict(program.environment) | ({"JAX_ENABLE_X64": "1"} if program.x64 else {})
    table = {
        "path": f"{framework}/{directory.name}",
        "program": program.name,
        "about": program.about,
        "note": directory.about,
        "features": list(program.features),
        **facts,
        "environment": variables,
        **fault_table(program.fault),
        **manifest.digest(target),
    }
    return {key: value for key, value in table.items() if value not in ("", {})}


def fault_table(fault: Fault | None) -> dict[str, Any]:
    """What a search has to find in a dump of a wrong compilation."""
    if fault is None:
        return {}
    found = {"level": fault.level, "pass": fault.pass_name, "opcodes": list(fault.opcodes)}
    known = {"wrong": fault.wrong, "report": fault.report, "right_on": fault.right_on}
    return {"fault": {key: value for key, value in {**found, **known}.items() if value}}


def make(framework: str, only: list[str], out: Path, entries: dict[str, dict[str, Any]]) -> list[str]:
    """Make the directories of a framework, update their manifest tables in `entries`, return what failed."""
    known = load(framework)
    listed = directories(framework, known)
    unknown = set(only) - {directory.name for directory in listed}
    if unknown:
        raise SystemExit(f"no such directory: {', '.join(sorted(unknown))}")
    failures = []
    for directory in listed:
        if only and directory.name not in only:
            continue
        program, target = known[directory.program], out / framework / directory.name
        try:
            files, facts = run(directory, program, framework)
            write(files, target)
        except (RunError, subprocess.TimeoutExpired) as error:
            failures.append(str(error))
            continue
        table = entry(directory, program, framework, target, facts)
        entries[table["path"]] = table
        print(f"{table['path']}: {table['files']} files, {table['bytes']} bytes", flush=True)
    if not only:
        _delete_unlisted(framework, {directory.name for directory in listed}, out, entries)
    return failures


def _delete_unlisted(framework: str, names: set[str], out: Path, entries: dict[str, dict[str, Any]]) -> None:
    for path in sorted((out / framework).iterdir()):
        if path.name not in names:
            shutil.rmtree(path)
            entries.pop(f"{framework}/{path.name}", None)


def main() -> None:
    """Parse the command line and do what it says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    work = parser.add_mutually_exclusive_group(required=True)
    work.add_argument("--framework", choices=tuple(MODULES))
    work.add_argument("--planted", action="store_true", help="make the dumps with planted faults")
    work.add_argument("--manifest", action="store_true", help="only count the hand-written directories again")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="a directory to make; repeatable"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "corpus", metavar="DIR")
    arguments = parser.parse_args()

    path = arguments.out / "MANIFEST.toml"
    entries = manifest.read(path)
    arguments.out.mkdir(parents=True, exist_ok=True)
    failures = []
    if arguments.framework:
        failures = make(arguments.framework, arguments.only, arguments.out, entries)
    if arguments.planted:
        entries |= {table["path"]: table for table in plant.make(arguments.out)}
    for name, about in HAND_WRITTEN.items():
        if (arguments.out / name).is_dir():
            entries[name] = {"path": name, "about": about, **manifest.digest(arguments.out / name)}
    manifest.write(path, entries)
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
