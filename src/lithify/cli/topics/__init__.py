"""`lithify topic …`: a verb per file."""
