"""What is measured on a GPU: `scripts/gpu-suite` runs it, `suite` is where to start reading."""
