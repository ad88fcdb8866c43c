"""What rewrites programs: passes, and smaller sizes for programs that do not fit."""
