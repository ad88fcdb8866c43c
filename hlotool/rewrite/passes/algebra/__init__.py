"""Algebraic simplification: a table of rules, each with what it preserves."""
