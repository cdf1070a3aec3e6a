"""`selc lint`: batch-dependent kernel selection in unmodified code, from its text."""
