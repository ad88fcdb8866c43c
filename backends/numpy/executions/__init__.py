"""One correct execution of a program out of many: how floats are rounded, sums ordered, ties broken."""
