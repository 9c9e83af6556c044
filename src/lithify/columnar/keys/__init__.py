"""Keys as columns: hashes, hash ranges, ranks, and which row of a key is the last."""
