"""For authors of compilers: drawn programs, conformance, planted faults, XLA's own commands.

Nothing of the house imports the lab; its commands are loaded when they are called."""
