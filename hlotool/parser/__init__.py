"""Text and protos into the IR."""
