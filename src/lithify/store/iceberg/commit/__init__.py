"""Commits to a table, the versions that they keep, and the files that these name."""
