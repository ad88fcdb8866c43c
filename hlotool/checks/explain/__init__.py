"""Recognises messages of XLA and its frontends in logs, and says what they mean."""
