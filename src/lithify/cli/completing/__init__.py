"""Completion in shells: what is completed, and the scripts that request it."""
