"""The command line: one verb per file; text and JSON come from the same result values."""
