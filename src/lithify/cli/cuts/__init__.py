"""Verbs that take something away, or bring it back: retain, delete-records, truncate, sweep, repair."""
