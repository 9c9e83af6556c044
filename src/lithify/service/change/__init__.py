"""Commits other than appends and rounds: settings, cuts, undo, expiry, sweep, repair."""
