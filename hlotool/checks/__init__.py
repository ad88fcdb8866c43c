"""What is said of programs without running them: rules, counts, explanations of messages."""
