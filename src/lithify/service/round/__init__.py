"""A run: rounds of logs, from plan to commit (C31, C41, C44)."""
