"""Appending batches (C1, C6)."""
