"""Training steps as people write them: flax, equinox, haiku and plain JAX, with the optimizers of optax.

    python -m benchmarks.training_steps [--seed 0] [--only REGEX] [--faults N] [--json FILE] [--out DIR]

`drawing` draws sizes and hyper-parameters, `scripts_*` are the scripts, `run_script` runs one of them as its
own program, `measure` judges what it compiled, `faults` plants faults in its main step, `table` counts.
"""
