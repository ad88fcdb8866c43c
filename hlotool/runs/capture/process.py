"""What happens within the program that `hlotool exec` runs: each process of it dumps to a folder of its own.

Runs in whatever Python the program uses, which need not have hlotool: nothing is imported but the standard
library.

A flag that XLA does not know ends the process, and what it knows depends on the package that brings it. So
flags are set when that package is imported, and are those that the same interpreter was seen to accept in a
process of its own. Until then, and for XLA in another package, only flags that every XLA knows are set.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from importlib import metadata
from typing import Any

#: Holds the configuration as JSON: `folder`, `cache`, `basic`, `wanted`, `tf`, and in `record` what is looked
#: for in executions (`executions.Wishes`), None where XLA records them.
VARIABLE = "HLOTOOL_EXEC"

#: What makes the XLA of a package read its flags, and little else.
PROBES = {
    "jaxlib": "from jaxlib import xla_client; xla_client.CompileOptions()",
    "tensorflow": "import tensorflow as tf; tf.function(lambda x: x + 1, jit_compile=True)(tf.constant(1.0))",
    "torch_xla": "import torch, torch_xla; (torch.ones(1, device=torch_xla.device()) + 1).cpu()",
}
#: What JAX looks for when it is about to start XLA: the last moment for a program that set XLA_FLAGS itself.
_LAST_MOMENT = "jax_plugins"
#: The flag with which XLA writes executions.
_SNAPSHOTS = "--xla_dump_hlo_snapshots"
#: Seconds of a processor that an interpreter may take to answer: by the clock a busy machine takes any time.
_PROBE_LIMIT = 180
#: Before the probe: the limit, as far as the interpreter has no lower one.
_LIMITED = (
    "import resource as r; h = r.getrlimit(r.RLIMIT_CPU)[1];"
    f" r.setrlimit(r.RLIMIT_CPU, ({_PROBE_LIMIT} if h < 0 else min({_PROBE_LIMIT}, h), h)); "
)
#: Seconds after which an interpreter that does nothing says nothing.
_HUNG = 1800.0
#: Not in a program under watch: they move the files that are waited for, or replace them by others.
_IN_THE_WAY = (
    "--xla_dump_to",
    "--xla_dump_hlo_to_subfolder",
    "--xla_dump_include_timestamp",
    "--xla_dump_hlo_unoptimized_snapshots",
)


def merged(given: str, flags: Sequence[str], without: Sequence[str] = ()) -> str:
    """The value of XLA_FLAGS with `flags` added; they win over the same ones in `given`.

    Args:
        given: flags, or the path of a file of flags, as XLA takes it.
        flags: to be added.
        without: flags that are left out whatever their value, as are those that are in the way.
    """
    if given.strip() and not given.lstrip().startswith("-"):
        given = _content(given.strip())
    ours = {_name(flag) for flag in (*flags, *without, *_IN_THE_WAY)}
    return " ".join([*(flag for flag in given.split() if _name(flag) not in ours), *flags])


def _name(flag: str) -> str:
    return flag.partition("=")[0]


def _content(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def install() -> None:
    """Watch this process, if it was started below `hlotool exec`."""
    if VARIABLE in os.environ:
        watch = Watch(json.loads(os.environ[VARIABLE]))
        watch.redirect()
        sys.meta_path.insert(0, watch)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=watch.begin)


class Watch:
    """Sets the flags of this process; on `sys.meta_path` to see what it imports, and never to import it.

    Args:
        config: of `hlotool exec`.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._known: list[str] | None = None
        self._packages: dict[str, str] = {}
        self._recorder: Any = None
        self._sees_executions = False

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Look at an import that is about to happen."""
        if name in PROBES and name not in self._packages:
            self._meet(name)
            self.redirect()
        elif name == _LAST_MOMENT:
            self.redirect()
        if name.startswith("jax") and not self._sees_executions:
            # Those parts are not ready before JAX is nearly imported, and it imports more after them.
            self._sees_executions = self._see_executions()

    def _see_executions(self) -> bool:
        """Look at executions, or let XLA do so; whether this is done."""
        if self._config["record"] is None:
            return _SNAPSHOTS in (self._known or ()) and bool(_load("donation").keep_arguments())
        if "jaxlib" not in self._packages:
            return False
        executions = _load("executions")
        if self._recorder is None:
            wishes = executions.Wishes(**self._config["record"])
            parts = _load("keeping"), _load("snapshots")
            self._recorder = executions.Recorder(self._folder(), wishes, *parts)
        return bool(_load("donation").redirect(self._recorder.call, executions.OWN))

    def _folder(self) -> str:
        return os.path.join(self._config["folder"], f"process_{os.getpid()}")

    def begin(self) -> None:
        """Watch a process that was forked."""
        self.redirect()
        if self._recorder is not None:
            self._recorder.begin(self._folder())

    def redirect(self) -> None:
        """Let XLA write to the folder of this process, from now on."""
        folder = self._folder()
        basic = [flag.replace(self._config["folder"], folder) for flag in self._config["basic"]]
        flags = basic + (self._known or [])
        # A process that started this one may have flags of another XLA.
        os.environ["XLA_FLAGS"] = merged(os.environ.get("XLA_FLAGS", ""), flags, self._config["wanted"])
        if "tensorflow" in self._packages:
            os.environ["TF_XLA_FLAGS"] = merged(os.environ.get("TF_XLA_FLAGS", ""), self._config["tf"])
            os.environ["TF_DUMP_GRAPH_PREFIX"] = folder
        if self._packages:
            self._write_record(folder, flags)

    def _meet(self, package: str) -> None:
        """Find out what the XLA of `package` knows; several in one process must all know a flag."""
        self._packages[package] = _version(package)
        known = self._ask(package)
        self._known = known if self._known is None else [flag for flag in self._known if flag in known]

    def _ask(self, package: str) -> list[str]:
        """The flags that `package` knows; each is remembered, so that a version is asked about it once."""
        wanted, tf, version = self._config["wanted"], self._config["tf"], self._packages[package]
        how = [sys.executable, package, version, tf, _own_source()]
        key = hashlib.sha256(json.dumps(how).encode()).hexdigest()[:32]
        path = os.path.join(self._config["cache"], key + ".json")
        known = _remembered(path)
        if new := [flag for flag in wanted if _name(flag) not in known]:
            said = f"hlotool: asking {package} {version} which flags it takes, once for this version"
            print(f"{said} (starts it 1 to {len(new) + 2} times)", file=sys.stderr, flush=True)
            found = accepted(package, new, tf)
            if found is not None:
                known.update({_name(flag): flag in found for flag in new})
                _write(path, known)
        return [flag for flag in wanted if known.get(_name(flag))]

    def _write_record(self, folder: str, flags: list[str]) -> None:
        record = {
            "pid": os.getpid(),
            "command": list(getattr(sys, "orig_argv", [sys.executable])),
            "packages": self._packages,
            "flags": flags,
            "unknown": [flag for flag in self._config["wanted"] if flag not in flags],
        }
        _write(folder + ".json", record)


def accepted(package: str, wanted: Sequence[str], tf: Sequence[str]) -> list[str] | None:
    """Flags of `wanted` that the XLA of `package` accepts in this interpreter; None if it does not say.

    Where it does not take them all, each is tried alone. Messages about unknown flags are not enough: early
    jaxlib names those behind an unknown one, too, and some flags are known and fatal (TensorFlow 2.21 dies of
    `--xla_dump_hlo_snapshots` on a CPU).
    """
    with (
        tempfile.TemporaryDirectory(prefix="hlotool-") as folder,
        suppress(OSError, subprocess.TimeoutExpired),
    ):
        basic = [f"--xla_dump_to={folder}"]
        if _is_accepted(package, [*basic, *wanted], tf):
            return list(wanted)
        if not _is_accepted(package, basic, tf):
            return None
        return [flag for flag in wanted if _is_accepted(package, [*basic, flag], tf)]
    return None


def _is_accepted(package: str, flags: Sequence[str], tf: Sequence[str]) -> bool:
    """Whether a process that has these flags, and has `package` read them, lives.

    Raises:
        OSError: it cannot be started.
        subprocess.TimeoutExpired: it does nothing.
    """
    values = {"XLA_FLAGS": " ".join(flags), "TF_XLA_FLAGS": " ".join(tf if package == "tensorflow" else ())}
    # What it would take to start a device is of no interest.
    values.update(JAX_PLATFORMS="cpu", PJRT_DEVICE="CPU", CUDA_VISIBLE_DEVICES="")
    environment = {**os.environ, **values}
    environment.pop(VARIABLE, None)
    done = subprocess.run(
        [sys.executable or "python", "-c", _LIMITED + PROBES[package]],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=_HUNG,
    )
    return done.returncode == 0


def _load(name: str) -> Any:
    """A file beside this one as a module; hlotool need not be installed here."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
    spec = importlib.util.spec_from_file_location("_hlotool_capture_" + name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _remembered(path: str) -> dict[str, bool]:
    """Which flags a package knows, as far as it was asked."""
    try:
        with open(path, encoding="utf-8") as file:
            return dict(json.load(file))
    except (OSError, ValueError, TypeError):
        return {}


def _own_source() -> str:
    """This file, which decides how flags are tried."""
    with open(__file__, encoding="utf-8") as file:
        return file.read()


def _version(package: str) -> str:
    for name in (package, package + "-cpu"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return ""


def _write(path: str, value: object) -> None:
    """Write JSON, whole or not at all; what cannot be kept is done without."""
    temporary = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(value, file)
        os.replace(temporary, path)
    except OSError:
        pass
