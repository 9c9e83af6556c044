"""Columns of keys: hashes, hash ranges, ranks, and the latest row of each key."""
