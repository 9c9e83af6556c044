"""Commits records copied from another system."""
