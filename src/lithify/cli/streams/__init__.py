"""`lithify stream …`: a verb per file."""
