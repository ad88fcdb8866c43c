"""Two programs side by side: which instruction of one stands for which of the other, and what changed."""
