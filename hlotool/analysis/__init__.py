"""Facts about programs that every room may ask for: users, callers, walks, trip counts."""
