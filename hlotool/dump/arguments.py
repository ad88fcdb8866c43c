"""The arguments that lie beside a program that was asked for by name."""

from __future__ import annotations

import os

#: Of the files of a repro bundle, which has `repro.toml`, by what the name of the program begins with.
_BUNDLED = {"repro": "inputs.npz", "pass": "pass_inputs.npz", "kernel": "kernel_inputs.npz"}


def arguments_beside(path: str) -> str:
    """The .npz that belongs to the program in `path`, empty where there is none.

    It has the program's name (`X.npz` for `X.hlo`, as `reduce` and `extract` write it), or the one that a
    repro bundle gives it.
    """
    folder, name = os.path.split(path)
    names = [f"{os.path.splitext(name)[0]}.npz"]
    if os.path.isfile(os.path.join(folder, "repro.toml")):
        names.append(_BUNDLED.get(name.partition(".")[0], ""))
    found = (os.path.join(folder, own) for own in names if own)
    return next(filter(os.path.isfile, found), "")
