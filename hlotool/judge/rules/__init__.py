"""What a difference between two results means."""
