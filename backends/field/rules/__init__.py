"""What opcodes mean in the field; importing this package registers all of them."""

from __future__ import annotations

import pkgutil
from importlib import import_module

for _module in pkgutil.iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
