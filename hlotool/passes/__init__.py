"""Passes: rewrites of modules, the manager that runs them, and the rules of fusion."""
