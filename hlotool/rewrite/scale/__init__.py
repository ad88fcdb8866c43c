"""Programs larger than the machine: both sides of a comparison get the same smaller sizes."""
