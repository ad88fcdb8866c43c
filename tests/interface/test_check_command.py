"""`hlotool check`: what is printed, exit codes, choices, the configuration file."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from hlotool.interface.cli.main import main
from hlotool.interface.report.json_schema import FOLDER

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
KERAS = str(CORPUS / "tf" / "keras_fit")
BAD = """HloModule bad
ENTRY e {
  x = f32[4] parameter(0)
  ROOT y = f32[5] negate(x)
}
"""
RANDOM = """HloModule r
ENTRY e {
  z = f32[] constant(0)
  o = f32[] constant(1)
  ROOT y = f32[4] rng(z, o), distribution=rng_uniform, metadata={op_name="r" source_file="r.py" source_line=9}
}
"""


@pytest.fixture
def bad(tmp_path: Path) -> str:
    path = tmp_path / "bad.hlo"
    path.write_text(BAD, encoding="utf-8")
    return str(path)


@pytest.fixture
def random(tmp_path: Path) -> str:
    path = tmp_path / "random.hlo"
    path.write_text(RANDOM, encoding="utf-8")
    return str(path)


def test_findings_of_a_directory(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", KERAS]) == 1
    shown = capsys.readouterr().out
    assert "one_step_on_data was compiled 2 times from one trace: the last batch is smaller" in shown
    assert shown.splitlines()[-1].startswith("2 modules, 4 files: 1 warning")


def test_a_broken_rule_of_the_language(bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", bad, "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    [finding] = record["findings"]
    assert (finding["rule"], finding["severity"], finding["line"]) == ("invalid-hlo", "error", 4)
    schema = json.loads((FOLDER / "check-1.json").read_text(encoding="utf-8"))
    jsonschema.validate(record, schema)


def test_a_healthy_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "good.hlo"
    path.write_text(
        "HloModule g\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] negate(x)\n}\n",
        encoding="utf-8",
    )
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out == "1 module, 1 file: nothing found\n"


def test_a_file_that_is_no_hlo_stops_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "module_0000.a.before_optimizations.txt").write_text("HloModule broken {", encoding="utf-8")
    (tmp_path / "module_0001.b.before_optimizations.txt").write_text(RANDOM, encoding="utf-8")
    assert main(["check", str(tmp_path), "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert [failure["module"] for failure in record["failures"]] == ["module_0000.a"]
    assert [finding["rule"] for finding in record["findings"]] == ["stateful-rng"]
    assert main(["check", str(tmp_path), "--skip", "stateful-rng"]) == 2


def test_rules_are_chosen(random: str) -> None:
    assert main(["check", random, "--only", "invalid-hlo,nan-source"]) == 0
    assert main(["check", random, "--skip", "stateful-rng"]) == 0
    assert main(["check", random, "--fail-on", "error"]) == 0
    assert main(["check", random]) == 1


def test_an_unknown_rule(random: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", random, "--only", "no-such-rule"]) == 2
    assert "no rule 'no-such-rule'" in capsys.readouterr().err


def test_nothing_to_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 2
    assert "nothing to check" in capsys.readouterr().err


def test_accepted_findings(random: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "hlotool.toml"
    config.write_text(
        '[[check.ignore]]\nrule = "stateful-rng"\nreason = "a demonstration"\n', encoding="utf-8"
    )
    assert main(["check", random, "--config", str(config)]) == 0
    assert "1 accepted by the configuration" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        "[check",
        "[check]\nskip = 3",
        '[check]\nskip = ["what"]',
        "[check]\nunknown = 1",
        '[[check.ignore]]\nrule = "x"',
    ],
)
def test_a_wrong_configuration(text: str, random: str, tmp_path: Path) -> None:
    config = tmp_path / "wrong.toml"
    config.write_text(text, encoding="utf-8")
    assert main(["check", random, "--config", str(config)]) == 2
    assert main(["check", random, "--config", str(tmp_path / "none.toml")]) == 2


def test_sarif_names_the_users_line_first(random: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", random, "--sarif", "-"]) == 1
    [run] = json.loads(capsys.readouterr().out)["runs"]
    [result] = run["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("r.py", 9)
    assert result["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 5
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [result["ruleId"]]


def test_the_rules_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--list-rules"]) == 0
    assert "stateful-rng " in capsys.readouterr().out
    assert main(["check", "--list-rules", "--json"]) == 0
    rules = json.loads(capsys.readouterr().out)["rules"]
    assert {"invalid-hlo", "recompilation"} <= {rule["id"] for rule in rules}


def test_stages_that_no_rule_looks_at_are_not_read(tmp_path: Path) -> None:
    """The second stage is no HLO: that shows where a rule wants to see it."""
    before = tmp_path / "module_0000.jit_f.before_optimizations.txt"
    before.write_text(RANDOM, encoding="utf-8")
    (tmp_path / "module_0000.jit_f.cpu_after_optimizations.txt").write_text(
        "HloModule f, broken", encoding="utf-8"
    )
    assert main(["check", str(tmp_path), "--only", "recompilation,accidental-f64", "-q"]) == 0
    assert main(["check", str(tmp_path), "--only", "stateful-rng", "-q"]) == 1
    assert main(["check", str(tmp_path), "--only", "recompilation,invalid-hlo", "-q"]) == 2
