"""How far two results are apart, and what that means."""
