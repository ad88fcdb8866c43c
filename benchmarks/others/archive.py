"""An archive as bug reports have them: each program in a folder, with a README that accuses some pass.

Programs are drawn (`hlotool.lab.fuzz.programs`) or made by JAX (StableHLO). Of each it is known by other
means than the judge's which planted pass changes it, and that its result is another one by far.
"""

from __future__ import annotations

import random
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.others.passes import DEADLY, LEGAL, WRONG, fires
from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.registry import get_backend
from hlotool.errors import HlotoolError
from hlotool.inputs.generate import generate_inputs
from hlotool.inputs.given import arrays_in
from hlotool.lab.fuzz.oracle import _open_question as open_question
from hlotool.lab.fuzz.programs import Source
from hlotool.parser.reader import parse_module

#: A wrong result is another one by this share of its largest element, or by an integer.
_APART = 1e-3

_README = """# IR {name}

Disabling the HLO pass `{accused}` (`--xla_disable_hlo_passes={accused}`) removes the divergence.

```bash
export XLA_FLAGS='--xla_cpu_use_thunk_runtime=true'
run_hlo_module --platform=CPU --reference_platform=Interpreter --input_format=stablehlo {name}.ir
```
"""


@dataclass(frozen=True)
class Made:
    """A program.

    Attributes:
        name: of its file, without a suffix.
        text: HLO or StableHLO.
        planted: the pass that is wrong about it; `legal` where it is only rounded otherwise, `same` where
            nothing happens to it.
    """

    name: str
    text: str
    planted: str


def programs(seed: int, count: int, faulty: int) -> Iterator[Made]:
    """Draw `count` programs, of which `faulty` show one planted fault each, all alike often."""
    rng, source = random.Random(seed), Source(seed)
    kinds = (*WRONG, *DEADLY)
    left = Counter({kind: -(-faulty // len(kinds)) for kind in kinds})
    left["legal"] = count // 10
    left["same"] = count - left.total()
    for index in range(100_000):
        if not left.total():
            return
        if index % 2:
            text, hlo = _of_jax(rng)
        else:
            text = hlo = source.draw(index).module.to_text()
        planted = _truth(hlo)
        if planted is None or not left[planted]:
            continue
        left[planted] -= 1
        yield Made(f"{rng.getrandbits(32):08x}", text, planted)


def _truth(text: str) -> str | None:
    """What is wrong with a program; None where that is not beyond doubt."""
    try:
        module = parse_module(text)
        firing = [name for name in (*WRONG, *DEADLY) if fires(module, name)]
        if len(firing) > 1 or open_question(module):
            return None
        if firing and firing[0] in DEADLY:
            return firing[0]
        arguments = list(generate_inputs(module, 0).values)
        with np.errstate(all="ignore"):
            expected = NumpyBackend().compile(module).run(arguments)
            passes = f"simplify-tuples+{'+'.join([LEGAL, *firing])}+dce"
            actual = get_backend(f"opt:passes={passes}").compile(module).run(arguments)
        apart = max((apart(a, b) for a, b in zip(arrays_in((expected,)), arrays_in((actual,)))), default=0.0)
    except (HlotoolError, RecursionError):
        return None
    if firing:
        return firing[0] if apart > _APART else None
    return "same" if apart == 0 else "legal" if apart < 1e-5 else None


def apart(one: np.ndarray, other: np.ndarray) -> float:
    """How far two arrays are apart, by the largest finite element; integers that differ are by 1."""
    if one.tobytes() == other.tobytes():
        return 0.0
    if one.dtype.kind not in "fc":
        exact = one.dtype.kind in "iub"
        if exact:
            return 1.0
        one, other = one.astype(np.float64), other.astype(np.float64)
    finite = np.isfinite(one) & np.isfinite(other)
    if not np.array_equal(np.isfinite(one), np.isfinite(other)):
        return 1.0
    size = np.abs(one[finite]).max(initial=0.0)
    off = np.abs(one[finite].astype(np.complex128) - other[finite]).max(initial=0.0)
    return float(off / size) if size > 0 else float(off > 0)


def _of_jax(rng: random.Random) -> tuple[str, str]:
    """StableHLO and HLO of a small function of two arrays: a few steps, one after the other."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    n, m = rng.randint(2, 9), rng.randint(2, 9)
    steps: list[Callable[[Any, Any], Any]] = [
        lambda x, y: jnp.tanh(x + y),
        lambda x, y: x + y + y / 7,
        lambda x, y: x + y + x @ (y.T @ y),
        lambda x, y: x + jnp.sin(y) + jnp.cos(x),
        lambda x, y: x - 1.5,
        lambda x, y: 2.5 - x,
        lambda x, y: x * 3.0,
        lambda x, y: jnp.where(x > y, x, y),
        lambda x, y: jnp.where(x > y, x, 0.0),
        lambda x, y: jnp.where(x > 0.5, x, y),
        lambda x, y: lax.population_count((x * y).astype(jnp.int32)).astype(jnp.float32) + y,
        lambda x, y: ((x * y * x).astype(jnp.int32) >> (y * y).astype(jnp.int32)).astype(jnp.float32),
        lambda x, y: jnp.negative(jnp.negative(x)) + y,
        lambda x, y: x[:, ::-1] + y,
        lambda x, y: x[::-1, ::-1],
        lambda x, y: jnp.pad(x, ((1, 0), (0, 2)))[:n, :m] + y,
        lambda x, y: jnp.repeat(x[:, ::2], 2, axis=1)[:, :m] + y,
        lambda x, y: jnp.sort(x, axis=1),
        lambda x, y: jnp.concatenate([x, y])[1 : n + 1],
        lambda x, y: x @ y.T @ x,
        lambda x, y: jax.nn.softmax(x, axis=-1),
        lambda x, y: x / (1.0 + jnp.exp(y)),
        lambda x, y: jnp.cumsum(x, axis=0),
    ]
    chosen = rng.choices(steps, k=rng.randint(1, 4))

    def function(x: Any, y: Any) -> Any:
        for step in chosen:
            x = step(x, y)
        return x

    shape = jax.ShapeDtypeStruct((n, m), np.float32)
    lowered = jax.jit(function).lower(shape, shape)
    return str(lowered.as_text()), str(lowered.as_text("hlo"))


def write(made: list[Made], folder: Path, seed: int) -> list[Path]:
    """Write programs as people do: a zip of folders with READMEs, a tar, a folder of protos and texts."""
    rng = random.Random(seed)
    parts: list[list[Made]] = [[], [], []]
    for one in made:
        parts[rng.choice((0, 0, 1, 2))].append(one)
    with zipfile.ZipFile(folder / "ir.zip", "w") as archive:
        for one in parts[0]:
            group = rng.choice(("CPU_vs_Interpreter/max_rel_error_ge_1", "GPU_vs_Interpreter/nan_inf"))
            suffix = rng.choice((".ir", ".ir.txt"))
            archive.writestr(f"ir/{group}/{one.name}/{one.name}{suffix}", one.text)
            readme = _README.format(name=one.name, accused=rng.choice(("algsimp", "cse", "call-inliner")))
            archive.writestr(f"ir/{group}/{one.name}/README.md", readme)
    with tarfile.open(folder / "reports.tar.gz", "w:gz") as tar:
        for one in parts[1]:
            path = folder / f"{one.name}{'.mlir' if 'stablehlo' in one.text else '.hlo'}"
            path.write_text(one.text)
            tar.add(path, f"reports/{path.name}")
            path.unlink()
    loose = folder / "loose"
    loose.mkdir()
    for one in parts[2]:
        if "stablehlo" in one.text:
            (loose / f"{one.name}.mlir").write_text(one.text)
        elif rng.random() < 0.5 and (proto := _proto(one.text)):
            (loose / f"{one.name}.hlo.pb").write_bytes(proto)
        else:
            (loose / f"{one.name}.txt").write_text(f"# from a bug report\n{one.text}")
    (loose / "README.md").write_text("Programs that crash or diverge on one of our machines.\n")
    return [folder / "ir.zip", folder / "reports.tar.gz", loose]


def _proto(text: str) -> bytes:
    """The program as XLA's own proto; empty where XLA does not read it."""
    from hlotool.backends.xla import jaxlib_api

    try:
        return jaxlib_api.to_proto(text)
    except Exception:
        return b""
