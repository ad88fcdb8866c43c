"""The command line of XLA's `run_hlo_module`: its forms are those of xla/tools/run_hlo_module_main.cc."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlotool.errors import UsageError
from hlotool.lab.xla_tools.flags import Flags, parse_command_line


def test_flags_files_and_debug_options() -> None:
    line = parse_command_line(
        [
            "--platform=CPU",
            "--iterations=3",
            "-print_literals",
            "--run_test_hlo_passes=false",
            "--rel_error_bound=1e-2",
            "a.hlo",
            "--reference_platform",
            "",
            "--xla_cpu_enable_fast_math=true",
            "--xla_disable_hlo_passes=algsimp,dce",
            "b.hlo",
        ]
    )
    assert line.files == ("a.hlo", "b.hlo")
    assert line.flags == Flags(
        platform="CPU",
        iterations=3,
        print_literals=True,
        run_test_hlo_passes=False,
        rel_error_bound=1e-2,
        reference_platform="",
    )
    assert line.debug_options == {
        "xla_cpu_enable_fast_math": "true",
        "xla_disable_hlo_passes": "algsimp,dce",
    }


def test_a_debug_options_file_stands_behind_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "options.txt"
    file.write_text('# of a run\nxla_a: 1\nxla_b: true\nxla_list: "x"\nxla_list: "y"\n')
    line = parse_command_line(["--platform=CPU", f"--debug_options_file={file}", "--xla_a=2", "f.hlo"])
    assert line.debug_options == {"xla_a": "2", "xla_b": "true", "xla_list": "x,y"}
    file.write_text("xla_a 1\n")
    with pytest.raises(UsageError, match=r"options.txt:1: not `xla_NAME: VALUE`"):
        parse_command_line(["--platform=CPU", f"--debug_options_file={file}", "f.hlo"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["f.hlo"], "--platform is missing"),
        (["--platform=CPU"], "no HLO file"),
        (["--platform=CPU", "--iteration=2", "f"], "unknown flag --iteration; did you mean --iterations"),
        (["--platform=CPU", "--iterations=two", "f"], "--iterations=two: no whole number"),
        (["--platform=CPU", "--iterations=0", "f"], "it is 1 or more"),
        (["--platform=CPU", "--print_literals=maybe", "f"], "it is true or false"),
        (["--platform=CPU", "--abs_error_bound=nan", "f"], "not negative"),
        (["--platform=CPU", "--input_format=exe", "f"], "it is one of hlo, txt, pb"),
        (["--platform=CPU", "--force_fake_data", "--input_literals_file=x", "f"], "exclude each other"),
        (["--platform=CPU", "--isolate_instructions", "--input_literals_file=x", "f"], "exclude each other"),
    ],
)
def test_mistakes(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_command_line(arguments)
