"""The key pass: finds the record of each key that remains, in bounded memory (C9, C10, C38)."""
