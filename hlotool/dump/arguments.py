"""The arguments that lie beside a program that was asked for by name."""

from __future__ import annotations

import os

from hlotool.stores.paths import inside, is_file
from hlotool.stores.urls import folder_of, is_url, name_of

#: Of the files of a repro bundle, which has `repro.toml`, by what the name of the program begins with.
_BUNDLED = {"repro": "inputs.npz", "pass": "pass_inputs.npz", "kernel": "kernel_inputs.npz"}


def arguments_beside(path: str) -> str:
    """The .npz that belongs to the program in `path`, empty where there is none.

    It has the program's name (`X.npz` for `X.hlo`, as `reduce` and `extract` write it), or the one that a
    repro bundle gives it.
    """
    folder, name = (folder_of(path), name_of(path)) if is_url(path) else os.path.split(path)
    names = [f"{os.path.splitext(name)[0]}.npz"]
    if is_file(inside(folder, "repro.toml")):
        names.append(_BUNDLED.get(name.partition(".")[0], ""))
    found = (inside(folder, own) for own in names if own)
    return next(filter(is_file, found), "")
