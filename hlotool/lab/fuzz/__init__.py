"""Programs that nobody wrote, to find faults of compilers with."""
