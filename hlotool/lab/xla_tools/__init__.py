"""Entry points that take the command lines of XLA's own tools, for scripts that call these."""
