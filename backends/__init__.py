"""Backends: what compiles and runs HLO modules. `registry` finds them, `base` says what they must do."""
