"""Fuzzing: random programs that are compiled and judged to find faults of compilers."""
