"""`lithify warehouse …`: a verb per file."""
