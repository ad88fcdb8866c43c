"""Programs on several devices in a replay."""
