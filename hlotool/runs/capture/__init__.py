"""From the running program to a dump with its arguments and results."""
