"""Whole keys: gathered and compared, looked up, sorted, and the last row of each found (C12)."""
