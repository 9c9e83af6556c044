"""Waits for other machines, each of which ends."""
