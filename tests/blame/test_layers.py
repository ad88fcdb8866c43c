"""`diff --by scope`: a model as XLA gets it beside the same in NumPy, as hooks of PyTorch would write it.

Expected values are NumPy's own; what is planted is known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.safetensors_files import save

import hlotool
from hlotool.errors import ExitCode, UsageError
from hlotool.interface.api.diff import DiffResult
from hlotool.judge.verdicts import Verdict

ROOT = Path(__file__).parents[2]

#: Two dense layers with a bias and a tanh between them, which is in no layer, in NHWC-like order of axes.
PROGRAM = """HloModule model
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY main {
  x = f32[5,7,6] parameter(0),
    metadata={op_name="x"}
  w1 = f32[6,8] parameter(1),
    metadata={op_name="params['w1']"}
  b1 = f32[8] parameter(2),
    metadata={op_name="params['b1']"}
  w2 = f32[8,4] parameter(3),
    metadata={op_name="params['w2']"}
  b2 = f32[4] parameter(4),
    metadata={op_name="params['b2']"}
  dot1 = f32[5,7,8] dot(x, w1), lhs_contracting_dims={2}, rhs_contracting_dims={0},
    metadata={op_name="jit(f)/Model/Dense_0/dot_general" source_file="model.py" source_line=3}
  bias1 = f32[5,7,8] broadcast(b1), dimensions={2},
    metadata={op_name="jit(f)/Model/Dense_0/add"}
  dense1 = f32[5,7,8] add(dot1, bias1),
    metadata={op_name="jit(f)/Model/Dense_0/add" source_file="model.py" source_line=3}
  act = f32[5,7,8] tanh(dense1),
    metadata={op_name="jit(f)/Model/tanh" source_file="model.py" source_line=4}
  dot2 = f32[5,7,4] dot(act, w2), lhs_contracting_dims={2}, rhs_contracting_dims={0},
    metadata={op_name="jit(f)/Model/Dense_1/dot_general" source_file="model.py" source_line=5}
  bias2 = f32[5,7,4] broadcast(b2), dimensions={2},
    metadata={op_name="jit(f)/Model/Dense_1/add"}
  dense2 = f32[5,7,4] add(dot2, bias2),
    metadata={op_name="jit(f)/Model/Dense_1/add" source_file="model.py" source_line=5}
  zero = f32[] constant(0)
  ROOT pool = f32[5,4] reduce(dense2, zero), dimensions={1}, to_apply=sum,
    metadata={op_name="jit(f)/Model/reduce_sum" source_file="model.py" source_line=6}
}
"""


def drawn() -> list[Any]:
    rng = np.random.default_rng(3)
    shapes = [(5, 7, 6), (6, 8), (8,), (8, 4), (4,)]
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def hooks(scale: float = 1.0, bias: bool = True, program: Sequence[Any] | None = None) -> dict[str, Any]:
    """What hooks write: channels before places, weights (out, in); a factor and a missing bias are faults."""
    x, w1, b1, w2, b2 = program or drawn()
    dense1 = np.einsum("bti,oi->bot", x, w1.T) + (b1[:, None] if bias else 0)
    act = np.tanh(dense1) * np.float32(scale)
    dense2 = np.einsum("bit,oi->bot", act, w2.T) + b2[:, None]
    return {
        "input0": x.transpose(0, 2, 1),
        "0000.fc1": dense1,
        "0001.act": act,
        "0002.fc2": dense2,
        "0003.output": dense2.sum(2),
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    (folder / "model.hlo").write_text(PROGRAM)
    hlotool.replay(folder / "model.hlo", inputs=drawn(), save_values=folder / "run", further_sets=False)
    return folder / "run"


def compared(run: Path, folder: Path, arrays: dict[str, Any], **options: Any) -> DiffResult:
    folder.mkdir(exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return hlotool.diff(run, folder, by="scope", **options)


def named(result: DiffResult) -> str:
    layers = result.record.layers
    assert layers is not None
    return "" if layers.first is None else layers.layers[layers.first].right


def test_index(run: Path) -> None:
    (index,) = run.rglob("values.json")
    values = {row["source"]["instruction"]: row for row in json.loads(index.read_bytes())["values"]}
    assert values["dense1"]["ends"] == ["Model/Dense_0"]
    assert values["dot1"] | {"source": {}} == {
        "file": "dot1.npy",
        "shape": "f32[5,7,8]",
        "call": 0,
        "scope": "Model/Dense_0",
        "ends": [],
        "unfinished": "Model/Dense_0",
        "source": {},
    }
    assert (values["act"]["source"]["file"], values["act"]["source"]["file_line"]) == ("model.py", 4)


def test_a_right_model(run: Path, tmp_path: Path) -> None:
    """Other formulas and other orders of axes are within legal spread; each array has its partner."""
    result = compared(run, tmp_path / "hooks", hooks())
    pairs = [(row.left, row.right, row.axes) for row in result.rows]
    assert pairs == [
        ("x", "input0", [0, 2, 1]),
        ("dense1", "0000.fc1", [0, 2, 1]),
        ("act", "0001.act", [0, 2, 1]),
        ("dense2", "0002.fc2", [0, 2, 1]),
        ("pool", "0003.output", [0, 1]),
    ]
    assert {row.verdict for row in result.rows} <= {Verdict.IDENTICAL, Verdict.ROUNDING}
    assert result.exit_code is ExitCode.AGREE
    assert not result.notes


@pytest.mark.parametrize(
    ("fault", "name"),
    [({"scale": 1.001}, "0001.act"), ({"scale": 0.5}, "0001.act"), ({"bias": False}, "0000.fc1")],
)
def test_the_first_wrong_layer(fault: dict[str, Any], name: str, run: Path, tmp_path: Path) -> None:
    result = compared(run, tmp_path / "hooks", hooks(**fault))
    assert named(result) == name
    assert result.exit_code is ExitCode.MISMATCH
    assert "first layer outside the rounding range" in str(result)
    assert "model.py:" in str(result)


def test_other_inputs(run: Path, tmp_path: Path) -> None:
    result = compared(run, tmp_path / "hooks", hooks(program=[drawn()[0] + 1, *drawn()[1:]]))
    assert any("no argument of the program" in note for note in result.notes)
    assert named(result) == "0000.fc1"


def test_a_run_beside_itself_and_another(run: Path, tmp_path: Path) -> None:
    """The second run multiplies by 1.01 behind the tanh; layers of one name belong together."""
    (tmp_path / "model.hlo").write_text(
        re.sub(r"dot\(act, w2\)", "dot(more, w2)", PROGRAM).replace(
            "  dot2 =",
            "  c = f32[] constant(1.01)\n  cs = f32[5,7,8] broadcast(c), dimensions={}\n"
            "  more = f32[5,7,8] multiply(act, cs)\n  dot2 =",
        )
    )
    other = tmp_path / "run"
    hlotool.replay(tmp_path / "model.hlo", inputs=drawn(), save_values=other, further_sets=False)
    result = hlotool.diff(run, other, by="scope")
    layers = result.record.layers
    assert layers is not None
    assert layers.first is not None
    assert layers.layers[layers.first].name == "Model/Dense_1"
    same = hlotool.diff(run, run, by="scope")
    assert {row.verdict for row in same.rows} == {Verdict.IDENTICAL}
    assert [row.name for row in same.rows if row.layers] == ["Model/Dense_0", "Model/Dense_1", "Model"]


def test_weights_are_recognised(run: Path, tmp_path: Path) -> None:
    """As PyTorch keeps them: (out, in)."""
    weights = {"fc1.weight": drawn()[1].T, "fc1.bias": drawn()[2], "fc2.weight": drawn()[3].T + 1}
    result = compared(run, tmp_path / "hooks", hooks() | weights)
    pairs = {row.right: (row.left, row.axes) for row in result.rows}
    assert pairs["fc1.weight"] == ("params['w1']", [1, 0])
    assert pairs["fc1.bias"] == ("params['b1']", [0])
    assert result.record.only_right == ["fc2.weight"]
    assert named(result) == ""


def test_runs_on_other_arguments(run: Path, tmp_path: Path) -> None:
    (tmp_path / "model.hlo").write_text(PROGRAM)
    inputs = [drawn()[0] + 1, *drawn()[1:]]
    hlotool.replay(tmp_path / "model.hlo", inputs=inputs, save_values=tmp_path / "run", further_sets=False)
    result = hlotool.diff(run, tmp_path / "run", by="scope")
    assert named(result) == "x"


def test_the_program_may_stand_on_the_right(run: Path, tmp_path: Path) -> None:
    compared(run, tmp_path / "hooks", hooks(scale=1.001))
    result = hlotool.diff(tmp_path / "hooks", run, by="scope")
    assert named(result) == "0001.act"
    assert any("stands on the left" in note for note in result.notes)


def test_without_a_program(tmp_path: Path) -> None:
    """Arrays alone: a bound by types and sizes, which says so."""
    for name, factor in (("a", 1.0), ("b", 1 + 1e-7), ("c", 1.001)):
        (tmp_path / name).mkdir()
        for layer, array in hooks(scale=factor).items():
            np.save(tmp_path / name / f"{layer}.npy", array)
    assert named(hlotool.diff(tmp_path / "a", tmp_path / "b", by="scope")) == ""
    result = hlotool.diff(tmp_path / "a", tmp_path / "c", by="scope")
    assert named(result) == "0001.act"
    assert "no program is known" in str(result)


def test_what_the_user_pairs(run: Path, tmp_path: Path) -> None:
    chosen = tmp_path / "map.txt"
    chosen.write_text("# JAX  PyTorch\nModel/Dense_0  0001.act  # wrongly\n")
    result = compared(run, tmp_path / "hooks", hooks(), map=chosen)
    assert named(result) == "0001.act"
    assert [row.aligned_by for row in result.rows if row.right == "0001.act"] == ["map"]
    chosen.write_text("Model/Dense_9 0001.act\n")
    with pytest.raises(UsageError, match="no layer or array Model/Dense_9"):
        hlotool.diff(run, tmp_path / "hooks", by="scope", map=chosen)
    chosen.write_text("one\n")
    with pytest.raises(UsageError, match=r"map.txt:1: two names are needed, 1 are there"):
        hlotool.diff(run, tmp_path / "hooks", by="scope", map=chosen)
    with pytest.raises(UsageError, match="--map goes with --by scope"):
        hlotool.diff(run, run, map=chosen)


def test_parallel_layers_in_another_order(run: Path, tmp_path: Path) -> None:
    """Values decide, where the two sides compute in different orders."""
    arrays = hooks()
    arrays["0009.fc1"] = arrays.pop("0000.fc1")
    result = compared(run, tmp_path / "hooks", arrays)
    assert ("dense1", "0009.fc1") in [(row.left, row.right) for row in result.rows]
    assert named(result) == ""


def test_safetensors(run: Path, tmp_path: Path) -> None:
    """Names say the order, which such files do not keep."""
    arrays = {name: np.ascontiguousarray(array, np.float32) for name, array in hooks(scale=1.001).items()}
    path = save(tmp_path / "hooks.safetensors", dict(reversed(arrays.items())))
    assert named(hlotool.diff(run, path, by="scope")) == "0001.act"
    assert hlotool.diff(path, path).is_same


def test_arrays_without_a_partner(run: Path, tmp_path: Path) -> None:
    result = compared(run, tmp_path / "hooks", hooks() | {"0001.dropout_mask": np.ones((3, 11), np.float32)})
    assert result.record.only_right == ["0001.dropout_mask"]
    assert result.exit_code is ExitCode.AGREE
    (tmp_path / "none").mkdir()
    with pytest.raises(UsageError, match="nothing in common"):
        compared(run, tmp_path / "none", {"a": np.ones((3, 11), np.float32)})


def test_values_of_several_programs(run: Path, tmp_path: Path) -> None:
    (source,) = run.rglob("values.json")
    for name in ("one", "two"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "values.json").write_bytes(source.read_bytes())
    with pytest.raises(UsageError, match="values of 2 programs; give one folder"):
        hlotool.diff(tmp_path / "runs", run, by="scope")


def test_page(run: Path, tmp_path: Path) -> None:
    from hlotool.interface.report.html.page import page

    html = page(compared(run, tmp_path / "hooks", hooks(scale=1.001)).record)
    assert html.count("<circle") == 5
    assert html.count('class="failed"><title>0001.act') == 1


class Tensor:
    """What the recipe needs of a tensor of PyTorch."""

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return self

    def float(self) -> Tensor:
        return Tensor(self.array.astype(np.float32))

    def numpy(self) -> Any:
        return self.array


class Module:
    """What it needs of a module: a function, modules inside, hooks that get the result."""

    def __init__(self, function: Callable[..., Any], **inside: Module) -> None:
        self.function, self.inside = function, inside
        self.hooks: list[Callable[[Module, Any, Any], None]] = []

    def named_modules(self) -> list[tuple[str, Module]]:
        return [("", self), *self.inside.items()]

    def register_forward_hook(self, hook: Callable[[Module, Any, Any], None]) -> None:
        self.hooks.append(hook)

    def __call__(self, *arguments: Tensor) -> Tensor:
        result = Tensor(self.function(*(argument.array for argument in arguments)))
        for hook in self.hooks:
            hook(self, arguments, result)
        return result


def test_recipe(run: Path, tmp_path: Path) -> None:
    """The lines of the documentation, on modules that compute with NumPy; the last one lacks its bias."""
    (recipe,) = re.findall(r"```python\n(.+?)```", (ROOT / "docs" / "recipes.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(recipe, names)
    x, w1, b1, w2, _ = drawn()
    inside = {
        "fc1": Module(lambda x: x @ w1 + b1),
        "act": Module(np.tanh),
        "fc2": Module(lambda x: x @ w2),
    }

    def forward(x: Any) -> Any:
        value = Tensor(x)
        for module in inside.values():
            value = module(value)
        return value.array.sum(1)

    folder = tmp_path / "hooks"
    folder.mkdir()
    names["save_layers"](Module(forward, **inside), str(folder), Tensor(x))
    assert sorted(file.name for file in folder.iterdir()) == [
        "0000.fc1.npy",
        "0001.act.npy",
        "0002.fc2.npy",
        "0003.output.npy",
        "input0.npy",
    ]
    result = hlotool.diff(run, folder, by="scope")
    assert named(result) == "0002.fc2"
    assert not result.notes
