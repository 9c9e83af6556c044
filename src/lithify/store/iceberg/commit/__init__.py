"""Commits to a table, the versions they leave behind, and what these still name."""
