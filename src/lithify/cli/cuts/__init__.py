"""Verbs that remove records or files, or restore a topic: retain, delete-records, truncate, sweep, repair."""
