"""Verbs on consumer groups."""
