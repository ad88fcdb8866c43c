"""Dump directories: what their files are, and how stages, constants and arguments are read from them."""
