"""The CUDA backend: every fusion is one generated kernel."""
