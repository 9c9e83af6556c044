"""Completion in shells: what is completed, and the scripts that ask for it."""
