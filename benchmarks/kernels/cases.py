"""The programs whose generated kernels are measured: those of the GPU suite, and elementwise functions."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.gpu.cases import Case, Group, Input, all_cases

#: Programs of elementwise functions: steps on the arguments p0 and p1, on earlier steps, and on numbers.
_FUNCTIONS = {
    "gelu": (
        "multiply p0 p0", "multiply v0 p0", "multiply v1 0.044715", "add p0 v2", "multiply v3 0.7978845",
        "tanh v4", "add v5 1", "multiply v6 p0", "multiply v7 0.5",
    ),
    "logistic_loss": ("exponential p0", "log-plus-one v0", "multiply p0 p1", "subtract v1 v2"),
    "power": ("abs p0", "add v0 0.5", "log v1", "multiply v2 p1", "exponential v3"),
    "gaussian": ("multiply p0 p0", "multiply v0 -0.5", "exponential v1", "erf p1", "multiply v2 v3"),
    "silu": ("logistic p0", "multiply v0 p0", "multiply v1 p1"),
    "norm": ("multiply p0 p0", "multiply p1 p1", "add v0 v1", "add v2 1", "rsqrt v3", "multiply v4 p0"),
}  # fmt: skip

#: Elements of their arrays.
_SIZE = 1 << 22


def _function(name: str, kind: str) -> Case:
    """One of `_FUNCTIONS` on an element type."""
    array = f"{kind}[{_SIZE}]"
    lines = [f"  p{n} = {array} parameter({n})" for n in range(2)]
    for number, step in enumerate(_FUNCTIONS[name]):
        opcode, *operands = step.split()
        for place, operand in enumerate(operands):
            if operand[0] not in "pv":
                operands[place] = f"b{number}"
                lines.append(f"  k{number} = {kind}[] constant({operand})")
                lines.append(f"  b{number} = {array} broadcast(k{number}), dimensions={{}}")
        root = "ROOT " if number == len(_FUNCTIONS[name]) - 1 else ""
        lines.append(f"  {root}v{number} = {array} {opcode}({', '.join(operands)})")
    text = f"HloModule {name}\nENTRY main {{\n" + "\n".join(lines) + "\n}\n"
    return Case(f"{name}_{kind}", Group.ELEMENTWISE, text, (Input(kind, (_SIZE,)),) * 2, 0)


def _transposed_sum(kind: str) -> Case:
    """A transposition on the way."""
    inputs = tuple(Input(kind, dims) for dims in ((2048, 1536), (1536, 2048)))
    text = (
        f"HloModule transposed_sum\nENTRY main {{\n  p0 = {inputs[0].shape} parameter(0)\n"
        f"  p1 = {inputs[1].shape} parameter(1)\n  t = {inputs[1].shape} transpose(p0), dimensions={{1,0}}\n"
        f"  m = {inputs[1].shape} multiply(t, p1)\n  ROOT r = {inputs[1].shape} add(m, t)\n}}\n"
    )
    return Case(f"transposed_sum_{kind}", Group.ELEMENTWISE, text, inputs, 0)


def cases(scale: float) -> Iterator[Case]:
    """Those of the GPU suite that kernels compute, of 4 to 64 MB at scale 0.02, and functions."""
    yield from (case for case in all_cases(scale) if case.group.is_fused)
    for kind in ("f32", "bf16"):
        yield _transposed_sum(kind)
        yield from (_function(name, kind) for name in _FUNCTIONS)
