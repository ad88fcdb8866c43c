"""Forms of HLO in logs: what loggers, launchers, containers and shells put in front of lines."""

from __future__ import annotations

import json
from collections.abc import Callable


def _each(text: str, prefix: Callable[[int], str]) -> list[str]:
    return [f"{prefix(n)}{line}".rstrip() for n, line in enumerate(text.splitlines())]


def _text(lines: list[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()


def absl(texts: list[str]) -> bytes:
    """XLA's own log, which writes a prefix to every line; messages of others stand between."""

    def prefix(n: int) -> str:
        return f"I0000 00:00:17952{n // 60:02d}{n % 60:02d}.{n:06d}   12345 hlo_pass_pipeline.cc:182] "

    lines = _each(texts[0], prefix)
    lines.insert(3, "I0000 00:00:1795200000.000009   12377 bfc_allocator.cc:99] Garbage collection")
    lines.insert(9, "W1122 10:00:00.000010   12345 cpu_compiler.cc:12] slow { compile")
    return _text(["I0000 00:00:1795200000.000001   12345 service.cc:1] Compiling", *lines])


def absl_first(texts: list[str]) -> bytes:
    """A message of several lines, of which the first has a prefix."""
    head, *tail = texts[0].rstrip().splitlines()
    start = "2026-11-22 10:00:00.123456: I tensorflow/compiler/xla/service/cpu/cpu_compiler.cc:512] "
    after = (
        "2026-11-22 10:00:01.023456: I tensorflow/compiler/jit/xla_compilation_cache.cc:9] Compiled cluster {"
    )
    return _text([f"{start}{head}", *tail, after, "  stats of it }"])


def tensorflow(texts: list[str]) -> bytes:
    """TensorFlow's log with a prefix in every line."""

    def prefix(n: int) -> str:
        return f"2026-11-22 10:{n // 60:02d}:{n % 60:02d}.{n:06d}: I external/xla/xla/service/dump.cc:77] "

    return _text(_each(texts[0], prefix))


def ranks(texts: list[str]) -> bytes:
    """Two processes of torchrun, whose lines alternate."""
    first, second = (_each(text, lambda n, r=r: f"[rank{r}]: ") for r, text in enumerate(texts))
    mixed = [line for pair in zip(first, second, strict=False) for line in pair]
    rest = max(first, second, key=len)[min(len(first), len(second)) :]
    return _text([*mixed, *rest])


def mpi(texts: list[str]) -> bytes:
    """What mpirun puts in front of lines."""
    return _text(["[1,0]<stderr>:starting", *_each(texts[0], lambda n: "[1,0]<stdout>:")])


def slurm(texts: list[str]) -> bytes:
    """What srun puts in front of lines."""
    return _text(["3: starting", *_each(texts[0], lambda n: "3: ")])


def ray(texts: list[str]) -> bytes:
    """What Ray puts in front of lines."""
    return _text(_each(texts[0], lambda n: "(RayTrainWorker pid=4711, ip=10.0.0.7) "))


def compose(texts: list[str]) -> bytes:
    """What containers put in front of lines."""
    return _text(
        ["trainer-1  | Epoch 1", *_each(texts[0], lambda n: "trainer-1  | "), "trainer-1  | loss 0.3"]
    )


def kubernetes(texts: list[str]) -> bytes:
    """What a cluster and CI services put in front of lines."""
    return _text(_each(texts[0], lambda n: f"2026-11-22T10:{n // 60:02d}:{n % 60:02d}.{n:07d}Z "))


def python(texts: list[str]) -> bytes:
    """What Python's logging writes: the first line has a prefix."""
    head, *tail = texts[0].rstrip().splitlines()
    return _text(
        ["DEBUG:jax._src.compiler:Compiling", f"DEBUG:jax._src.compiler:{head}", *tail, "DEBUG:root:done"]
    )


def numbered(texts: list[str]) -> bytes:
    """What `cat -n` prints."""
    return _text([f"{n:6d}\t{line}" for n, line in enumerate(texts[0].splitlines(), start=1)])


def quoted(texts: list[str]) -> bytes:
    """An answer to a message."""
    return _text(["On Sunday she wrote:", *_each(texts[0], lambda n: "> "), "", "Looks fine to me."])


def records(texts: list[str]) -> bytes:
    """A log of JSON records, one for each line."""
    lines = ["start", *texts[0].splitlines(), "end"]
    return _text([json.dumps({"severity": "INFO", "message": line}) for line in lines])


def record(texts: list[str]) -> bytes:
    """A log of JSON records, of which one has all lines."""
    return _text([json.dumps({"level": "info", "msg": text}) for text in ("start", texts[0], "end")])


def windows(texts: list[str]) -> bytes:
    """A log of Windows, with its line ends."""
    return texts[0].replace("\n", "\r\n").encode()


def blocks(texts: list[str]) -> bytes:
    """A dump to standard output under a launcher."""
    name = "module_0003.jit_found.before_optimizations.txt"
    lines = [f"*** Begin {name} ***", *texts[0].splitlines(), f"*** End {name} ***"]
    return _text(["[rank0]: Epoch 1", *(f"[rank0]: {line}".rstrip() for line in lines), "[rank0]: Epoch 2"])


FORMS: dict[str, Callable[[list[str]], bytes]] = {
    "absl.log": absl,
    "absl_first.log": absl_first,
    "tensorflow.log": tensorflow,
    "ranks.log": ranks,
    "mpi.log": mpi,
    "slurm.out": slurm,
    "ray.log": ray,
    "compose.log": compose,
    "kubernetes.log": kubernetes,
    "python.log": python,
    "numbered.txt": numbered,
    "quoted.eml": quoted,
    "records.jsonl": records,
    "record.jsonl": record,
    "windows.log": windows,
    "blocks.log": blocks,
}
