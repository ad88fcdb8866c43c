"""What people and programs see: commands, the Python API, reports, frameworks."""
