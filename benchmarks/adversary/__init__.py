"""Programs drawn by seed with faults as a reader of the documentation plants them, and legal pairs.

    python -m benchmarks.adversary --seed 1 --count 200
    python -m benchmarks.adversary --seed 1 --legal 300

Nothing here knows how hlotool judges. Faults are edits of text, and each counts only with a witness: inputs
on which the faulty program is off by far more than rounding (`witness.py`).
"""
