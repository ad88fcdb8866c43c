"""Programs, dumps and results side by side."""
