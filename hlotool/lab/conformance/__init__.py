"""What each opcode must do, as data; a backend judged by it: see `suite`."""
