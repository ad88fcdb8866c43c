"""What is measured of hlotool: a folder for each question, listed in README.md."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Programs of models that are no part of the repository, where a checkout has them beside it.
SHARED = ROOT.parent / "shared"
