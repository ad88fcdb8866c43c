"""What a difference means: verdicts, distances, thresholds, rules, and where a difference begins."""
