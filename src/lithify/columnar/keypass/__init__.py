"""The key pass: which record of every key stays, in bounded memory (C9, C10, C38)."""
