"""Committing what was copied from another system."""
