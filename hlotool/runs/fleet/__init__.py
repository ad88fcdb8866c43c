"""Many programs at once: what runs them, which of them are the same, what is known of them already."""
