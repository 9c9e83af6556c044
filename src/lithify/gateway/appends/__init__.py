"""Appends of many callers: joined into few commits, each with its own answer, and exact when they are sent again."""
