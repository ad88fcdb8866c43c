"""Text and binary files into the IR."""
