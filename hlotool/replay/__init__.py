"""Running modules on backends, each in a process of its own."""
