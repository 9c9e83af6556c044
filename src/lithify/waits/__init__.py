"""Waits for other machines, each with a deadline."""
