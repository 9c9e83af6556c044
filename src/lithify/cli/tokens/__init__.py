"""Verbs on tokens."""
